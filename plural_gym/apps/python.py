"""The App kind `python`: a class of an author, played in this process."""

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from plural_gym.app import ActionSpec, App, AppDeclaration, Control, LiveApp, read_actions, settle
from plural_gym.board import Board
from plural_gym.errors import CheckpointError, DefinitionError
from plural_gym.state import Frozen, State, check_setup, copier, copy_lines, freezer, maker
from plural_gym.step import TaskView

_CALLED = (
    *("reset", "terminated", "truncated", "board", "is_legal", "rng"),
    *("turn", "view", "eliminated", "forfeit"),
)
"""What the host calls by name."""
_GIVEN = frozenset({"resources", "task"})
"""Attributes the host gives and a checkpoint leaves out."""


@functools.cache
def state_class(app_class: type[App]) -> type[State]:
    """The State class an App annotates; an empty State where it annotates none.

    Raises:
        DefinitionError: the annotation is missing at run time or is no State.
    """
    try:
        hints = get_type_hints(app_class)
    except NameError as error:
        raise DefinitionError(f"App {app_class.__name__}: {error}; its State must be importable.") from error
    found = hints.get("state", State)
    if not (isinstance(found, type) and issubclass(found, State)):
        raise DefinitionError(
            f"App {app_class.__name__}: state is annotated as {found!r}; annotate a class derived from State."
        )
    return found


def check_class(app_class: type[App]) -> None:
    """Hold an App class to what the host calls.

    Raises:
        DefinitionError: an action under a name the host uses, a `reset` that does not take the Task, or an
            `is_legal` that the host cannot call.
    """
    for name in _CALLED:
        if hasattr(inspect.getattr_static(app_class, name), "__plural_action__"):
            raise DefinitionError(
                f"App {app_class.__name__}: an action cannot be named {name!r}: the host calls that."
            )
    try:
        inspect.signature(app_class.reset).bind(None, None)
    except TypeError:
        raise DefinitionError(
            f"App {app_class.__name__}: reset takes the Task; write def reset(self, task)."
        ) from None
    try:
        inspect.signature(app_class.is_legal).bind(None, "", None)
    except TypeError:
        raise DefinitionError(
            f"App {app_class.__name__}: is_legal takes an action's name and its arguments; write "
            "def is_legal(self, action, arguments=None)."
        ) from None
    if inspect.iscoroutinefunction(app_class.is_legal):
        raise DefinitionError(
            f"App {app_class.__name__}: is_legal answers at once; write def is_legal, without async."
        )


def _takes_attributes(app_class: type[App]) -> bool:
    """Whether the class leaves making its instances, and setting what the host gives, to Python."""
    given = ("_entropy", "resources", "seat", "state", "task")
    return (
        app_class.__new__ is object.__new__
        and app_class.__setattr__ is object.__setattr__
        and not any(hasattr(inspect.getattr_static(app_class, name, None), "__set__") for name in given)
    )


@functools.cache
def actions(app_class: type[App]) -> tuple[ActionSpec, ...]:
    """The actions of an App class."""
    check_class(app_class)
    return read_actions(app_class)


def _call(app_class: type[App], action: str) -> str | None:
    """The expression that calls an action of `app` with the arguments of the mapping `given`.

    Written out argument by argument, since to unpack a mapping costs more than the call. None for an action
    with defaults, of which `given` need not hold every argument.
    """
    parameters = list(inspect.signature(getattr(app_class, action)).parameters.values())[1:]
    if any(parameter.default is not parameter.empty for parameter in parameters):
        return None
    arguments = ", ".join(f"{parameter.name}=given[{parameter.name!r}]" for parameter in parameters)
    return f"app.{action}({arguments})"


@functools.cache
def _caller(app_class: type[App], action: str) -> Callable[[App, Mapping[str, Any]], Any]:
    """The function that calls an action of an App with arguments by name."""
    call = _call(app_class, action)
    if call is None:
        return lambda app, given: getattr(app, action)(**given)
    # In this file's name, so that no line of it is taken for the author's.
    caller: Callable[[App, Mapping[str, Any]], Any] = eval(
        compile(f"lambda app, given: {call}", __file__, "eval")
    )
    return caller


class PythonApp(LiveApp):
    """An author's App class with a State of its own."""

    control: Control = "full"

    @classmethod
    def describe(cls, declaration: AppDeclaration) -> tuple[ActionSpec, ...]:
        return actions(declaration.options["class"])

    @classmethod
    def check_setup(cls, declaration: AppDeclaration, setup: Mapping[str, Any]) -> None:
        check_setup(state_class(declaration.options["class"]), dict(setup))

    @classmethod
    def setup_fields(cls, declaration: AppDeclaration) -> tuple[str, ...]:
        return tuple(state_class(declaration.options["class"]).model_fields)

    def __init__(self, declaration: AppDeclaration) -> None:
        self.kind: type[App] = declaration.options["class"]
        self._state_class = state_class(self.kind)
        self._freeze = freezer(self._state_class)
        self.copier = copier(self._state_class)
        """Copies the fields of a plain State; None for any other State."""
        self.make = maker(self._state_class)
        """Makes a State of a Task's setup."""
        self._callers = {spec.name: _caller(self.kind, spec.name) for spec in actions(self.kind)}
        self.plain = _takes_attributes(self.kind)
        """Whether what the host gives can be set as any attribute."""
        self.plain_init = self.kind.__init__ is object.__init__
        self.plain_reset = self.kind.reset is App.reset
        self.ends = self.kind.terminated is not App.terminated
        self.cuts = self.kind.truncated is not App.truncated
        self.forbids = self.kind.is_legal is not App.is_legal
        self.leads = self.kind.turn is not App.turn
        self.eliminates = self.kind.eliminated is not App.eliminated

    def open(self, task: TaskView, setup: Mapping[str, Any], entropy: int, resources: Path) -> Any:
        app = self.kind.__new__(self.kind)
        given = app.__dict__
        given["state"] = self.make(setup)
        given["_entropy"] = entropy
        given["resources"] = resources
        given["task"] = task
        given["seat"] = None
        if not self.plain_init:
            app.__init__()  # type: ignore[misc]
        self.app = app
        return None if self.plain_reset else settle(app.reset(task))

    def call(self, spec: ActionSpec) -> str | None:
        """The expression that calls an action of `app` with the arguments of `given`; None with defaults."""
        return _call(self.kind, spec.name)

    def copy_lines(self) -> tuple[str, ...]:
        """Lines that copy the `fields` of a plain State into a `copied`; none for any other State."""
        return copy_lines(self._state_class)

    def act(self, spec: ActionSpec, arguments: Mapping[str, Any], seat: str | None) -> Any:
        app = self.app
        if seat is not None:
            app.seat = seat
        return self._callers[spec.name](app, arguments)

    def terminated(self) -> bool:
        return self.app.terminated()

    def truncated(self) -> bool:
        return self.app.truncated()

    def board(self) -> Board | None:
        board: Any = settle(self.app.board())
        if board is None or isinstance(board, Board):
            return board
        raise TypeError(f"board() gave {ascii(board)[:80]}; return a Board or None")

    def is_legal(self, spec: ActionSpec, arguments: Mapping[str, Any] | None, seat: str | None) -> bool:
        app = self.app
        if seat is not None:
            app.seat = seat
        return bool(app.is_legal(spec.name, arguments))

    def turn(self) -> Any:
        return settle(self.app.turn())

    def view(self, seat: str) -> Any:
        return settle(self.app.view(seat))

    def eliminated(self) -> Any:
        return settle(self.app.eliminated())

    def forfeit(self, seat: str) -> bool:
        if self.kind.forfeit is App.forfeit:
            return False
        settle(self.app.forfeit(seat))
        return True

    def snapshot(self) -> Frozen:
        state = self.app.state  # type: ignore[attr-defined]
        copy_fields = self.copier
        if copy_fields is not None:
            return copy_fields, copy_fields(state.__dict__)
        return self._freeze(state)

    def save(self) -> Any:
        live = {key: value for key, value in self.app.__dict__.items() if key not in _GIVEN}
        try:
            return copy.deepcopy(live)
        except Exception as error:
            raise CheckpointError(
                f"App {self.kind.__name__} holds something that cannot be copied: {error}."
            ) from error

    def restore(self, saved: Any) -> None:
        given = {key: self.app.__dict__[key] for key in _GIVEN if key in self.app.__dict__}
        self.app.__dict__.clear()
        self.app.__dict__.update(copy.deepcopy(saved), **given)
