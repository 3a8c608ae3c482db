"""Relabel: what a Verifier gives on a Job's stored Trials now, shown or added to their reward ledgers.

`plural verifier try` and `apply` call it, and `reviewing.py` for the hindsight that waited for a review; how
one Trial is replayed lies in `replay.py`. Lines of rewards.jsonl are only ever added. Nothing here changes a
score.
"""

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plural_gym import kinds
from plural_gym.app import Control
from plural_gym.errors import Fault, PluralError, UsageError
from plural_gym.gateway.client import require
from plural_gym.late_credit import add_run, extend, of_seat, row_of, rows_of
from plural_gym.project import Project
from plural_gym.receipt import Pin
from plural_gym.records import ledger
from plural_gym.records.job_folder import JobFolder
from plural_gym.records.reviewed import credit_due
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.replay import NO_LOG, Replayed, replay, replay_hindsight
from plural_gym.runtime import Runtime
from plural_gym.task import Task, TaskSet
from plural_gym.verifier import Verifier


@dataclass(frozen=True, slots=True)
class Replays:
    """A Verifier on the stored Trials of one Job."""

    job_id: str
    verifier: str
    version: str
    trials: tuple[Replayed, ...]
    skipped: Mapping[str, str]
    """Trial -> why it was left alone."""
    run_id: str | None = None
    """Under which the rewards were added to the ledgers; None where nothing was saved."""

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        return {
            "job_id": self.job_id,
            "verifier": self.verifier,
            "version": self.version,
            "run_id": self.run_id,
            "trials": [one.to_json() for one in self.trials],
            "skipped": dict(self.skipped),
        }


def try_verifier(
    verifier: Verifier,
    job: JobFolder,
    *,
    tasks: TaskSet | None = None,
    trial_ids: Sequence[str] | None = None,
    runtime: Runtime | None = None,
    log: Path = NO_LOG,
) -> Replays:
    """What a Verifier gives on a Job's stored Trials now. Saves nothing.

    Without `trial_ids`: the Trials whose Task lists the Verifier; all of them where none does.

    Args:
        tasks: where Tasks are looked up that the Job's own inputs do not give.
        runtime: None: worker processes on this machine.
        log: what the Verifier's code prints goes there.
    """
    require(verifier.models())
    with _running(runtime) as running:
        found = _Found(verifier, _Tasks(job, tasks), running, log)
        trials = [one for folder in found.folders(trial_ids) if (one := found.replay(folder))]
    return Replays(job.id, verifier.name, verifier.version, tuple(trials), found.skipped)


def apply_verifier(
    verifier: Verifier,
    job: JobFolder,
    *,
    tasks: TaskSet | None = None,
    trial_ids: Sequence[str] | None = None,
    runtime: Runtime | None = None,
    log: Path = NO_LOG,
) -> Replays:
    """As `try_verifier`, and add the rewards and hindsight credit to each Trial's ledger as one new run.

    The run takes the place of earlier ones of the same Verifier and version; lines are only ever added. The
    Trial's return follows the newest runs; its score stays as it is.
    """
    require(verifier.models())
    run_id = f"apply_{secrets.token_hex(6)}"
    trials = []
    try:
        with _running(runtime) as running:
            found = _Found(verifier, _Tasks(job, tasks), running, log)
            for folder in found.folders(trial_ids):
                one = found.replay(folder, save=lambda given: add_run(verifier, given, run_id, job))
                if one is not None:
                    trials.append(one)
    finally:
        ledger.seal(job)
    return Replays(job.id, verifier.name, verifier.version, tuple(trials), found.skipped, run_id)


REVIEW_RUN = "review"
"""The run of the credit that waited for a Trial's reviews."""


def credit_reviewed(
    job: JobFolder,
    folder: TrialFolder,
    *,
    tasks: TaskSet | None = None,
    runtime: Runtime | None = None,
    log: Path = NO_LOG,
) -> list[Fault]:
    """Let the hindsight functions that waited for a Trial's reviews credit it, told its reviewed score.

    For the holder of its lock. Their rows are added as one run, once. A function that cannot be run, or is
    not what it was when the Trial ran, leaves a fault that says how to run it later. Returns what failed.
    """
    if not any(folder.rewards(REVIEW_RUN)):
        extend(folder.rewards_path, _reviewed_rows(job, folder, tasks, runtime, log))
    return [
        Fault(
            f"verifier {row['verifier']} hindsight",
            row["error_type"],
            row["error_message"],
            row["error_at"],
        )
        for row in folder.rewards(REVIEW_RUN)
        if row["status"] == "error"
    ]


def _reviewed_rows(
    job: JobFolder, folder: TrialFolder, tasks: TaskSet | None, runtime: Runtime | None, log: Path
) -> list[dict[str, Any]]:
    result, found = folder.result(), _Tasks(job, tasks)
    pins = {pin["name"]: Pin(**pin) for pin in folder.receipt()["verifiers"]}
    scores = {
        seat and seat["seat"]: result["score"] if seat is None else seat["score"] for seat in result["seats"]
    }
    rows: list[dict[str, Any]] = []
    with _running(runtime) as running:
        for name in credit_due(result):
            try:
                task, verifier = found.pinned(str(result["task"]), pins[name])
                for seat, score in scores.items():
                    given = replay_hindsight(
                        verifier, folder, task.view, running, score, _controls(task), log, seat
                    )
                    rows += of_seat(rows_of(verifier, given, REVIEW_RUN), seat)
            except PluralError as error:
                later = f"plural verifier apply {name} --job {job.id} --trial {folder.id}"
                said = f"it could not run: {str(error).rstrip('.')}; give its credit later with: {later}"
                fault = Fault(f"verifier {name} hindsight", "GradingFault", said, "the Job's inputs")
                rows.append(row_of(pins[name], folder.id, REVIEW_RUN, "hindsight", None, None, fault))
    return [row | {"source": "review"} for row in rows]


class _Tasks:
    """The Tasks that the Trials of a Job played."""

    def __init__(self, job: JobFolder, tasks: TaskSet | None) -> None:
        self.job = job
        self._tasks = tasks
        self._lost: str | None = None
        self._inputs: TaskSet | None = None
        try:
            self._inputs = Project(job.inputs_path).tasks
        except PluralError as error:
            self._lost = str(error)

    def get(self, name: str) -> tuple[Task, str | None]:
        """The Task as the Job was run with, else the one at hand, with a note that says so."""
        why = self._lost
        if self._inputs is not None:
            try:
                return self._inputs.get(name), None
            except PluralError as error:
                why = str(error)
        if self._tasks is None:
            raise UsageError(f"Task {name!r} cannot be loaded: {why}")
        note = f"Task {name!r} is the current one; the Job's own copy cannot be loaded: {why}"
        return self._tasks.get(name), note

    def pinned(self, name: str, pin: Pin) -> tuple[Task, Verifier]:
        """A Task, and of its Verifiers the one that a Receipt pins. UsageError where it is another now."""
        task, _ = self.get(name)
        for verifier in task.verifiers:
            if (verifier.name, verifier.content_hash) == (pin.name, pin.content_hash):
                return task, verifier
        raise UsageError(f"Verifier {pin.name!r} of Task {name!r} has changed since the Trial ran.")


class _Found:
    """The Trials of a Job with the Tasks they played, and why some are left alone."""

    def __init__(self, verifier: Verifier, tasks: _Tasks, runtime: Runtime, log: Path) -> None:
        self._verifier, self._job, self._tasks = verifier, tasks.job, tasks
        self._runtime, self._log = runtime, log
        self.skipped: dict[str, str] = {}

    def folders(self, trial_ids: Sequence[str] | None) -> list[TrialFolder]:
        """The Trials to replay, in the order they are named, or else in the Job's."""
        found = []
        for name in self._in_order() if trial_ids is None else trial_ids:
            folder = self._job.trial(name)
            if folder.finished():
                found.append(folder)
            else:
                self.skipped[name] = "not finished"
        if trial_ids is not None:
            return found
        listed = [folder for folder in found if self._verifier.name in _verifiers_of(folder)]
        if listed:
            for folder in found:
                if folder not in listed:
                    self.skipped[folder.id] = f"the Task does not list Verifier {self._verifier.name!r}"
        return listed or found

    def _in_order(self) -> list[str]:
        """Every Trial that has a folder: by Task, then Agent, then attempt, unfinished ones last."""
        pins = self._job.pins()
        tasks = {task["name"]: place for place, task in enumerate(pins["tasks"])}
        agents = {agent["name"]: place for place, agent in enumerate(pins["agents"])}

        def place(name: str) -> tuple[int, int, int]:
            folder = self._job.trial(name)
            if not folder.result_path.exists():
                return len(tasks), 0, 0
            result = folder.result()
            return tasks[result["task"]], agents.get(result["agent"], len(agents)), result["attempt"]

        return sorted(self._job.trial_ids(), key=place)

    def replay(self, folder: TrialFolder, save: Callable[[Replayed], None] | None = None) -> Replayed | None:
        """One Trial, and its rewards saved under its lock; None where it is left alone."""
        name = str(folder.result()["task"])
        try:
            task, note = self._tasks.get(name)
            guard: AbstractContextManager[None] = folder.lock() if save else nullcontext()
            with guard:
                given = replay(self._verifier, folder, task.view, self._runtime, _controls(task), self._log)
                if save is not None:
                    save(given)
        except PluralError as error:
            if not self._verifier.runs_again:
                raise
            self.skipped[folder.id] = str(error)
            return None
        return given if note is None else dataclasses.replace(given, notes=(*given.notes, note))


def _running(runtime: Runtime | None) -> AbstractContextManager[Runtime]:
    return nullcontext(runtime) if runtime is not None else _OwnRuntime()


class _OwnRuntime(AbstractContextManager[Runtime]):
    def __enter__(self) -> Runtime:
        made: Runtime = kinds.load("plural.runtimes", "local")({})
        self._runtime = made
        return made

    def __exit__(self, *raised: object) -> None:
        self._runtime.close()


def _verifiers_of(folder: TrialFolder) -> list[str]:
    return [pin["name"] for pin in folder.receipt()["verifiers"]]


def _controls(task: Task) -> dict[str, Control]:
    return {
        name: kinds.load("plural.apps", app.kind).control
        for name, app in task.environment.declarations.items()
    }
