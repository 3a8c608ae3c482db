"""Trial: one attempt; one Agent, one Task, one try; from the first action to the sealed record.

`run_trial` plays and grades it in a Runtime's processes; `Trial` reads a finished one from its folder.
"""

import math
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from plural_gym.agent import Agent
from plural_gym.episode import Episode, HindsightTrial, Usage
from plural_gym.errors import AppFault, EpisodeOver, Fault, MachineError, PluralError
from plural_gym.harness import TaskBrief, drive
from plural_gym.host.client import RemoteHooks, RemoteHost
from plural_gym.host.hooks import HookSet
from plural_gym.host.recorder import TrialRecorder
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.host.session import Session
from plural_gym.receipt import Pin, Receipt, packages
from plural_gym.records.atif import trajectory
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.refs import origin
from plural_gym.runtime import Runtime
from plural_gym.seat import SeatDoor, json_answer
from plural_gym.task import Task
from plural_gym.verifier import Verifier, VerifierOutput, combine

POLL_S = 0.25
"""How often a Trial looks whether its Job was stopped."""
GRACE_S = 0.5
"""How long past its time limit a Harness may take to notice that the episode is over."""
ANSWER_S = 10.0
"""How long after the end of the episode a Harness may take to give its answer."""


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One Trial before it runs: everything its result depends on."""

    id: str
    job_id: str
    group_id: str
    """The set of attempts of one Agent at one Task, over which a group's mean is taken."""
    attempt: int
    """Counted from 1."""
    task: Task
    agent: Agent
    seed: int
    benchmark: Pin | None = None
    mode: str = "eval"
    why_not: tuple[str, ...] = ()
    """Why the inputs cannot be loaded again; empty where they can."""


@dataclass(slots=True)
class _Attempt:
    """What came of playing, before grading."""

    stop_reason: str
    failure: str = "none"
    faults: list[Fault] = field(default_factory=list)


class TrialCancelled(Exception):
    """The Job was stopped while the Trial ran; its record stays unsealed, to be set aside on resume."""


def run_trial(
    plan: TrialPlan, folder: TrialFolder, runtime: Runtime, stop: threading.Event | None = None
) -> dict[str, Any]:
    """Run one Trial to its sealed record and return its result; a finished one is returned as it is.

    An interrupted execution's files are set aside first. What fails inside the Trial becomes part of its
    record.

    Args:
        stop: once set, the Trial ends without a result.

    Raises:
        TrialCancelled: `stop` was set.
        MachineError: the disk is full, or the Trial runs elsewhere.
    """
    folder.create()
    with folder.lock():
        if folder.finished():
            return folder.result()
        folder.set_aside()
        folder.create()
        execution = _Execution(plan, folder, runtime, stop or threading.Event())
        try:
            return execution.run()
        finally:
            execution.close()


class _Execution:
    """One execution of one Trial: its processes, its Session and its recorder."""

    def __init__(self, plan: TrialPlan, folder: TrialFolder, runtime: Runtime, stop: threading.Event) -> None:
        self.plan = plan
        self.stop = stop
        self.folder = folder
        self.runtime = runtime
        self.started = time.time()
        self.scratch: Path | None = None
        self.host: RemoteHost | None = None
        self.hooks: RemoteHooks | None = None
        self.recorder: TrialRecorder | None = None

    def run(self) -> dict[str, Any]:
        """Play, grade, credit, seal."""
        task = self.plan.task
        resources, staged = self._stage()
        self._write_receipt(staged)
        self.recorder = TrialRecorder(
            self.folder.steps_path,
            self.folder.rewards_path,
            self.plan.id,
            {verifier.name: verifier.version for verifier in task.verifiers},
            {verifier.name: verifier.content_hash for verifier in task.verifiers},
        )
        try:
            session = self._open(resources)
        except (AppFault, MachineError) as error:
            return self._seal_unplayed(error)
        attempt = self._play(session)
        usage = Usage(turns=session.turn, seconds=round(session.seconds, 6))
        episode = session.episode(tuple(self.folder.pin_artifacts()), usage)
        outputs: dict[str, VerifierOutput | Fault] = {}
        if attempt.failure == "none":
            outputs = self._check(session, episode)
        score = combine(
            (verifier.weight, _score(outputs.get(verifier.name)))
            for verifier in task.verifiers
            if verifier.scores
        )
        graded = [output for output in outputs.values() if isinstance(output, Fault)]
        if graded:
            attempt.failure = "grader"
            attempt.faults += graded
        if attempt.failure in ("none", "grader"):
            self._credit(session, episode, score)
        attempt.faults += self.recorder.faults
        return self._seal(session, attempt, outputs, score, usage)

    def _stage(self) -> tuple[Path, dict[str, str]]:
        environment = self.plan.task.environment
        if not environment.resources:
            return NO_RESOURCES, {}
        self.scratch = Path(tempfile.mkdtemp(prefix="plural-"))
        return self.scratch, stage(environment, self.scratch)

    def _write_receipt(self, staged: dict[str, str]) -> None:
        plan, task = self.plan, self.plan.task
        environment = task.environment
        receipt = Receipt(
            trial_id=plan.id,
            job_id=plan.job_id,
            attempt=plan.attempt,
            mode=plan.mode,
            seed=plan.seed,
            task=_pin(task),
            environment=_pin(environment),
            verifiers=tuple(_pin(verifier) for verifier in task.verifiers),
            agent=_pin(plan.agent),
            benchmark=plan.benchmark,
            resources=staged,
            runtime=self.runtime.identity(),
            packages=dict(packages()),
            credentials=plan.agent.credentials,
            rerunnable=not plan.why_not,
            why_not=plan.why_not,
            started=self.started,
        )
        self.folder.write_receipt(receipt.model_dump(mode="json"))

    def _open(self, resources: Path) -> Session:
        task, logs = self.plan.task, self.folder.logs_path
        environment = task.environment
        self.host = RemoteHost(
            self.runtime.open("apps", logs / "apps.log"), environment.declarations, environment.actions
        )
        self.hooks = RemoteHooks(
            lambda: self.runtime.open("hooks", logs / "verifiers.log"),
            [HookSet.of(verifier) for verifier in task.verifiers],
            {verifier.name: verifier.timeouts_s() for verifier in task.verifiers},
            task.view,
            list(environment.apps),
        )
        session = Session(self.host, self.hooks, task.effective_limits, self.recorder)
        session.open(task.view, task.setup, self.plan.seed, resources)
        return session

    def _play(self, session: Session) -> _Attempt:
        """Let the Harness play in a thread of its own, until it returns or its time is up."""
        environment, agent = self.plan.task.environment, self.plan.agent
        offered = environment.finish != "never" and "finish" not in environment.actions.table
        seat = SeatDoor(session, agent, environment.actions.tools(), offered)
        brief = TaskBrief(self.plan.task.instructions)
        answers: list[Any] = []
        raised: list[BaseException] = []

        def play() -> None:
            try:
                answers.append(json_answer(drive(agent.driver(), brief, seat)))
            except EpisodeOver:
                pass
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=play, name=f"plural-harness-{self.plan.id}", daemon=True)
        thread.start()
        self._wait(thread, session)
        seat.close()
        if thread.is_alive():
            session.stop("max_seconds", truncated=True)
        if answers and answers[0] is not None and session.answer is None:
            session.answer = answers[0]
        if session.fault is not None:
            return self._failed(session, "environment", session.fault)
        if raised:
            failure = "infrastructure" if isinstance(raised[0], MachineError) else "agent"
            session.stop("error", truncated=True)
            return self._failed(session, failure, Fault.of(raised[0], f"harness {agent.driver().name}"))
        session.stop("agent_response", terminated=True)
        return _Attempt(session.stop_reason or "agent_response")

    def _wait(self, thread: threading.Thread, session: Session) -> None:
        """Until the Harness has returned or has had its time. It cannot be ended, only left behind."""
        left = session.seconds_left
        deadline = math.inf if left is None else time.monotonic() + max(left, 0.0) + GRACE_S
        over = False
        while thread.is_alive() and time.monotonic() < deadline and not self.stop.is_set():
            thread.join(min(deadline - time.monotonic(), POLL_S))
            if session.stop_reason is not None and not over:
                over, deadline = True, min(deadline, time.monotonic() + ANSWER_S)

    def _failed(self, session: Session, failure: str, fault: Fault) -> _Attempt:
        return _Attempt("error", failure, [fault])

    def _check(self, session: Session, episode: Episode) -> dict[str, VerifierOutput | Fault]:
        assert self.hooks is not None and self.host is not None
        return {
            verifier.name: self.hooks.check(
                verifier.name, episode, session.own_rewards(verifier.name), self.host
            )
            for verifier in self.plan.task.verifiers
            if verifier.scores
        }

    def _credit(self, session: Session, episode: Episode, score: float | None) -> None:
        """Let each hindsight function credit steps and calls, after every check."""
        assert self.hooks is not None and self.host is not None and self.recorder is not None
        records = {record["event_id"]: record for record in episode.trajectory}
        for verifier in self.plan.task.verifiers:
            if "hindsight" not in verifier.functions():
                continue
            trial = HindsightTrial(score, episode.apps, episode.task, episode.trajectory)
            given = self.hooks.hindsight(verifier.name, trial, self.host)
            if isinstance(given, Fault):
                self.recorder.failed(verifier.name, "hindsight", given, "hindsight", "live")
                continue
            for credit in given:
                record = records.get(credit.event_id)
                self.recorder.credited(verifier.name, credit, record, "hindsight", "live")

    def _seal(
        self,
        session: Session,
        attempt: _Attempt,
        outputs: Mapping[str, VerifierOutput | Fault],
        score: float | None,
        usage: Usage,
    ) -> dict[str, Any]:
        verifiers = self.plan.task.verifiers
        returned = sum(value for verifier in verifiers for value in session.own_rewards(verifier.name))
        return self._write(
            attempt,
            {
                "score": score if attempt.failure == "none" else None,
                "scores": [
                    _scored(verifier, outputs.get(verifier.name)) for verifier in verifiers if verifier.scores
                ],
                "return": returned if any(session.own_rewards(v.name) for v in verifiers) else None,
                "n_steps": session.turn,
                "terminated": session.terminated,
                "truncated": session.truncated,
                "answer": session.answer,
                "usage": {
                    "turns": usage.turns,
                    "seconds": usage.seconds,
                    "prompt_tokens": usage.prompt_tokens,
                    "completion_tokens": usage.completion_tokens,
                    "cost_usd": usage.cost_usd,
                },
            },
        )

    def _seal_unplayed(self, error: PluralError) -> dict[str, Any]:
        fault = getattr(error, "fault", None) or Fault.of(error, "runtime")
        failure = "environment" if isinstance(error, AppFault) else "infrastructure"
        nothing: dict[str, Any] = {"score": None, "scores": [], "return": None, "n_steps": 0, "answer": None}
        nothing |= {"terminated": False, "truncated": True, "usage": {"turns": 0}}
        self.folder.pin_artifacts()
        return self._write(_Attempt("error", failure, [fault]), nothing)

    def _write(self, attempt: _Attempt, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Close the journals, write the trajectory, and seal with the result."""
        if self.stop.is_set():
            raise TrialCancelled
        assert self.recorder is not None
        self.recorder.close()
        plan, agent = self.plan, self.plan.agent
        self.folder.write_trajectory(
            trajectory(
                plan.id,
                {"name": agent.name, "version": agent.version, "model": agent.model},
                plan.task.instructions,
                self.folder.timeline(),
                outcome["answer"],
                outcome["usage"],
            )
        )
        _log(self.folder, attempt.faults)
        ended = time.time()
        return self.folder.seal(
            {
                "schema_version": "plural.trial/1",
                "trial_id": plan.id,
                "job_id": plan.job_id,
                "group_id": plan.group_id,
                "attempt": plan.attempt,
                "task": plan.task.name,
                "task_version": plan.task.version,
                "benchmark": None if plan.benchmark is None else plan.benchmark.name,
                "agent": agent.name,
                "seats": [None],
                "status": "succeeded" if attempt.failure == "none" else "failed",
                "failure": attempt.failure,
                "stop_reason": attempt.stop_reason,
                "seed": plan.seed,
                **outcome,
                "faults": _grouped(attempt.faults),
                "started": self.started,
                "ended": ended,
                "seconds": round(ended - self.started, 6),
            }
        )

    def close(self) -> None:
        """End the Trial's processes and remove what was staged."""
        if self.hooks is not None:
            self.hooks.close()
        if self.host is not None:
            self.host.close()
        if self.recorder is not None:
            with suppress(MachineError):
                self.recorder.close()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def _pin(word: Any) -> Pin:
    return Pin(name=word.name, version=word.version, content_hash=word.content_hash)


def _score(output: VerifierOutput | Fault | None) -> float | None:
    return output.score if isinstance(output, VerifierOutput) else None


def _scored(verifier: Verifier, output: VerifierOutput | Fault | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "verifier": verifier.name,
        "version": verifier.version,
        "kind": verifier.kind,
        "weight": verifier.weight,
        "score": _score(output),
        "scores": {},
        "evidence": [],
        "feedback": None,
        "fault": None,
    }
    if isinstance(output, VerifierOutput):
        row |= {"scores": output.scores, "evidence": list(output.evidence), "feedback": output.feedback}
    elif output is not None:
        row["fault"] = _fault_row(output)
    return row


def _fault_row(fault: Fault) -> dict[str, Any]:
    row = asdict(fault)
    del row["trace"]
    return row


def _grouped(faults: list[Fault]) -> list[dict[str, Any]]:
    """Faults alike as one row with their count, in order of first appearance."""
    rows: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for fault in faults:
        key = (fault.where, fault.type, fault.message, fault.at)
        rows.setdefault(key, {**_fault_row(fault), "count": 0})["count"] += 1
    return list(rows.values())


def _log(folder: TrialFolder, faults: list[Fault]) -> None:
    if not faults:
        return
    with (folder.logs_path / "faults.log").open("a", encoding="utf-8") as log:
        for trace in dict.fromkeys(f"{fault}\n{fault.trace}" for fault in faults):
            log.write(trace.rstrip() + "\n\n")


def why_not_rerunnable(task: Task, agent: Agent) -> tuple[str, ...]:
    """Why a later process could not load this Task and Agent from their files; empty where it can."""
    reasons: dict[str, None] = {}
    code = [
        *(app.options["class"] for app in task.environment.declarations.values() if "class" in app.options),
        *(function for verifier in task.verifiers for function in verifier.functions().values()),
        agent.driver().code,
    ]
    for target in code:
        why = origin(target).why_not
        if why is not None:
            reasons[why] = None
    return tuple(reasons)


class Trial:
    """A finished or running Trial, read from its folder."""

    def __init__(self, folder: TrialFolder) -> None:
        self.folder = folder

    @property
    def id(self) -> str:
        """Unique among all Trials."""
        return self.folder.id

    @property
    def finished(self) -> bool:
        """Whether its record is complete and sound."""
        return self.folder.finished()

    @property
    def result(self) -> dict[str, Any]:
        """The summary in `result.json`. Raises RecordError where the Trial has not finished."""
        return self.folder.result()

    @property
    def status(self) -> str:
        """`running`, `interrupted`, or how it ended."""
        if not self.folder.result_path.exists():
            return "running" if self.folder.running() else "interrupted"
        return str(self.result["status"])

    @property
    def score(self) -> float | None:
        """The Trial's score; None where it is unknown."""
        score: float | None = self.result["score"]
        return score

    @property
    def task(self) -> str:
        """Name of the Task."""
        return str(self.result["task"])

    @property
    def agent(self) -> str:
        """Name of the Agent."""
        return str(self.result["agent"])

    @property
    def rewards(self) -> list[dict[str, Any]]:
        """The ledger's rows: each Verifier's newest run."""
        return self.folder.current_rewards()

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The Environment steps, with every App's State before and after."""
        return list(self.folder.steps())

    @property
    def receipt(self) -> Receipt:
        """The exact inputs."""
        return Receipt(**self.folder.receipt())

    def __repr__(self) -> str:
        return f"Trial({self.id!r}, status={self.status!r})"
