"""Relabel: what a Verifier gives on a Job's stored Trials now, shown or added to their reward ledgers.

`plural verifier try` and `apply` call it; how one Trial is replayed lies in `replay.py`. Lines of
rewards.jsonl are only ever added. Nothing here changes a score or `result.json`.
"""

import dataclasses
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plural_gym import kinds
from plural_gym.app import Control
from plural_gym.errors import Fault, PluralError, UsageError
from plural_gym.project import Project
from plural_gym.records import ledger
from plural_gym.records.atomic import write_bytes
from plural_gym.records.job_folder import JobFolder
from plural_gym.records.journal import Journal
from plural_gym.records.strict_json import encode
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.replay import NO_LOG, Replayed, replay
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
    with _running(runtime) as running:
        found = _Found(verifier, job, tasks, running, log)
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
    run_id = f"apply_{secrets.token_hex(6)}"
    trials = []
    try:
        with _running(runtime) as running:
            found = _Found(verifier, job, tasks, running, log)
            for folder in found.folders(trial_ids):
                one = found.replay(folder, save=lambda given: _append(verifier, given, run_id, job))
                if one is not None:
                    trials.append(one)
    finally:
        ledger.seal(job)
    return Replays(job.id, verifier.name, verifier.version, tuple(trials), found.skipped, run_id)


class _Found:
    """The Trials of a Job with the Tasks they played, and why some are left alone."""

    def __init__(
        self, verifier: Verifier, job: JobFolder, tasks: TaskSet | None, runtime: Runtime, log: Path
    ) -> None:
        self._verifier, self._job, self._tasks = verifier, job, tasks
        self._runtime, self._log = runtime, log
        self.skipped: dict[str, str] = {}
        self._lost: str | None = None
        self._inputs: TaskSet | None = None
        try:
            self._inputs = Project(job.inputs_path).tasks
        except PluralError as error:
            self._lost = str(error)

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
            return tasks[result["task"]], agents[result["agent"]], result["attempt"]

        return sorted(self._job.trial_ids(), key=place)

    def replay(self, folder: TrialFolder, save: Callable[[Replayed], None] | None = None) -> Replayed | None:
        """One Trial, and its rewards saved under its lock; None where it is left alone."""
        name = str(folder.result()["task"])
        try:
            task, note = self._task(name)
            guard: AbstractContextManager[None] = folder.lock() if save else nullcontext()
            with guard:
                given = replay(self._verifier, folder, task.view, self._runtime, _controls(task), self._log)
                if save is not None:
                    save(given)
        except PluralError as error:
            if not self._verifier.functions():
                raise
            self.skipped[folder.id] = str(error)
            return None
        return given if note is None else dataclasses.replace(given, notes=(*given.notes, note))

    def _task(self, name: str) -> tuple[Task, str | None]:
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


# --- into the ledger ---


def _append(verifier: Verifier, given: Replayed, run_id: str, job: JobFolder) -> None:
    """Add one run's rows to the Trial's rewards.jsonl; for the holder of its lock."""
    folder = job.trial(given.trial_id)
    rows = list(_rows(verifier, given, run_id))
    replaced = {
        row["kind"]
        for row in folder.current_rewards()
        if (row["verifier"], row["verifier_version"]) == (verifier.name, verifier.version)
    }
    # Where an earlier run gave something and this one gives nothing, a line has to say that it is nothing.
    for kind in sorted(replaced - {row["kind"] for row in rows}):
        rows.append(_row(verifier, given.trial_id, run_id, kind, None, None, None))
    _extend(folder.rewards_path, rows)
    live = [row["value"] for row in folder.current_rewards() if row["kind"] == "step"]
    values = [value for value in live if value is not None]
    folder.update({"return": math.fsum(values) if values else None})


def _extend(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to a journal, all of them or none, whenever this process is killed.

    A part of a run would take the place of the whole run before it. So the journal grows beside its place.
    """
    with Journal.open(path):
        whole = path.read_bytes() + b"".join(encode(row) + b"\n" for row in rows)
        write_bytes(path, whole)


def _rows(verifier: Verifier, given: Replayed, run_id: str) -> Iterator[dict[str, Any]]:
    for reward in given.rewards:
        yield _row(verifier, given.trial_id, run_id, "step", reward.record, reward.value, reward.fault)
    if isinstance(given.credits, Fault):
        yield _row(verifier, given.trial_id, run_id, "hindsight", None, None, given.credits)
        return
    times: dict[str, int] = {}
    for credit in given.credits:
        record = given.records.get(credit.event_id) or {"event_id": credit.event_id}
        row = _row(verifier, given.trial_id, run_id, "hindsight", record, credit.value, None)
        exchange = credit.event_id if credit.target == "model_call" else row["exchange_id"]
        row |= {"target": credit.target, "exchange_id": exchange}
        # A reward counts once by its id; one step may be credited several times.
        times[credit.event_id] = count = times.get(credit.event_id, 0) + 1
        yield row if count == 1 else row | {"reward_id": f"{row['reward_id']}-{count}"}


def _row(
    verifier: Verifier,
    trial_id: str,
    run_id: str,
    kind: str,
    record: Mapping[str, Any] | None,
    value: float | None,
    fault: Fault | None,
) -> dict[str, Any]:
    """A line of rewards.jsonl, with the fields that the live recorder writes."""
    record = record or {}
    event_id = record.get("event_id")
    return {
        "reward_id": f"{event_id or trial_id}-{kind}-{verifier.name}-{run_id}",
        "ts": time.time(),
        "verifier": verifier.name,
        "verifier_version": verifier.version,
        "kind": kind,
        "target": "step",
        "event_id": event_id,
        "exchange_id": record.get("exchange_id"),
        "seat": record.get("seat"),
        "turn": record.get("turn"),
        "app": record.get("app"),
        "action": record.get("action"),
        "value": value,
        "status": "error" if fault is not None else "none" if value is None else "ok",
        "error_type": None if fault is None else fault.type,
        "error_message": None if fault is None else fault.message,
        "error_at": None if fault is None else fault.at,
        "source": "apply",
        "run_id": run_id,
        "code_sha256": verifier.content_hash,
    }
