"""Step: one action of an episode, as a reward function sees it.

Everything a Step holds is a value: what a function changes in it changes neither the world, the records nor
what the next Verifier sees. Values are thawed on first access, since most functions read one or two.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from plural_gym.errors import QueryRefused, UnknownName, suggest
from plural_gym.state import Frozen, freeze_value, thaw

_SCALARS = (str, int, float, bool, type(None))
UNREAD: Final = object()
"""In place of a State that the reward function's code does not name; only a debugger may ask for it."""


class TaskView:
    """What Apps and Verifiers see of a Task. Each holder gets values of its own (`fresh`)."""

    __slots__ = ("_expected", "_frozen", "_info", "_metadata", "instructions", "name")

    name: str
    """The Task's name; "" for an unnamed Task."""
    instructions: str

    def __init__(
        self, name: str, instructions: str, info: Any = None, metadata: Any = None, expected: Any = None
    ) -> None:
        self.name = name
        self.instructions = instructions
        empty: dict[str, Any] = {}
        self._frozen = (
            freeze_value(empty if info is None else info),
            freeze_value(empty if metadata is None else metadata),
            freeze_value(expected),
        )

    def fresh(self) -> "TaskView":
        """The same Task with values that nobody else holds."""
        view = TaskView.__new__(TaskView)
        view.name, view.instructions, view._frozen = self.name, self.instructions, self._frozen
        return view

    @property
    def info(self) -> Any:
        """The Task's public facts, any JSON."""
        return self._value("_info", 0)

    @property
    def metadata(self) -> Any:
        """Notes about the Task, a mapping."""
        return self._value("_metadata", 1)

    @property
    def expected(self) -> Any:
        """The Task's answer key; None where it has none. The Agent never sees it."""
        return self._value("_expected", 2)

    def _value(self, slot: str, index: int) -> Any:
        try:
            return getattr(self, slot)
        except AttributeError:
            value = thaw(self._frozen[index])
            setattr(self, slot, value)
            return value

    def to_json(self) -> dict[str, Any]:
        """The view as JSON, for another process."""
        info, metadata, expected = (thaw(part) for part in self._frozen)
        return {
            "name": self.name,
            "instructions": self.instructions,
            "info": info,
            "metadata": metadata,
            "expected": expected,
        }

    def __repr__(self) -> str:
        return f"TaskView({self.name!r})"


class World(Protocol):
    """Where hooks read the Apps: the live host, a connection to it, or a record."""

    def app_names(self) -> tuple[str, ...]: ...

    def snapshot(self, app: str) -> Frozen | None: ...

    def query(self, app: str, action: str, arguments: Mapping[str, Any]) -> Any: ...


class RecordedWorld:
    """Apps that no longer run: their recorded State can be read, `query` cannot reach them."""

    def __init__(self, states: Mapping[str, Frozen | None]) -> None:
        self._states = states

    def app_names(self) -> tuple[str, ...]:
        return tuple(self._states)

    def snapshot(self, app: str) -> Frozen | None:
        return self._states[app]

    def query(self, app: str, action: str, arguments: Mapping[str, Any]) -> Any:
        raise QueryRefused(
            f"query of {app}.{action} needs the running App, which is gone in replay; read its state instead."
        )


class StepApp:
    """One App of the Environment, read-only, at the time of a step."""

    __slots__ = ("_name", "_world")

    def __init__(self, name: str, world: World) -> None:
        self._name = name
        self._world = world

    @property
    def state(self) -> Any:
        """The App's State after the step; None where it cannot be read."""
        return self.snapshot()

    def snapshot(self) -> Any:
        """The App's State, read anew; a fresh value at each call."""
        frozen = self._world.snapshot(self._name)
        return None if frozen is None else thaw(frozen)

    def query(self, action: str, **arguments: Any) -> Any:
        """What a read-only action of the App answers. Raises QueryRefused for any other action."""
        return self._world.query(self._name, action, arguments)


class StepApps(Mapping[str, StepApp]):
    """The Environment's Apps by name."""

    __slots__ = ("_world",)

    def __init__(self, world: World) -> None:
        self._world = world

    def __getitem__(self, name: str) -> StepApp:
        names = self._world.app_names()
        if name not in names:
            raise UnknownName(f"the Environment has no App {name!r}; {suggest(name, names)}")
        return StepApp(name, self._world)

    def __iter__(self) -> Iterator[str]:
        return iter(self._world.app_names())

    def __len__(self) -> int:
        return len(self._world.app_names())


class Step:
    """One action of an episode: what was done, what came of it, and the acting App before and after."""

    __slots__ = (
        "_after",
        "_arguments",
        "_before",
        "_event_id",
        "_observation",
        "_task",
        "_world",
        "action",
        "app",
        "error",
        "seat",
        "turn",
    )

    app: str | None
    """The acting App; None where no App has the action."""
    action: str
    turn: int
    """Counted from 1."""
    error: str | None
    """Why the action rejected its input; None where it did not."""
    seat: str | None
    """Who acted, in a party."""
    _event_id: str | Callable[[int], str] | None
    """An id, or what makes it of the turn: few functions ask."""
    _before: Any
    _after: Any
    """The State as a `Frozen`, thawed in its place at the first look: no JSON value is bytes or a tuple."""

    def __init__(
        self,
        task: TaskView,
        app: str | None,
        action: str,
        arguments: Mapping[str, Any],
        turn: int,
        observation: Any,
        error: str | None,
        before: Frozen | None,
        after: Frozen | None,
        world: World,
        seat: str | None = None,
        event_id: str | None = None,
    ) -> None:
        self._task = task
        self.app = app
        self.action = action
        self._arguments = arguments
        self.turn = turn
        self._observation = observation
        self.error = error
        self._before = before
        self._after = after
        self._world = world
        self.seat = seat
        self._event_id = event_id

    @property
    def event_id(self) -> str | None:
        """The step's id in the record; None where nothing is recorded."""
        given = self._event_id
        return given(self.turn) if callable(given) else given

    @property
    def task(self) -> TaskView:
        """The Task being run: its name, info, metadata and expected."""
        return self._task.fresh()

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments the Agent sent, as JSON values."""
        return {key: _own(value) for key, value in unpacked(self._arguments).items()}

    @property
    def observation(self) -> Any:
        """What the Agent saw back; None where the action rejected its input."""
        return _own(self._observation)

    @property
    def previous_state(self) -> Any:
        """The acting App's State before the action, as JSON values; None where it cannot be read."""
        state = self._before
        if state.__class__ is tuple:
            state = self._before = state[0](state[1])
        elif state.__class__ is bytes:
            state = self._before = thaw(state)
        elif state is UNREAD:
            raise AttributeError(
                "previous_state was not taken: the reward function's code does not read it; name it there."
            )
        return state

    @property
    def current_state(self) -> Any:
        """The acting App's State after the action, as JSON values; None where it cannot be read."""
        state = self._after
        if state.__class__ is tuple:
            state = self._after = state[0](state[1])
        elif state.__class__ is bytes:
            state = self._after = thaw(state)
        elif state is UNREAD:
            raise AttributeError(
                "current_state was not taken: the reward function's code does not read it; name it there."
            )
        return state

    @property
    def apps(self) -> StepApps:
        """Every App in the Environment, read-only."""
        return StepApps(self._world)

    def __repr__(self) -> str:
        outcome = f"error={self.error!r}" if self.error is not None else f"observation={self._observation!r}"
        arguments = unpacked(self._arguments)
        return f"Step(turn={self.turn}, action={self.action!r}, arguments={arguments!r}, {outcome})"


def unpacked(arguments: Any) -> Mapping[str, Any]:
    """The arguments of an action that were kept as `(names, value, …)`: a third of a mapping's memory."""
    if arguments.__class__ is tuple:
        return dict(zip(arguments[0], arguments[1:], strict=True))
    given: Mapping[str, Any] = arguments
    return given


class BlankStep(Step):
    """A Step that is filled attribute by attribute: made without arguments at half the cost."""

    __slots__ = ()
    __init__ = object.__init__


class PromptStep(BlankStep):
    """A Step whose State after the action was taken for its reader alone, and need not be kept as it was."""

    __slots__ = ("current_state",)


def _own(value: Any) -> Any:
    return value if type(value) in _SCALARS else thaw(freeze_value(value))
