"""Replay: a Verifier run again on stored Trials, without the Agent and without the Apps.

`plural verifier try` and `apply` come here. Its functions run in a worker that can be killed, on what the
Trial's folder says: every step with the State each App had then, the answer, the artifacts. So an unchanged
Verifier gives again what it gave live, except where it asked a running App by `query`.

`apply_verifier` adds rewards to a Trial's ledger. Nothing here changes a score or `result.json`.
"""

import dataclasses
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plural_gym import kinds
from plural_gym.app import Control
from plural_gym.episode import Credit, Episode, HindsightTrial, Usage, recorded_apps
from plural_gym.errors import Fault, PluralError, UsageError
from plural_gym.host.client import RemoteHooks
from plural_gym.host.hooks import HookSet
from plural_gym.host.host import Outcome
from plural_gym.project import Project
from plural_gym.records import journal, ledger
from plural_gym.records.job_folder import JobFolder
from plural_gym.records.journal import Journal
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.runtime import Runtime
from plural_gym.state import Frozen, freeze_value
from plural_gym.step import RecordedWorld, TaskView
from plural_gym.task import Task, TaskSet
from plural_gym.verifier import Verifier, VerifierOutput, combine

NO_LOG = Path(os.devnull)


@dataclass(frozen=True, slots=True)
class ReplayedReward:
    """What the reward function gives for one recorded step."""

    record: Mapping[str, Any]
    """The step, as a trajectory shows it."""
    value: float | None
    """None: no signal, or a fault."""
    fault: Fault | None

    @property
    def event_id(self) -> str:
        """The step's id."""
        return str(self.record["event_id"])


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a Verifier gives on one stored Trial now."""

    trial_id: str
    output: VerifierOutput | Fault | None
    """Of its check; None where it has none, or the attempt was never graded."""
    rewards: tuple[ReplayedReward, ...]
    """One for each recorded step that a reward function is asked about; empty without one."""
    trial_score: float | None
    """What hindsight was given: the stored scores of the Trial's other Verifiers combined with this one's
    score now. None: unknown."""
    credits: tuple[Credit, ...] | Fault
    """Of its hindsight function."""
    records: Mapping[str, Mapping[str, Any]]
    """Every step by its event id."""
    notes: tuple[str, ...] = ()
    """What could not be done as in the live Trial, in sentences."""

    @property
    def score(self) -> float | None:
        """The Verifier's score now; None where there is none."""
        return self.output.score if isinstance(self.output, VerifierOutput) else None

    @property
    def faults(self) -> list[Fault]:
        """Everything in the Verifier's code that failed."""
        found = [reward.fault for reward in self.rewards if reward.fault is not None]
        return found + [one for one in (self.output, self.credits) if isinstance(one, Fault)]

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        credits = [] if isinstance(self.credits, Fault) else self.credits
        return {
            "trial_id": self.trial_id,
            "score": self.score,
            "scores": self.output.scores if isinstance(self.output, VerifierOutput) else {},
            "evidence": list(self.output.evidence) if isinstance(self.output, VerifierOutput) else [],
            "trial_score": self.trial_score,
            "rewards": [
                {
                    "event_id": reward.event_id,
                    "turn": reward.record["turn"],
                    "value": reward.value,
                    "fault": None if reward.fault is None else str(reward.fault),
                }
                for reward in self.rewards
            ],
            "credits": [{"event_id": one.event_id, "value": one.value} for one in credits],
            "faults": [str(fault) for fault in self.faults],
            "notes": list(self.notes),
        }


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


def replay(
    verifier: Verifier,
    folder: TrialFolder,
    task: TaskView,
    runtime: Runtime,
    controls: Mapping[str, Control] | None = None,
    log: Path = NO_LOG,
) -> Replayed:
    """Run a Verifier's functions on one finished Trial.

    A function that raises, loops or ends its process becomes a Fault and costs nothing else.

    Args:
        task: the Trial's Task as Verifiers see it.
        controls: every App of the Environment with its control level; None: the Apps the record names.
        log: what the functions print goes there.

    Raises:
        UsageError: the Verifier's kind has no code to run again.
        RecordError: the Trial has not finished, or its record is damaged.
    """
    if not verifier.functions():
        raise UsageError(
            f"Verifier {verifier.name!r} of kind {verifier.kind!r} has no code to run again; "
            "try and apply are for Verifiers with check, reward or hindsight functions."
        )
    result = folder.result()
    apps = dict(controls) if controls is not None else _apps_of(folder)
    hooks = RemoteHooks(
        lambda: runtime.open("hooks", log),
        [HookSet.of(verifier)],
        {verifier.name: verifier.timeouts_s()},
        task,
        list(apps),
    )
    try:
        return _Replay(verifier, folder, task, hooks, apps, result).run()
    finally:
        hooks.close()


class _Replay:
    """One Verifier on one Trial."""

    def __init__(
        self,
        verifier: Verifier,
        folder: TrialFolder,
        task: TaskView,
        hooks: RemoteHooks,
        apps: Mapping[str, Control],
        result: Mapping[str, Any],
    ) -> None:
        self.verifier, self.folder, self.task, self.hooks = verifier, folder, task, hooks
        self.apps, self.result = apps, result
        self.rewards: list[ReplayedReward] = []
        self.trajectory: list[dict[str, Any]] = []
        self.opening: Any = None
        self.initial: dict[str, Frozen] = {}
        self.final: dict[str, Frozen] = {}
        self.notes: list[str] = []

    def run(self) -> Replayed:
        self._play_back()
        functions, graded = self.verifier.functions(), self.result["failure"] in ("none", "grader")
        output: VerifierOutput | Fault | None = None
        credits: tuple[Credit, ...] | Fault = ()
        score: float | None = None
        unread = [name for name in self.apps if name not in self.final]
        for name in unread:
            self.notes.append(f"App {name!r} has no recorded State (control none); here it reads as None.")
        if graded:
            episode = self._episode()
            if "check" in functions:
                output = self._check(episode)
            score = _combined(self.verifier, output, self.result)
            if "hindsight" in functions:
                credits = self._credit(episode, score)
        elif len(functions) > ("reward" in functions):
            said = f"the attempt was never graded (failure: {self.result['failure']})"
            self.notes.append(f"{said}, so check and hindsight have nothing to judge.")
        records = {record["event_id"]: record for record in self.trajectory}
        return Replayed(
            self.folder.id, output, tuple(self.rewards), score, credits, records, tuple(self.notes)
        )

    def _play_back(self) -> None:
        """Read the timeline once, asking for a reward after each step as it was asked live."""
        states: Mapping[str, Any] = {}
        for line in self.folder.timeline():
            changed = {app: state for app, state in line["states"].items() if state is not states.get(app)}
            before, states = dict(self.final), line["states"]
            self.final |= {app: freeze_value(state) for app, state in changed.items()}
            if line["kind"] == "reset":
                self.opening, self.initial = line["observation"], dict(self.final)
                continue
            keys = ("event_id", "turn", "seat", "app", "action", "arguments", "observation", "error")
            record = {key: line.get(key) for key in keys}
            # An action that the App failed at was not rewarded live either.
            failed = self.result["failure"] == "environment" and line["turn"] == self.result["n_steps"]
            self.trajectory.append(record)
            if line["app"] is not None and not failed and self.hooks.rewarding:
                self.rewards.append(self._reward(line, record, before))

    def _reward(
        self, line: Mapping[str, Any], record: Mapping[str, Any], before: Mapping[str, Frozen]
    ) -> ReplayedReward:
        app = line["app"]
        outcome = Outcome(
            app,
            line["action"],
            line["arguments"] or {},
            line["observation"],
            line["error"],
            None,
            before.get(app),
            self.final.get(app),
            line["terminated"],
            line["truncated"],
        )
        [(value, fault)] = self.hooks.reward(
            self.task, outcome, line["turn"], self._world(), line["event_id"], line.get("seat")
        )
        return ReplayedReward(record, value, fault)

    def _world(self) -> RecordedWorld:
        return RecordedWorld({name: self.final.get(name) for name in self.apps})

    def _episode(self) -> Episode:
        stored = self.result["usage"]
        seen = self.opening
        if self.trajectory:
            last = self.trajectory[-1]
            seen = {"error": last["error"]} if last["error"] is not None else last["observation"]
        return Episode(
            task=self.task.fresh(),
            apps=recorded_apps(
                {
                    name: (
                        control if name in self.final else "none",
                        self.initial.get(name),
                        self.final.get(name),
                    )
                    for name, control in self.apps.items()
                }
            ),
            trajectory=tuple(self.trajectory),
            observation=seen,
            answer=self.result["answer"],
            stop_reason=self.result["stop_reason"],
            artifacts=tuple(self.folder.artifacts()),
            usage=Usage(
                turns=stored["turns"],
                seconds=stored.get("seconds") or self.result["seconds"],
                prompt_tokens=stored.get("prompt_tokens"),
                completion_tokens=stored.get("completion_tokens"),
                cost_usd=stored.get("cost_usd"),
            ),
        )

    def _check(self, episode: Episode) -> VerifierOutput | Fault:
        own = [reward.value for reward in self.rewards if reward.value is not None]
        return self.hooks.check(self.verifier.name, episode, own, self._world())

    def _credit(self, episode: Episode, score: float | None) -> tuple[Credit, ...] | Fault:
        if self.result["status"] == "awaiting_review":
            self.notes.append("the Trial awaits a review; hindsight waits for the reviewed score.")
            return ()
        calls = [{**call, "event_id": call["exchange_id"]} for call in self.folder.exchanges()]
        trial = HindsightTrial(score, episode.apps, episode.task, episode.trajectory, calls)
        given = self.hooks.hindsight(self.verifier.name, trial, self._world())
        return given if isinstance(given, Fault) else tuple(given)


def _combined(
    verifier: Verifier, output: VerifierOutput | Fault | None, result: Mapping[str, Any]
) -> float | None:
    """The Trial's score as it would be with this Verifier's score now."""
    shares = [(row["weight"], row["score"]) for row in result["scores"] if row["verifier"] != verifier.name]
    if verifier.scores:
        shares.append((verifier.weight, output.score if isinstance(output, VerifierOutput) else None))
    return combine(shares)


def _apps_of(folder: TrialFolder) -> dict[str, Control]:
    """The Apps a record names: those with State, and those that acted."""
    apps: dict[str, Control] = {}
    for line in journal.read(folder.steps_path) if folder.steps_path.exists() else ():
        apps.update(dict.fromkeys(line["state"] or {}, "full"))
        if line["app"] is not None:
            apps.setdefault(line["app"], "none")
    return apps


# --- the Trials of a Job ---


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

    The run takes the place of earlier ones of the same Verifier and version; lines are only ever added.
    Scores and summaries stay as they are.
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
    with Journal.open(folder.rewards_path) as rewards:
        for row in rows:
            rewards.append(row)


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
