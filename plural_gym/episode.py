"""Episode: the full record of one finished attempt, as a check sees it; HindsightTrial: as hindsight does.

Built by the host while the Apps still run, or from a Trial's folder in replay.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import Any

from plural_gym import notebook
from plural_gym.app import Control
from plural_gym.errors import GradingFault, UnknownName, suggest
from plural_gym.plain_text import called
from plural_gym.records import strict_json
from plural_gym.state import Frozen, thaw
from plural_gym.step import RecordedWorld, TaskView, World


class EpisodeApp:
    """One App over a whole episode."""

    __slots__ = ("_final", "_initial", "_name", "_world", "control")

    control: Control
    """How far the host controls the App's State."""

    def __init__(
        self, name: str, control: Control, initial: Frozen | None, final: Frozen | None, world: World
    ) -> None:
        self._name = name
        self.control = control
        self._initial = initial
        self._final = final
        self._world = world

    @property
    def initial(self) -> Any:
        """The State before the first action; None where it cannot be read."""
        return None if self._initial is None else thaw(self._initial)

    @property
    def final(self) -> Any:
        """The State after the last action; None where it cannot be read."""
        return None if self._final is None else thaw(self._final)

    def frozen(self) -> tuple[Control, Frozen | None, Frozen | None]:
        """Control, first and last State, as values."""
        return self.control, self._initial, self._final

    def query(self, action: str, **arguments: Any) -> Any:
        """What a read-only action answers while the App still runs. Raises QueryRefused otherwise."""
        return self._world.query(self._name, action, arguments)


class EpisodeApps(Mapping[str, EpisodeApp]):
    """The Environment's Apps by name."""

    def __init__(self, apps: Mapping[str, EpisodeApp]) -> None:
        self._apps = dict(apps)

    def __getitem__(self, name: str) -> EpisodeApp:
        if name not in self._apps:
            raise UnknownName(f"the Environment has no App {name!r}; {suggest(name, self._apps)}")
        return self._apps[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._apps)

    def __len__(self) -> int:
        return len(self._apps)


@dataclass(frozen=True, slots=True)
class Usage:
    """What an attempt consumed. A count that nobody reported is None, never 0."""

    turns: int = 0
    seconds: float = 0.0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """Everything that happened in one attempt. The Agent never sees it."""

    task: TaskView
    apps: EpisodeApps
    trajectory: tuple[dict[str, Any], ...]
    """One record an action, in order: event_id, turn, app, action, arguments, observation, error, …"""
    observation: Any = None
    """The last thing the Agent saw."""
    answer: Any = None
    """What the Harness returned or `finish` gave; None where the Agent gave no answer."""
    stop_reason: str | None = None
    artifacts: tuple[dict[str, Any], ...] = ()
    """Files the Agent produced: path, sha256, size, media_type."""
    usage: Usage = field(default_factory=Usage)
    seat: str | None = None
    """Whose score is asked for, in a party."""

    @property
    def expected(self) -> Any:
        """The Task's answer key."""
        return self.task.expected

    @property
    def state(self) -> Any:
        """With one App its final State; with several a mapping from name to final State; {} with none."""
        finals = {name: app.final for name, app in self.apps.items()}
        return next(iter(finals.values())) if len(finals) == 1 else finals

    def to_json(self) -> dict[str, Any]:
        """The whole record as JSON values, for who reads it without this package."""
        return {
            "task": self.task.to_json(),
            "expected": self.expected,
            "state": self.state,
            "apps": {
                name: {"control": app.control, "initial": app.initial, "final": app.final}
                for name, app in self.apps.items()
            },
            "trajectory": list(self.trajectory),
            "observation": self.observation,
            "answer": self.answer,
            "stop_reason": self.stop_reason,
            "artifacts": list(self.artifacts),
            "usage": asdict(self.usage),
            "seat": self.seat,
        }

    def _repr_html_(self) -> str:
        """What happened, action by action, as a notebook shows it; State and Task lie folded below."""
        rows = []
        for record in self.trajectory:
            said = record["observation"] if record["error"] is None else f"rejected: {record['error']}"
            seen = said if isinstance(said, str) else strict_json.text(said)
            rows.append((record["turn"], called(record["action"], record["arguments"]), seen))
        told = [notebook.fold("instructions", notebook.pre(self.task.instructions))]
        told += [
            notebook.fold(f"State of {name}", notebook.pre(strict_json.encode(app.final, 2).decode()))
            for name, app in self.apps.items()
        ]
        if self.answer is not None:
            told.insert(0, notebook.pre(f"answer: {self.answer}"))
        aside = notebook.span((self.stop_reason or "goes on").replace("_", " "), notebook.QUIET)
        title = f"Episode of {self.task.name}" if self.task.name else "Episode"
        return notebook.card(title, notebook.table(["turn", "action", "seen"], rows), *told, aside=aside)


def recorded_apps(
    states: Mapping[str, tuple[Control, Frozen | None, Frozen | None]], world: World | None = None
) -> EpisodeApps:
    """Apps from (control, initial, final); `world` where they still run and can be queried."""
    source = world or RecordedWorld({name: final for name, (_, _, final) in states.items()})
    return EpisodeApps(
        {
            name: EpisodeApp(name, control, first, last, source)
            for name, (control, first, last) in states.items()
        }
    )


@dataclass(frozen=True, slots=True)
class Credit:
    """A reward given after the episode, for one step or one model call."""

    event_id: str
    value: float
    target: str
    """`step` or `model_call`."""


@dataclass(frozen=True, slots=True)
class HindsightTrial:
    """A finished attempt and its score, for a hindsight function to credit.

    Every step's record carries `event_id`; every model call's record carries it too.
    """

    score: float | None
    """The Trial's score; None where it has none."""
    apps: EpisodeApps
    task: TaskView
    trajectory: Sequence[dict[str, Any]]
    calls: Sequence[dict[str, Any]] = ()
    seat: str | None = None

    def steps(self, action: str | None = None) -> list[dict[str, Any]]:
        """The Environment steps, rejected ones included; of one action where it is named."""
        return [record for record in self.trajectory if action is None or record["action"] == action]

    def model_calls(self) -> list[dict[str, Any]]:
        """The model calls, in the order they were made."""
        return list(self.calls)

    def credit(self, event_id: str, value: float) -> Credit:
        """Credit one step or model call. Yield what this returns.

        Raises:
            GradingFault: no step or call has that id, or the value is not a finite number.
        """
        given: Any = value
        number = math.inf
        if not isinstance(given, bool) and isinstance(given, Real):
            with suppress(OverflowError):
                number = float(given)
        if not math.isfinite(number):
            raise GradingFault(f"credit {ascii(value)[:80]} is not a finite number.")
        if any(record["event_id"] == event_id for record in self.trajectory):
            return Credit(event_id, number, "step")
        if any(record["event_id"] == event_id for record in self.calls):
            return Credit(event_id, number, "model_call")
        raise GradingFault(f"no step or model call has the event_id {ascii(event_id)[:80]}.")
