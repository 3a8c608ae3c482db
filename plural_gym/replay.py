"""Replay: a Verifier run again on a stored Trial, without the Agent and without the Apps.

`relabel.py` comes here for `plural verifier try` and `apply`. The functions run in a worker that can be
killed, on what the folder says: every step with the State each App had then, the answer, the artifacts. So
an unchanged Verifier gives again what it gave live, except where it asked a running App by `query`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plural_gym.app import Control
from plural_gym.episode import Credit, Episode, HindsightTrial, Usage, recorded_apps
from plural_gym.errors import Fault, UsageError
from plural_gym.grading import AttemptGrading, Grade, grade
from plural_gym.host.client import RemoteHooks
from plural_gym.host.hooks import HookSet
from plural_gym.host.host import Outcome
from plural_gym.records import journal
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.runtime import Runtime
from plural_gym.state import Frozen, freeze_value
from plural_gym.step import RecordedWorld, TaskView
from plural_gym.verifier import Verifier, VerifierOutput, combine

NO_LOG = Path(os.devnull)
_UNPLAYED = ("environment", "infrastructure")
"""Failures of a Trial whose last action an App, or the machine under it, failed at."""


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
    if not verifier.runs_again:
        raise UsageError(
            f"Verifier {verifier.name!r} of kind {verifier.kind!r} has no code to run again; "
            "try and apply are for Verifiers with check, reward or hindsight functions."
        )
    with _replaying(verifier, HookSet.of(verifier), folder, task, runtime, controls, log) as one:
        return one.run()


def replay_hindsight(
    verifier: Verifier,
    folder: TrialFolder,
    task: TaskView,
    runtime: Runtime,
    score: float | None,
    controls: Mapping[str, Control] | None = None,
    log: Path = NO_LOG,
    seat: str | None = None,
) -> Replayed:
    """Let a Verifier's hindsight function judge one finished Trial, and run nothing else of the Verifier.

    Args:
        score: what the function is told: the Trial's, or in a party that of `seat`.

    The others, and what it raises, are as of `replay`.
    """
    hooks = HookSet(verifier.name, verifier.version, hindsight=verifier.functions()["hindsight"])
    with _replaying(verifier, hooks, folder, task, runtime, controls, log) as one:
        return one.credit(score, seat)


@contextmanager
def _replaying(
    verifier: Verifier,
    functions: HookSet,
    folder: TrialFolder,
    task: TaskView,
    runtime: Runtime,
    controls: Mapping[str, Control] | None,
    log: Path,
) -> Iterator["_Replay"]:
    result = folder.result()
    apps = dict(controls) if controls is not None else _apps_of(folder)
    timeouts_s = {verifier.name: verifier.timeouts_s()}
    seats = seats_of(result)
    hooks = RemoteHooks(lambda: runtime.open("hooks", log), [functions], timeouts_s, task, list(apps), seats)
    try:
        yield _Replay(verifier, folder, task, hooks, apps, result, log)
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
        log: Path,
    ) -> None:
        self.log = log
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
        output: Grade = None
        credits: tuple[Credit, ...] | Fault = ()
        score: float | None = None
        unread = [name for name in self.apps if name not in self.final]
        for name in unread:
            self.notes.append(f"App {name!r} has no recorded State (control none); here it reads as None.")
        if seats_of(self.result):
            if self.verifier.scores or "hindsight" in functions:
                said = (
                    "a party's Trial keeps its seats' scores and late credit; rewards alone are given anew."
                )
                self.notes.append(said)
        elif graded:
            episode = self._episode()
            if self.verifier.scores:
                output = self._check(episode)
            score = _combined(self.verifier, output, self.result)
            if "hindsight" in functions:
                credits = self._credit(episode, score)
        elif self.verifier.scores or "hindsight" in functions:
            said = f"the attempt was never graded (failure: {self.result['failure']})"
            self.notes.append(f"{said}, so check and hindsight have nothing to judge.")
        records = {record["event_id"]: record for record in self.trajectory}
        return Replayed(
            self.folder.id, output, tuple(self.rewards), score, credits, records, tuple(self.notes)
        )

    def credit(self, score: float | None, seat: str | None) -> Replayed:
        self._play_back()
        credits = self._credit(self._episode(), score, seat)
        records = {record["event_id"]: record for record in self.trajectory}
        return Replayed(self.folder.id, None, (), score, credits, records, tuple(self.notes))

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
            failed = self.result["failure"] in _UNPLAYED and line["turn"] == self.result["n_steps"]
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

    def _check(self, episode: Episode) -> Grade:
        own = [reward.value for reward in self.rewards if reward.value is not None]

        def run(verifier: Verifier, episode: Episode) -> VerifierOutput | Fault:
            return self.hooks.check(verifier.name, episode, own, self._world())

        artifacts = self.folder.artifacts_path
        grades = grade(
            [self.verifier], lambda verifier: AttemptGrading(episode, artifacts, run, verifier, self.log)
        )
        return grades.given[self.verifier.name]

    def _credit(
        self, episode: Episode, score: float | None, seat: str | None = None
    ) -> tuple[Credit, ...] | Fault:
        if self.result["status"] == "awaiting_review":
            self.notes.append("the Trial awaits a review; hindsight waits for the reviewed score.")
            return ()
        own = (call for call in self.folder.exchanges() if call["purpose"] == "agent")
        calls = [{**call, "event_id": call["exchange_id"]} for call in own]
        trial = HindsightTrial(score, episode.apps, episode.task, episode.trajectory, calls, seat)
        given = self.hooks.hindsight(self.verifier.name, trial, self._world())
        return given if isinstance(given, Fault) else tuple(given)


def seats_of(result: Mapping[str, Any]) -> tuple[str, ...]:
    """The seats of a party's Trial; () of any other."""
    return tuple(seat["seat"] for seat in result["seats"] if isinstance(seat, Mapping))


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
