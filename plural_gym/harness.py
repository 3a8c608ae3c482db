"""Harness: the loop that drives an Agent, and all that it may hold.

A Harness is anything with `play(task, seat) -> answer`. The Trial builds the seat and calls `drive` in its
own thread; the kinds lie in `harnesses/`. What stands here as a Protocol is the seat door: observations and
errors, never score, reward or State.
"""

import asyncio
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from plural_gym import kinds
from plural_gym.errors import DefinitionError
from plural_gym.identity import code_identity


@dataclass(frozen=True, slots=True)
class TaskBrief:
    """What a Harness sees of the Task: its instructions and nothing else, not even its name."""

    instructions: str


class AgentView(Protocol):
    """What a Harness sees of the Agent it plays."""

    @property
    def instructions(self) -> str:
        """What the Agent is told beside every Task."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The Agent's sampling settings, such as `temperature`."""
        ...

    def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None = None) -> Any:
        """One answer of the Agent's model, with `.text` and `.tool_calls`. Raises where it has no model."""
        ...


class Seat(Protocol):
    """A place in the world, as a Harness holds it."""

    @property
    def agent(self) -> AgentView:
        """The Agent that sits here."""
        ...

    @property
    def actions(self) -> list[dict[str, Any]]:
        """The actions on offer, as OpenAI function tools."""
        ...

    @property
    def observation(self) -> Any:
        """The last thing seen: the opening, then what each action returned. None: nothing yet."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the episode is over."""
        ...

    def act(self, name: str, /, **arguments: Any) -> Any:
        """Take one action; returns its observation.

        Raises:
            ActionRejected: the action did not accept the input. The episode goes on.
            EpisodeOver: the episode had ended before.
        """
        ...

    def view(self) -> Any:
        """What can be seen now. In a party it waits until this seat may act or the episode is over."""
        ...


@runtime_checkable
class Plays(Protocol):
    """Whatever can drive an Agent."""

    def play(self, task: TaskBrief, seat: Seat) -> Any:
        """Play one attempt and return the Agent's answer, or an awaitable of it."""
        ...


class Harness(ABC):
    """The loop that shows an Agent what it can see, performs what it decides, and repeats.

    A kind is constructed with its config as keyword arguments. One Harness plays many Trials, several at a
    time, so `play` keeps what it knows in local variables.
    """

    kind: ClassVar[str] = ""
    """The name it is registered under; "" for an own one."""

    name: str = ""
    version: str = "0.1.0"
    title: str = ""
    description: str = ""
    _folder: Path | None = None

    @abstractmethod
    def play(self, task: TaskBrief, seat: Seat) -> Any:
        """Play one attempt; returns the Agent's answer, or an awaitable of it."""

    @property
    def code(self) -> Any:
        """The author's function or class that plays."""
        return type(self)

    @property
    def config(self) -> Mapping[str, Any]:
        """What it was configured with, JSON values."""
        return {}

    def identity(self) -> dict[str, Any]:
        """What an Agent's content hash covers of it: code and config; name, title and version left out."""
        return {"code": code_identity(self.code, self.folder), "config": dict(self.config)}

    @property
    def folder(self) -> Path | None:
        """Its folder in a project; None where it was built in Python."""
        return self._folder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class FunctionHarness(Harness):
    """A Harness made of a function `(task, seat)`; config reaches it as keyword arguments."""

    def __init__(self, function: Callable[..., Any], config: Mapping[str, Any] | None = None) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._config = dict(config or {})
        _fits(function, (None, None), self._config, f"harness {self.name!r}")

    @property
    def code(self) -> Any:
        return self._function

    @property
    def config(self) -> Mapping[str, Any]:
        return self._config

    def play(self, task: TaskBrief, seat: Seat) -> Any:
        return self._function(task, seat, **self._config)


class ObjectHarness(Harness):
    """A Harness made of an object that has `play` and derives from nothing of ours."""

    def __init__(self, player: Plays, config: Mapping[str, Any] | None = None) -> None:
        self.name = str(getattr(player, "name", "") or type(player).__name__)
        self._player = player
        self._config = dict(config or {})
        _fits(player.play, (None, None), {}, f"harness {self.name!r}")

    @property
    def code(self) -> Any:
        return type(self._player)

    @property
    def config(self) -> Mapping[str, Any]:
        return self._config

    def play(self, task: TaskBrief, seat: Seat) -> Any:
        return self._player.play(task, seat)


def as_harness(value: Any, config: Mapping[str, Any] | None = None) -> Harness:
    """The Harness that `value` stands for: a function, an object or class with `play`, or a kind's name.

    `config`: keyword arguments for a class, a kind or a function.

    Raises:
        UnknownName: a kind that does not exist.
        DefinitionError: something that cannot play, or a config that it does not take.
    """
    config = dict(config or {})
    if isinstance(value, str):
        return as_harness(kinds.load("plural.harnesses", value), config)
    if isinstance(value, type):
        return _built(value, config)
    if isinstance(value, Harness) or (isinstance(value, Plays) and callable(value.play)):
        if config:
            raise DefinitionError(f"harness {value!r} is built already and takes no config; pass its class.")
        return value if isinstance(value, Harness) else ObjectHarness(value)
    if callable(value):
        return FunctionHarness(value, config)
    raise DefinitionError(
        f"{value!r} is no Harness; give a function (task, seat), an object with play(task, seat), or the "
        "name of a kind."
    )


def _built(harness_class: type, config: Mapping[str, Any]) -> Harness:
    name = harness_class.__name__
    if not callable(getattr(harness_class, "play", None)):
        raise DefinitionError(f"class {name} is no Harness: it has no method play(task, seat).")
    lacking: frozenset[str] = getattr(harness_class, "__abstractmethods__", frozenset())
    if lacking:
        raise DefinitionError(f"class {name} is no Harness yet: it lacks {', '.join(sorted(lacking))}.")
    _fits(harness_class, (), config, f"harness {getattr(harness_class, 'kind', '') or name!r}")
    made = harness_class(**config)
    if isinstance(made, Harness):
        made.name = made.name or made.kind or name
        return made
    return ObjectHarness(made, config)


def _fits(function: Callable[..., Any], given: tuple[Any, ...], config: Mapping[str, Any], who: str) -> None:
    """Raise DefinitionError where `function` cannot be called with these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*given, **config)
    except TypeError as error:
        takes = "(task, seat)" if given else "its config as keyword arguments"
        offered = ", ".join(signature.parameters) or "nothing"
        raise DefinitionError(f"{who} takes {takes}: {error}; it accepts: {offered}.") from None


def drive(harness: Harness, task: TaskBrief, seat: Seat) -> Any:
    """Play one attempt in this thread and return the answer.

    An async `play` gets an event loop of its own: it may block in `seat.act`, which async Apps on a shared
    loop could then never answer.
    """
    answer = harness.play(task, seat)
    if not inspect.isawaitable(answer):
        return answer

    async def waited() -> Any:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(waited())
    return _in_a_thread(lambda: asyncio.run(waited()))


def _in_a_thread(work: Callable[[], Any]) -> Any:
    """The result of `work`, done in a thread that has no event loop, as a notebook's has."""
    outcome: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="plural-harness")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return outcome[0]
