"""Session: one live episode. Drives the host, asks the hooks for rewards, keeps limits, and feeds a recorder.

Two doors lead here. The controller's door is the Session itself: rewards, faults, State. An Agent's Harness
only ever holds the seat door (`trial.Seat`), which shows observations and errors.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, Protocol, cast

from plural_gym.environment import Limits
from plural_gym.episode import Episode, Usage, recorded_apps
from plural_gym.errors import EpisodeOver, Fault
from plural_gym.host.hooks import Reward
from plural_gym.host.host import Outcome
from plural_gym.state import Frozen, freeze_value, frozen_json, thaw
from plural_gym.step import TaskView, World, unpacked

Past = tuple[Any, ...]
"""An Outcome without State as the bare values that `outcome_of` takes: six times as cheap to keep.

Its `rewards` may be a number, where the only rewarding Verifier gave one; its arguments, what `step.unpacked`
reads.
"""


def outcome_of(past: Past) -> Outcome:
    """The Outcome that was kept as bare values."""
    app, action, arguments, observation, error, fault, rewards, terminated, truncated, stop_reason = past
    arguments = unpacked(arguments)
    outcome = Outcome(app, action, arguments, observation, error, fault, None, None, terminated, truncated)
    outcome.rewards = ((rewards, None),) if type(rewards) is float else rewards
    outcome.stop_reason = stop_reason
    return outcome


class Host(World, Protocol):
    """The Apps, in this process or in a worker."""

    def open(
        self, task: TaskView, setup: Mapping[str, Mapping[str, Any]], seed: int, resources: Path
    ) -> Any: ...

    def act(
        self, name: str, arguments: Mapping[str, Any], watch: bool = True, seat: str | None = None
    ) -> Outcome: ...

    def controls(self) -> Mapping[str, Any]: ...

    def snapshots(self) -> dict[str, Frozen | None]: ...

    def close(self) -> None: ...


class Rewarder(Protocol):
    """What a Session needs of the hooks."""

    @property
    def rewarding(self) -> tuple[str, ...]: ...

    def reward(
        self,
        task: TaskView,
        outcome: Outcome,
        turn: int,
        world: World,
        event_id: str | None = None,
        seat: str | None = None,
    ) -> list[Reward]: ...


class Recorder(Protocol):
    """Where a Session's record goes, line by line."""

    def event_id(self, turn: int) -> str: ...

    def opened(self, observation: Any, states: Mapping[str, Frozen | None]) -> None: ...

    def stepped(
        self,
        turn: int,
        outcome: Outcome,
        states: Mapping[str, Frozen | None],
        rewarding: tuple[str, ...],
        seconds: float,
    ) -> None: ...

    def acted(
        self,
        turn: int,
        app: str,
        action: str,
        arguments: Mapping[str, Any],
        observation: Any,
        error: str | None,
        frozen: Frozen | None,
        rewarding: tuple[str, ...],
        rewards: float | Sequence[Reward],
        seconds: float,
        terminated: bool,
        truncated: bool,
    ) -> None: ...


class Session:
    """One episode at a time on one host. Not thread-safe; one thread plays it."""

    def __init__(self, host: Host, hooks: Rewarder, limits: Limits, recorder: Recorder | None = None) -> None:
        self.host = host
        self.hooks = hooks
        self.limits = limits
        self._recorder = recorder
        self._watch = bool(hooks.rewarding) or recorder is not None
        self._max_turns = limits.turns
        self._max_seconds = limits.seconds
        self._deadline: float | None = None
        self.task: TaskView = TaskView("", "")
        self.stop_reason: str | None = "not started"
        self.graders: tuple[Any, ...] = ()
        """Who grades the episode: Verifiers or plain functions, as they were given."""
        self.past: list[Outcome | Past] = []
        """What every action so far came to, in order; read it through `trail`."""

    def open(
        self,
        task: TaskView,
        setup: Mapping[str, Mapping[str, Any]],
        seed: int,
        resources: Path,
        keep_initial: bool = True,
    ) -> Any:
        """Start an episode; returns the opening observation or None.

        Args:
            keep_initial: whether checks may follow, which read the State at the start.

        Raises:
            AppFault: an App could not be set up.
        """
        self.task = task
        self.turn = 0
        self.answer: Any = None
        self.fault: Fault | None = None
        self.terminated = self.truncated = False
        self.past = []
        self._started = monotonic()
        self._deadline = None if self._max_seconds is None else self._started + self._max_seconds
        self.stop_reason = "error"
        self.opening = self.host.open(task, setup, seed, resources)
        self.stop_reason = None
        self.initial = self.host.snapshots() if keep_initial or self._recorder is not None else {}
        if self._recorder is not None:
            self.states = dict(self.initial)
            self._recorder.opened(self.opening, self.initial)
        return self.opening

    def act(self, name: str, arguments: Mapping[str, Any], seat: str | None = None) -> Outcome:
        """Take one action: act, reward, record, reply, in this order.

        Raises:
            EpisodeOver: the episode has ended before.
        """
        if self.stop_reason is not None:
            raise EpisodeOver(f"the episode is over ({self.stop_reason}).")
        self.turn = turn = self.turn + 1
        began = 0.0 if self._recorder is None else perf_counter()
        outcome = self.host.act(name, arguments, self._watch, seat)
        return self._complete(turn, outcome, began, seat)

    def reject(self, action: str, error: str, app: bool = True, seat: str | None = None) -> Outcome:
        """Count an input that names no action as a rejected Step of the only App; of none with several.

        Args:
            action: what was meant, as far as that can be told.
            app: False where the input was meant for no App, such as a malformed `finish`.
        """
        if self.stop_reason is not None:
            raise EpisodeOver(f"the episode is over ({self.stop_reason}).")
        self.turn = turn = self.turn + 1
        names = self.host.app_names()
        only = names[0] if app and len(names) == 1 else None
        state = self.host.snapshot(only) if only is not None and self._watch else None
        outcome = Outcome(only, action, {}, None, error, None, state, state, False, False)
        return self._complete(turn, outcome, perf_counter(), seat)

    def _complete(self, turn: int, outcome: Outcome, began: float, seat: str | None) -> Outcome:
        """Reward, conclude and record what an action came to."""
        recorder = self._recorder
        outcome.seat = seat
        if self._watch and outcome.app is not None and outcome.fault is None:
            event_id = None if recorder is None else recorder.event_id(turn)
            outcome.rewards = self.hooks.reward(self.task, outcome, turn, self.host, event_id, seat)
        outcome.stop_reason, outcome.terminated, outcome.truncated = self.conclude(
            outcome.fault, outcome.terminated, outcome.truncated
        )
        if recorder is not None:
            self._record(recorder, turn, outcome, perf_counter() - began)
        # The trail keeps no State: a large one over many steps would not fit in memory.
        outcome.before = outcome.after = None
        self.past.append(outcome)
        return outcome

    def conclude(
        self, fault: Fault | None, terminated: bool, truncated: bool
    ) -> tuple[str | None, bool, bool]:
        """End the episode where the Apps, a fault or a limit do so with the action just taken.

        Returns:
            The stop reason, None where the episode goes on; whether it is terminated; whether truncated.
        """
        reason = None
        if fault is not None:
            self.fault, reason, terminated, truncated = fault, "error", False, True
        elif terminated:
            reason = "environment_terminated"
        elif truncated:
            reason = "environment_truncated"
        elif self.turn >= self._max_turns:
            reason, truncated = "max_turns", True
        elif self.is_overdue():
            reason, truncated = "max_seconds", True
        if reason is not None:
            self.stop(reason, terminated, truncated)
        return reason, terminated, truncated

    def is_overdue(self) -> bool:
        """Whether `limits.seconds` has run out."""
        return self._deadline is not None and monotonic() >= self._deadline

    @property
    def trail(self) -> list[Outcome]:
        """What every action so far came to, in order, without State."""
        for index, one in enumerate(self.past):
            if type(one) is tuple:
                self.past[index] = outcome_of(one)
        return cast(list[Outcome], self.past)

    @property
    def last(self) -> Outcome:
        """What the last action came to."""
        one = self.past[-1]
        if type(one) is tuple:
            one = self.past[-1] = outcome_of(one)
        return cast(Outcome, one)

    def save(self) -> dict[str, Any]:
        """Turn, limits and what happened so far, as a value for `load`."""
        return {
            "turn": self.turn,
            "seconds": self.seconds,
            "trail": tuple(self.trail),
            # As bytes: a checkpoint may be pickled, and a compiled copier cannot be.
            "initial": {name: state and frozen_json(state) for name, state in self.initial.items()},
            "opening": self.opening,
            "answer": self.answer,
            "stop": (self.stop_reason, self.terminated, self.truncated),
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Put back what `save` gave, right after `open`."""
        self.turn = saved["turn"]
        self.past = list(saved["trail"])
        self.initial = dict(saved["initial"])
        self.opening, self.answer = saved["opening"], saved["answer"]
        self.stop_reason, self.terminated, self.truncated = saved["stop"]
        self._started = monotonic() - saved["seconds"]
        if self.limits.seconds is not None:
            self._deadline = self._started + self.limits.seconds

    def _record(self, recorder: Recorder, turn: int, outcome: Outcome, seconds: float) -> None:
        states = self.states
        if len(states) <= 1:
            if outcome.app is not None:
                states[outcome.app] = outcome.after
        else:
            states.update(self.host.snapshots())
            if outcome.app is not None:
                states[outcome.app] = outcome.after
        recorder.stepped(turn, outcome, states, self.hooks.rewarding, seconds)

    def stop(self, reason: str, terminated: bool = False, truncated: bool = False) -> None:
        """End the episode, if it has not ended: a limit outside the Apps, or the Agent's own finish."""
        if self.stop_reason is None:
            self.stop_reason, self.terminated, self.truncated = reason, terminated, truncated

    def finish(self, answer: Any) -> None:
        """The Agent ends the episode with an answer. No Step, no reward."""
        if self.stop_reason is not None:
            raise EpisodeOver(f"the episode is over ({self.stop_reason}).")
        self.answer = answer
        self.stop("agent_finished", terminated=True)

    @property
    def seconds_left(self) -> float | None:
        """Time until `limits.seconds` runs out; None without that limit."""
        return None if self._deadline is None else self._deadline - monotonic()

    @property
    def seconds(self) -> float:
        """How long the episode has taken so far."""
        return monotonic() - self._started

    def own_rewards(self, verifier: str, seat: str | None = None) -> list[float]:
        """One Verifier's step rewards, in order; to one seat, in a party."""
        if verifier not in self.hooks.rewarding:
            return []
        index = self.hooks.rewarding.index(verifier)
        values = (outcome.rewards[index][0] for outcome in self.trail if outcome.rewards)
        return [value for value in values if value is not None]

    def trajectory(self) -> tuple[dict[str, Any], ...]:
        """One record an action, in order, as hooks and records show it; values that nobody else holds."""
        event_id = self._recorder.event_id if self._recorder is not None else "step-{}".format
        records = [
            {
                "event_id": event_id(turn),
                "turn": turn,
                "seat": outcome.seat,
                "app": outcome.app,
                "action": outcome.action,
                "arguments": outcome.arguments,
                "observation": outcome.observation,
                "error": outcome.error,
            }
            for turn, outcome in enumerate(self.trail, 1)
        ]
        return tuple(thaw(freeze_value(records)))

    @property
    def observation(self) -> Any:
        """The last thing the Agent saw."""
        if not self.past:
            return self.opening
        last = self.last
        return {"error": last.error} if last.error is not None else last.observation

    def episode(self, artifacts: tuple[dict[str, Any], ...] = (), usage: Usage | None = None) -> Episode:
        """The record so far, for a check; its Apps can be queried while the host lives."""
        finals = self.host.snapshots()
        controls = self.host.controls()
        states = {name: (controls[name], self.initial.get(name), finals[name]) for name in finals}
        return Episode(
            task=self.task.fresh(),
            apps=recorded_apps(states, self.host),
            trajectory=self.trajectory(),
            observation=self.observation,
            answer=self.answer,
            stop_reason=self.stop_reason,
            artifacts=artifacts,
            usage=usage or Usage(turns=self.turn, seconds=self.seconds),
        )
