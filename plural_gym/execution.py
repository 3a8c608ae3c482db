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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plural_gym.agent import Agent
from plural_gym.episode import Episode, HindsightTrial, Usage
from plural_gym.errors import (
    AppFault,
    DefinitionError,
    Fault,
    MachineError,
    PluralError,
)
from plural_gym.gateway.client import shared
from plural_gym.gateway.exchange import ExchangeLog
from plural_gym.grading import AttemptGrading, Grades, fault_rows, grade, grade_rows
from plural_gym.host.client import RemoteHooks, RemoteHost
from plural_gym.host.hooks import HookSet
from plural_gym.host.party import PartySession
from plural_gym.host.recorder import TrialRecorder
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.host.session import Session
from plural_gym.model import Completion, ModelRequest
from plural_gym.playing import Attempt, PartyTrialSession, TrialSession, play
from plural_gym.receipt import Pin, Receipt, packages
from plural_gym.records.atif import trajectory
from plural_gym.records.atomic import disk_error
from plural_gym.records.reviewed import AWAITING
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.runtime import Runtime
from plural_gym.trial import TrialPlan
from plural_gym.verifier import Verifier, VerifierOutput, combine


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


@dataclass(slots=True)
class _Sitting:
    """What there is to grade: one Agent's part in the episode; the whole of it where it played alone."""

    seat: str | None
    agent: Agent
    episode: Episode
    rewards: Mapping[str, list[float]]
    """By Verifier, what its step rewards gave this seat."""
    failure: str = "none"
    grades: Grades = field(default_factory=Grades)

    @property
    def returned(self) -> float | None:
        """The sum of its step rewards; None without any."""
        values = [value for given in self.rewards.values() for value in given]
        with suppress(OverflowError):
            return math.fsum(values) if values else None
        return None


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
        self.exchanges = ExchangeLog(folder.exchanges_path)

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
        sittings = self._sittings(session, attempt)
        for sitting in sittings:
            if attempt.failure in ("none", "grader") and sitting.failure == "none":
                sitting.grades = self._grade(sitting)
                attempt.faults += sitting.grades.faults
        if any(sitting.grades.faults for sitting in sittings):
            unreached = any(sitting.grades.unreached for sitting in sittings)
            attempt.failure = "infrastructure" if unreached else "grader"
        if attempt.failure in ("none", "grader") and not _awaited(attempt, sittings):
            for sitting in sittings:
                self._credit(sitting)
        attempt.faults += self.recorder.faults
        return self._seal(session, attempt, sittings)

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
            seats={seat: Pin.of(agent) for seat, agent in plan.seats.items()},
            benchmark=plan.benchmark,
            resources=staged,
            runtime=self.runtime.identity(),
            packages=dict(packages()),
            credentials=tuple(
                dict.fromkeys(name for agent in plan.agents.values() for name in agent.credentials)
            ),
            rerunnable=not plan.why_not,
            why_not=plan.why_not,
            started=self.started,
        )
        self.folder.write_receipt(receipt.model_dump(mode="json"))

    def _open(self, resources: Path) -> Session:
        task, logs = self.plan.task, self.folder.logs_path
        environment = task.environment
        try:
            process = self.runtime.open("apps", logs / "apps.log")
        except MachineError as error:
            raise NotStarted(str(error)) from error
        party = environment.party
        seats = () if party is None else party.names
        self.host = RemoteHost(process, environment.declarations, environment.actions, seats)
        self.hooks = RemoteHooks(
            lambda: self.runtime.open("hooks", logs / "verifiers.log"),
            [HookSet.of(verifier) for verifier in task.verifiers],
            {verifier.name: verifier.timeouts_s() for verifier in task.verifiers},
            task.view,
            list(environment.apps),
            seats,
        )
        limits = task.effective_limits
        session: Session
        if party is None:
            session = TrialSession(self.host, self.hooks, limits, self.recorder)
        else:
            session = PartyTrialSession(self.host, self.hooks, limits, party, self.recorder)
        self.session = session
        session.open(task.view, task.setup, self.plan.seed, resources)
        return session

    def _play(self, session: Session) -> Attempt:
        attempt = play(self.plan.task, self.plan.agents, session, self.stop)
        if attempt.failure == "environment" and self.host is not None and self.host.lost_outside:
            attempt.failure = "infrastructure"
        return attempt

    def _sittings(self, session: Session, attempt: Attempt) -> list[_Sitting]:
        """What there is to grade: the whole attempt, or in a party each seat's part in it."""
        artifacts = tuple(self.folder.pin_artifacts())
        names = [verifier.name for verifier in self.plan.task.verifiers]
        sittings = []
        for seat, agent in self.plan.agents.items():
            turns = session.turns[seat] if isinstance(session, PartySession) and seat else session.turn
            usage = Usage(turns=turns, seconds=round(session.seconds, 6))
            if isinstance(session, PartySession) and seat is not None:
                episode = session.seat_episode(seat, artifacts, usage)
            else:
                episode = session.episode(artifacts, usage)
            rewards = {name: session.own_rewards(name, seat) for name in names}
            failure = "agent" if seat in attempt.failed_seats else "none"
            sittings.append(_Sitting(seat, agent, episode, rewards, failure))
        return sittings

    def _grade(self, sitting: _Sitting) -> Grades:
        hooks, host, episode = self.hooks, self.host, sitting.episode
        assert hooks is not None and host is not None

        def run(verifier: Verifier, episode: Episode) -> VerifierOutput | Fault:
            return hooks.check(verifier.name, episode, sitting.rewards[verifier.name], host)

        artifacts, log = self.folder.artifacts_path, self.folder.logs_path / "verifiers.log"
        verifiers = self.plan.task.verifiers
        grades = grade(
            verifiers,
            lambda verifier: AttemptGrading(episode, artifacts, run, verifier, log, ask=self._ask),
        )
        grades.unreached |= any((name, "check") in hooks.lost_outside for name in grades.given)
        return grades

    def _ask(self, request: ModelRequest, verifier: str, seat: str | None) -> Completion:
        """A judge's model call, on the Trial's record before its answer is heard."""
        return shared().complete(
            request,
            purpose="judge",
            verifier=verifier,
            seat=seat,
            record=self.exchanges.append,
            stopped=self.stop.is_set,
        )

    def _credit(self, sitting: _Sitting) -> None:
        """Let each hindsight function credit steps and calls, after every check."""
        assert self.hooks is not None and self.host is not None and self.recorder is not None
        episode, seat = sitting.episode, sitting.seat
        records = {record["event_id"]: record for record in episode.trajectory}
        for verifier in self.plan.task.verifiers:
            if "hindsight" not in verifier.functions():
                continue
            trial = HindsightTrial(
                sitting.grades.score, episode.apps, episode.task, episode.trajectory, seat=seat
            )
            given = self.hooks.hindsight(verifier.name, trial, self.host)
            if isinstance(given, Fault):
                self.recorder.failed(verifier.name, "hindsight", given, "hindsight", "live", seat)
                continue
            for credit in given:
                record = records.get(credit.event_id)
                self.recorder.credited(verifier.name, credit, record, "hindsight", "live", seat)

    def _seal(self, session: Session, attempt: Attempt, sittings: list[_Sitting]) -> dict[str, Any]:
        verifiers = self.plan.task.verifiers
        graded = attempt.failure == "none"
        outcome: dict[str, Any] = {
            "score": _mean_score(sittings) if graded else None,
            "return": sittings[0].returned if len(sittings) == 1 else None,
            "n_steps": session.turn,
            "terminated": session.terminated,
            "truncated": session.truncated,
            "answer": session.answer,
            # As the checks saw it: grading takes time too.
            "usage": _usage(session.turn, sittings[0].episode.usage.seconds),
        }
        if self.plan.seats:
            outcome["seats"] = [_seat_row(sitting, graded) for sitting in sittings]
            outcome["scores"] = [
                {"seat": sitting.seat, **row}
                for sitting in sittings
                for row in grade_rows(verifiers, sitting.grades.given, sitting.grades.usage)
            ]
        else:
            grades = sittings[0].grades
            outcome["scores"] = grade_rows(verifiers, grades.given, grades.usage)
        awaited = _awaited(attempt, sittings)
        if awaited:
            due = [verifier.name for verifier in verifiers if "hindsight" in verifier.functions()]
            outcome |= {"status": AWAITING, "awaits": awaited, "hindsight_due": due}
        return self._write(attempt, outcome)

    def _seal_unplayed(self, error: PluralError, failure: str) -> dict[str, Any]:
        fault = getattr(error, "fault", None) or Fault.of(error, "runtime")
        self.folder.pin_artifacts()
        return self._write(Attempt("error", failure, [fault]), _nothing(0))

    def seal_failed(self, error: Exception) -> dict[str, Any]:
        """Seal the Trial that an error of this package, or of the machine, broke off: it alone fails."""
        if self.folder.result_path.exists():
            raise error
        faults = [Fault.of(error, "this package")]
        if self.recorder is not None:
            faults += self.recorder.faults
        turns = 0 if self.session is None else getattr(self.session, "turn", 0)
        return self._write(Attempt("error", "infrastructure", faults), _nothing(turns))

    def _write(self, attempt: Attempt, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Close the journals, write the trajectory, and seal with the result."""
        if self.stop.is_set():
            raise TrialCancelled
        self.exchanges.close()
        if self.recorder is not None:
            self.recorder.close()
        plan = self.plan
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
                "agent": plan.player,
                "seats": [None],
                "status": "succeeded" if attempt.failure == "none" else "failed",
                "failure": attempt.failure,
                "stop_reason": attempt.stop_reason,
                "seed": plan.seed,
                **outcome,
                "faults": fault_rows(attempt.faults),
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
                {"name": plan.player, "version": agent.version, "model": agent.model},
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
        with suppress(MachineError):
            self.exchanges.close()
        if self.recorder is not None:
            with suppress(MachineError):
                self.recorder.close()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def _usage(turns: int, seconds: float) -> dict[str, Any]:
    usage = Usage(turns=turns, seconds=round(seconds, 6))
    return {name: getattr(usage, name) for name in usage.__slots__}


def _awaited(attempt: Attempt, sittings: list[_Sitting]) -> list[str]:
    """Verifiers for which a person has yet to speak; none where the Trial failed, which waits for nobody."""
    if attempt.failure != "none":
        return []
    return list(dict.fromkeys(name for sitting in sittings for name in sitting.grades.awaited))


def _mean_score(sittings: list[_Sitting]) -> float | None:
    """The Trial's score: in a party the mean over the seats where one Agent has them all, else None.

    What several Agents reach against or with one another is each seat's own.
    """
    if len({sitting.agent.name for sitting in sittings}) > 1:
        return None
    return combine((1.0, sitting.grades.score) for sitting in sittings)


def _seat_row(sitting: _Sitting, graded: bool) -> dict[str, Any]:
    """What `result.json` says of one seat of a party."""
    return {
        "seat": sitting.seat,
        "agent": sitting.agent.name,
        "score": sitting.grades.score if graded else None,
        "return": sitting.returned,
        "answer": sitting.episode.answer,
        "n_steps": sitting.episode.usage.turns,
        "failure": sitting.failure,
    }


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


def _log(folder: TrialFolder, faults: list[Fault]) -> None:
    if not faults:
        return
    with (folder.logs_path / "faults.log").open("a", encoding="utf-8") as log:
        for trace in dict.fromkeys(f"{fault}\n{fault.trace}" for fault in faults):
            log.write(trace.rstrip() + "\n\n")
