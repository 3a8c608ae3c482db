"""The execution of a Trial: play, grade, credit, seal.

The Harness plays in a thread of this process; the Apps and the Verifiers' code run in a Runtime's processes.
What fails inside the Trial becomes part of its record.
"""

import errno
import math
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plural_gym.episode import Episode, HindsightTrial, Usage
from plural_gym.errors import (
    AppFault,
    DefinitionError,
    EpisodeOver,
    Fault,
    MachineError,
    PluralError,
)
from plural_gym.grading import AttemptGrading, Grades, fault_row, grade, grade_rows
from plural_gym.harness import TaskBrief, drive
from plural_gym.host.client import RemoteHooks, RemoteHost
from plural_gym.host.hooks import HookSet
from plural_gym.host.host import Outcome
from plural_gym.host.recorder import TrialRecorder
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.host.session import Session
from plural_gym.receipt import Pin, Receipt, packages
from plural_gym.records.atif import trajectory
from plural_gym.records.atomic import disk_error
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.runtime import Runtime
from plural_gym.seat import SeatDoor, SeatedAgent, json_answer
from plural_gym.trial import TrialPlan
from plural_gym.verifier import Verifier, VerifierOutput

POLL_S = 0.25
"""How often a Trial looks whether its Job was stopped."""
GRACE_S = 0.5
"""How long past its time limit a Harness may take to notice that the episode is over."""
ANSWER_S = 10.0
"""How long after the end of the episode a Harness may take to give its answer."""


@dataclass(slots=True)
class _Attempt:
    """What came of playing, before grading."""

    stop_reason: str
    failure: str = "none"
    faults: list[Fault] = field(default_factory=list)


class NotStarted(MachineError):
    """A worker could not be started: the Trial's failure, where a full disk is the Job's."""


class TrialCancelled(Exception):
    """The Job was stopped while the Trial ran; its record stays unsealed, to be set aside on resume."""


def run_trial(
    plan: TrialPlan, folder: TrialFolder, runtime: Runtime, stop: threading.Event | None = None
) -> dict[str, Any]:
    """Run one Trial to its sealed record and return its result; a finished one is returned as it is.

    An interrupted execution's files are set aside first, and so are those of one that the machine failed
    (`infrastructure`). What fails inside the Trial, this package included, becomes part of its record.

    Args:
        stop: once set, the Trial ends without a result.

    Raises:
        TrialCancelled: `stop` was set.
        MachineError: the disk is full, or the Trial runs elsewhere.
    """
    folder.create()
    with folder.lock():
        revision = 1
        if folder.finished():
            known = folder.result()
            if not is_repeated(known):
                return known
            revision = int(known.get("revision") or 0) + 1
        folder.set_aside(finished=True)
        folder.create()
        execution = _Execution(plan, folder, runtime, stop or threading.Event(), revision)
        try:
            return execution.run()
        except (TrialCancelled, MachineError):
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise disk_error(folder.path, error) from error
            return execution.seal_failed(error)
        except Exception as error:
            return execution.seal_failed(error)
        finally:
            execution.close()


def is_repeated(result: Mapping[str, Any]) -> bool:
    """Whether a finished Trial is run again when its Job goes on: the machine failed it, not the Agent."""
    return result.get("failure") == "infrastructure"


class _TrialSession(Session):
    """A Session that keeps what went wrong in this package, or on the disk, out of the Harness's hands."""

    broken: BaseException | None = None
    """What an action raised that is neither an App's nor the Agent's doing; ends the Trial."""

    def act(self, name: str, arguments: Mapping[str, Any], seat: str | None = None) -> Outcome:
        with self._guarded():
            return super().act(name, arguments, seat)

    def reject(self, action: str, error: str, app: bool = True) -> Outcome:
        with self._guarded():
            return super().reject(action, error, app)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except EpisodeOver:
            raise
        except BaseException as error:
            self.broken = self.broken or error
            self.stop("error", truncated=True)
        if self.broken is not None:
            raise EpisodeOver("the action failed, and the episode ends.")


class _Execution:
    """One execution of one Trial: its processes, its Session and its recorder."""

    def __init__(
        self,
        plan: TrialPlan,
        folder: TrialFolder,
        runtime: Runtime,
        stop: threading.Event,
        revision: int = 1,
    ) -> None:
        self.plan = plan
        self.revision = revision
        self.session: Session | None = None
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
        except (AppFault, DefinitionError) as error:
            lost = self.host is not None and self.host.lost_outside
            return self._seal_unplayed(error, "infrastructure" if lost else "environment")
        except NotStarted as error:
            return self._seal_unplayed(error, "infrastructure")
        attempt = self._play(session)
        usage = Usage(turns=session.turn, seconds=round(session.seconds, 6))
        episode = session.episode(tuple(self.folder.pin_artifacts()), usage)
        grades = Grades()
        if attempt.failure == "none":
            grades = self._grade(session, episode)
        if grades.faults:
            attempt.failure = "infrastructure" if grades.unreached else "grader"
            attempt.faults += grades.faults
        if attempt.failure in ("none", "grader"):
            self._credit(session, episode, grades.score)
        attempt.faults += self.recorder.faults
        return self._seal(session, attempt, grades, usage)

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
            task=Pin.of(task),
            environment=Pin.of(environment),
            verifiers=tuple(Pin.of(verifier) for verifier in task.verifiers),
            agent=Pin.of(plan.agent),
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

    def _open(self, resources: Path) -> _TrialSession:
        task, logs = self.plan.task, self.folder.logs_path
        environment = task.environment
        try:
            process = self.runtime.open("apps", logs / "apps.log")
        except MachineError as error:
            raise NotStarted(str(error)) from error
        self.host = RemoteHost(process, environment.declarations, environment.actions)
        self.hooks = RemoteHooks(
            lambda: self.runtime.open("hooks", logs / "verifiers.log"),
            [HookSet.of(verifier) for verifier in task.verifiers],
            {verifier.name: verifier.timeouts_s() for verifier in task.verifiers},
            task.view,
            list(environment.apps),
        )
        self.session = session = _TrialSession(self.host, self.hooks, task.effective_limits, self.recorder)
        session.open(task.view, task.setup, self.plan.seed, resources)
        return session

    def _play(self, session: _TrialSession) -> _Attempt:
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
        if session.broken is not None:
            if isinstance(session.broken, Exception):
                raise session.broken
            raise RuntimeError("an action was broken off") from session.broken
        if session.fault is not None:
            assert self.host is not None
            failure = "infrastructure" if self.host.lost_outside else "environment"
            return self._failed(session, failure, session.fault)
        if raised:
            failure = "infrastructure" if _is_the_models(raised[0]) else "agent"
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

    def _grade(self, session: Session, episode: Episode) -> Grades:
        hooks, host = self.hooks, self.host
        assert hooks is not None and host is not None

        def run(verifier: Verifier, episode: Episode) -> VerifierOutput | Fault:
            return hooks.check(verifier.name, episode, session.own_rewards(verifier.name), host)

        artifacts = self.folder.artifacts_path
        verifiers = self.plan.task.verifiers
        grades = grade(verifiers, lambda verifier: AttemptGrading(episode, artifacts, run, verifier))
        grades.unreached |= any((name, "check") in hooks.lost_outside for name in grades.given)
        return grades

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
        grades: Grades,
        usage: Usage,
    ) -> dict[str, Any]:
        verifiers = self.plan.task.verifiers
        rewards = [value for verifier in verifiers for value in session.own_rewards(verifier.name)]
        returned = None
        if rewards:
            with suppress(OverflowError):
                returned = math.fsum(rewards)
        return self._write(
            attempt,
            {
                "score": grades.score if attempt.failure == "none" else None,
                "scores": grade_rows(verifiers, grades.given),
                "return": returned,
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

    def _seal_unplayed(self, error: PluralError, failure: str) -> dict[str, Any]:
        fault = getattr(error, "fault", None) or Fault.of(error, "runtime")
        self.folder.pin_artifacts()
        return self._write(_Attempt("error", failure, [fault]), _nothing(0))

    def seal_failed(self, error: Exception) -> dict[str, Any]:
        """Seal the Trial that an error of this package, or of the machine, broke off: it alone fails."""
        if self.folder.result_path.exists():
            raise error
        faults = [Fault.of(error, "this package")]
        if self.recorder is not None:
            faults += self.recorder.faults
        turns = 0 if self.session is None else getattr(self.session, "turn", 0)
        return self._write(_Attempt("error", "infrastructure", faults), _nothing(turns))

    def _write(self, attempt: _Attempt, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Close the journals, write the trajectory, and seal with the result."""
        if self.stop.is_set():
            raise TrialCancelled
        if self.recorder is not None:
            self.recorder.close()
        plan, agent = self.plan, self.plan.agent
        if not self.folder.trajectory_path.exists():
            self._write_trajectory(outcome)
        _log(self.folder, attempt.faults)
        ended = time.time()
        return self.folder.seal(
            {
                "schema_version": "plural.trial/1",
                "revision": self.revision,
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

    def _write_trajectory(self, outcome: Mapping[str, Any]) -> None:
        plan, agent, session = self.plan, self.plan.agent, self.session
        failed = session is not None and session.fault is not None
        self.folder.write_trajectory(
            trajectory(
                plan.id,
                {"name": agent.name, "version": agent.version, "model": agent.model},
                plan.task.instructions,
                self.folder.timeline(),
                outcome["answer"],
                outcome["usage"],
                failed_turn=session.turn if failed and session is not None else None,
            )
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


def _nothing(turns: int) -> dict[str, Any]:
    """The outcome of a Trial that was not played to its end."""
    return {
        "score": None,
        "scores": [],
        "return": None,
        "n_steps": turns,
        "answer": None,
        "terminated": False,
        "truncated": True,
        "usage": {"turns": turns},
    }


def _is_the_models(error: BaseException) -> bool:
    """Whether a MachineError came from asking the Agent's model, rather than from the Harness's own code."""
    trace = error.__traceback__ if isinstance(error, MachineError) else None
    while trace is not None:
        if trace.tb_frame.f_code is SeatedAgent.complete.__code__:
            return True
        trace = trace.tb_next
    return False


def _grouped(faults: list[Fault]) -> list[dict[str, Any]]:
    """Faults alike as one row with their count, in order of first appearance."""
    rows: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for fault in faults:
        key = (fault.where, fault.type, fault.message, fault.at)
        rows.setdefault(key, {**fault_row(fault), "count": 0})["count"] += 1
    return list(rows.values())


def _log(folder: TrialFolder, faults: list[Fault]) -> None:
    if not faults:
        return
    with (folder.logs_path / "faults.log").open("a", encoding="utf-8") as log:
        for trace in dict.fromkeys(f"{fault}\n{fault.trace}" for fault in faults):
            log.write(trace.rstrip() + "\n\n")
