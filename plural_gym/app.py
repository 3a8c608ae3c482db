"""App: one system the Agent can use; its actions, its State, and the contract of every App kind.

Authors subclass `App` and mark methods with `@action`. The host plays through `LiveApp`, which each kind
in `apps/` fulfils; nothing here knows about transport, rewards or records.
"""

import asyncio
import copy
import inspect
import re
import threading
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import numpy as np
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError, with_config
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict

from plural_gym.board import Board
from plural_gym.errors import ActionRejected, DefinitionError
from plural_gym.state import Frozen, json_bytes

if TYPE_CHECKING:
    from plural_gym.step import TaskView

Control = Literal["full", "snapshot", "none", "recorded"]
"""How far the host controls an App's State: set up, read and restored; read only; not at all; a recording."""

ACTION_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 86_400.0
"""A day: the longest that any author's function may take."""


class App:
    """One system the Agent can use: actions it offers, and a State it keeps to itself.

    Annotate `state` with a `State` class. Name, docstring and type hints of each action are what the Agent
    is told; what the action returns is all that it sees. Raise `ValueError` to reject an input: the Agent
    reads the message and the episode goes on. Any other exception is the App's own fault.
    """

    if TYPE_CHECKING:
        resources: Path
        """Folder with the Environment's Resources, fresh for each Trial."""
        seat: str | None
        """Who acts now, in a party; None with a single Agent."""
        task: TaskView
        """The Task being played."""

    _entropy: int = 0
    _rng: np.random.Generator | None = None

    @property
    def rng(self) -> np.random.Generator:
        """The App's only source of randomness: the episode's seed repeats it exactly."""
        if self._rng is None:
            self._rng = np.random.default_rng(self._entropy)
        return self._rng

    def reset(self, task: "TaskView") -> Any:
        """Prepare the world after the Task's setup; may return an opening observation."""
        return None

    def terminated(self) -> bool:
        """Whether the episode has reached its end."""
        return False

    def truncated(self) -> bool:
        """Whether the App cuts the episode off."""
        return False

    def board(self) -> Board | None:
        """What a person who watches is shown now, in render modes and notebooks; None for nothing.

        The Agent never sees it: put on it what a person may know. It is asked for at any time after `reset`,
        or not at all, so change nothing in it and draw nothing from `rng`.
        """
        return None

    def is_legal(self, action: str, arguments: Mapping[str, Any] | None = None) -> bool:
        """Whether an action may be taken now; training loops mask the others.

        Nothing enforces it: an action that is taken all the same says itself whether it rejects the input.
        Called often, so be quick, and change nothing.

        Args:
            action: the action's name in this App.
            arguments: as the action would get them, valid by its type hints; None: with some arguments.
        """
        return True

    def turn(self) -> str | Collection[str]:
        """In a party: the seat, or the seats, that may act now.

        Several seats move at the same time: each acts once, or as often as it is named. An App that does
        not define it leaves the order to the others; where none does, every seat may act at any time.
        """
        raise NotImplementedError

    def view(self, seat: str) -> Any:
        """In a party: what a seat sees when its turn comes, and nothing that it should not know."""
        return None

    def eliminated(self) -> Collection[str]:
        """In a party: the seats that play no more, while the others go on. None comes back."""
        return ()

    def forfeit(self, seat: str) -> Any:
        """In a party: a seat has been left by its Agent; settle what that means and go on without it.

        Afterwards `turn` must not name it. An App that does not define it ends the episode there.
        """
        raise NotImplementedError


_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def action(function: _F, /) -> _F: ...
@overload
def action(*, read_only: bool = False, timeout_s: float = ...) -> Callable[[_F], _F]: ...
def action(function: Any = None, /, *, read_only: bool = False, timeout_s: float = ACTION_TIMEOUT_S) -> Any:
    """Mark a method of an App as an action.

    Args:
        function: the method; given when the decorator is used bare.
        read_only: promises not to change State; such actions are what `query` accepts.
        timeout_s: seconds after which a worker gives the action up, as the App's fault; at most a day.

    Raises:
        DefinitionError: no method, or a timeout that is no such number.
    """
    if function is None:
        return lambda method: _mark(method, read_only, timeout_s)
    return _mark(function, read_only, timeout_s)


def _mark(function: Any, read_only: bool, timeout_s: Any) -> Any:
    if not callable(function):
        raise DefinitionError("@action marks methods; use it as @action or @action(read_only=True).")
    number = isinstance(timeout_s, Real) and not isinstance(timeout_s, bool)
    if not number or not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise DefinitionError(
            f"action {function.__name__!r}: timeout_s is a number of seconds above 0 and up to "
            f"{MAX_TIMEOUT_S:.0f}, got {timeout_s!r}."
        )
    function.__plural_action__ = {"read_only": read_only, "timeout_s": timeout_s}
    return function


class CertainFit(NamedTuple):
    """A test of arguments, the mapping `given`, that is no more than a look at each."""

    text: str
    """The test as an expression, to be written into functions."""
    names: tuple[tuple[str, Hashable], ...]
    """What the expression names beside `given`, and what that is."""
    arguments: tuple[str, ...]
    """The arguments' names."""
    test: Callable[[Any], bool]
    """The test as a function."""


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """What an Agent is told of one action, and what checks its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments: an object."""
    read_only: bool
    timeout_s: float = ACTION_TIMEOUT_S
    validate: Callable[[Mapping[str, Any]], Mapping[str, Any]] = field(default=dict, compare=False)
    """Returns the arguments as the method takes them; raises pydantic.ValidationError or ActionRejected."""
    fits: "CertainFit | None" = field(default=None, compare=False)
    """Whether arguments are certain to fit as they are, so that `validate` would only copy them. None: never
    certain. Tells ten times as fast."""

    def tool(self, name: str | None = None) -> dict[str, Any]:
        """The action as an OpenAI function tool."""
        function = {
            "name": name or self.name,
            "description": self.description,
            # A copy: whoever is offered the tool may change what it got.
            "parameters": copy.deepcopy(dict(self.parameters)),
        }
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class AppDeclaration:
    """An App as an Environment holds it: its kind and what that kind needs, before anything runs."""

    kind: str
    options: Mapping[str, Any]
    """For `python`: {"class": the App class}. Other kinds: their manifest's keys."""
    folder: Path | None = None
    """Where the manifest's relative paths start."""


class LiveApp:
    """The contract of every App kind: one running App of one episode.

    The host calls `open` once, then `act`, `snapshot` and `terminated` in turn, from one thread.
    `describe` answers before anything runs.
    """

    control: Control = "full"
    ends: bool = True
    """Whether `terminated` can become True."""
    cuts: bool = True
    """Whether `truncated` can become True."""
    forbids: bool = False
    """Whether `is_legal` can be False."""
    repeatable: bool = True
    """Whether a seed and the same actions repeat an episode; False for a system that is not ours."""
    leads: bool = False
    """Whether it says whose turn it is, in a party."""
    eliminates: bool = False
    """Whether it may take seats out, in a party."""

    @classmethod
    def describe(cls, declaration: AppDeclaration) -> tuple[ActionSpec, ...]:
        """The actions an App of this declaration offers, in declared order."""
        raise NotImplementedError

    @classmethod
    def check_setup(cls, declaration: AppDeclaration, setup: Mapping[str, Any]) -> None:
        """Raise pydantic.ValidationError where a Task's setup does not fit the State."""
        raise NotImplementedError

    @classmethod
    def setup_fields(cls, declaration: AppDeclaration) -> tuple[str, ...] | None:
        """The fields that a Task's setup may name; None where the kind cannot tell."""
        return None

    def __init__(self, declaration: AppDeclaration) -> None:
        raise NotImplementedError

    def open(self, task: "TaskView", setup: Mapping[str, Any], entropy: int, resources: Path) -> Any:
        """Start the episode; returns the opening observation or None."""
        raise NotImplementedError

    def act(self, spec: ActionSpec, arguments: Mapping[str, Any], seat: str | None) -> Any:
        """Perform one action with validated arguments and return what it returned."""
        raise NotImplementedError

    def snapshot(self) -> Frozen | None:
        """The State now, as a value; None where it cannot be read."""
        raise NotImplementedError

    def terminated(self) -> bool:
        """Whether the App has ended the episode."""
        return False

    def truncated(self) -> bool:
        """Whether the App cuts the episode off."""
        return False

    def board(self) -> Board | None:
        """What a person is shown of the App now; None for nothing."""
        return None

    def is_legal(self, spec: ActionSpec, arguments: Mapping[str, Any] | None, seat: str | None) -> bool:
        """Whether an action may be taken now, with these validated arguments; None: with some."""
        return True

    def turn(self) -> Any:
        """In a party: who may act now, as the author said it; asked only where it `leads`."""
        raise NotImplementedError

    def view(self, seat: str) -> Any:
        """In a party: what a seat sees now; None for nothing."""
        return None

    def eliminated(self) -> Any:
        """In a party: who is out, as the author said it."""
        return ()

    def forfeit(self, seat: str) -> bool:
        """In a party: take a seat out whose Agent has left; whether the App can go on without it."""
        return False

    def save(self) -> Any:
        """All that `restore` needs, as a value. Raises CheckpointError where the kind cannot."""
        raise NotImplementedError

    def restore(self, saved: Any) -> None:
        """Put back what `save` gave."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what the App holds. Safe to call twice."""


def read_actions(app_class: type) -> tuple[ActionSpec, ...]:
    """The actions of an App class, in the order they are written.

    Raises:
        DefinitionError: an action whose arguments have no type hints or a type without a JSON Schema.
    """
    specs = []
    for name in _ordered_names(app_class):
        method = inspect.getattr_static(app_class, name, None)
        mark = getattr(method, "__plural_action__", None)
        if mark is not None and callable(method):
            specs.append(_read_action(app_class, name, method, mark))
    return tuple(specs)


def _ordered_names(app_class: type) -> list[str]:
    names: dict[str, None] = {}
    for base in reversed(app_class.__mro__):
        names.update(dict.fromkeys(vars(base)))
    return list(names)


def _read_action(
    app_class: type, name: str, method: Callable[..., Any], mark: Mapping[str, Any]
) -> ActionSpec:
    where = f"{app_class.__name__}.{name}"
    try:
        hints = get_type_hints(method, include_extras=True)
    except NameError as error:
        raise DefinitionError(f"{where}: {error}; the type hints of an action must be importable.") from error
    described = _argument_docs(method)
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise DefinitionError(f"{where}: arguments are passed by name; *, ** and / cannot be offered.")
        if parameter.name not in hints:
            raise DefinitionError(f"{where}: argument {parameter.name!r} needs a type hint.")
        hint = hints[parameter.name]
        if parameter.default is not parameter.empty:
            defaults[parameter.name] = parameter.default
            hint = NotRequired[hint]
        fields[parameter.name] = hint
    arguments = with_config(ConfigDict(extra="forbid"))(TypedDict(f"{name}_arguments", fields))  # type: ignore[operator]
    try:
        adapter = TypeAdapter(arguments)
        schema = _plain_schema(adapter.json_schema())
    except (PydanticUserError, TypeError) as error:
        detail = str(error).split("\n")[0]
        raise DefinitionError(f"{where}: its arguments have no JSON Schema: {detail}") from error
    for key, default in defaults.items():
        try:
            schema["properties"][key]["default"] = to_jsonable_python(default)
        except PydanticSerializationError:
            raise DefinitionError(f"{where}: the default of {key!r} is not a JSON value.") from None
    for key, text in described.items():
        schema.get("properties", {}).get(key, {}).setdefault("description", text)
    return ActionSpec(
        name=name,
        description=_summary(method),
        parameters=MappingProxyType(schema),
        read_only=mark["read_only"],
        timeout_s=mark["timeout_s"],
        validate=_validation(name, adapter),
        fits=None if defaults else _certain_fit(fields),
    )


def _validation(action: str, adapter: TypeAdapter[Any]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """What `ActionSpec.validate` is, of one action's arguments.

    Arguments are JSON values, and JSON is read by other rules than Python values are: a strict date may be
    text, a strict set a list. What is no JSON value is written as one first, or rejected.
    """
    look: Callable[[Mapping[str, Any]], Mapping[str, Any]] = adapter.validator.validate_python
    read: Callable[[bytes], Mapping[str, Any]] = adapter.validator.validate_json

    def validate(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if _SCALARS.issuperset(map(type, arguments.values())):
            with suppress(ValidationError):
                return look(arguments)
        return read(_written(action, arguments))

    return validate


def _written(action: str, arguments: Mapping[str, Any]) -> bytes:
    try:
        return json_bytes(arguments)
    except Exception:  # of a stranger's object, or of what contains itself
        for key, value in arguments.items():
            try:
                json_bytes(value)
            except Exception:
                said = f"{action}: {key} is, or holds, what has no JSON form: a {type(value).__name__}."
                raise ActionRejected(said) from None
        raise


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _certain_fit(hints: Mapping[str, Any]) -> CertainFit | None:
    """A test that arguments are exactly these scalars; None where some hint asks for more than a look."""
    tests = ["given.__class__ is dict", f"len(given) == {len(hints)}"]
    values: dict[str, Hashable] = {}
    for index, (name, hint) in enumerate(hints.items()):
        if hint in (str, bool, int):
            tests.append(f"given.get({name!r}).__class__ is {hint.__name__}")
            # What records may have to write otherwise is looked at closely.
            if hint is str:
                tests.append(f"given[{name!r}].isascii()")
            elif hint is int:
                tests.append(f"-(2**63) <= given[{name!r}] < 2**63")
        elif get_origin(hint) is Literal and all(type(value) is str for value in get_args(hint)):
            values[f"among{index}"] = frozenset(get_args(hint))
            tests.append(f"given.get({name!r}).__class__ is str and given[{name!r}] in among{index}")
        else:
            return None
    text = " and ".join(tests)
    # In this file's name, so that no line of it is taken for the author's.
    test = eval(compile(f"lambda given: {text}", __file__, "eval"), dict(values))
    return CertainFit(text, tuple(values.items()), tuple(hints), test)


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the titles pydantic invents: they tell a model nothing."""

    def strip(node: Any, named: bool = False) -> Any:
        if isinstance(node, dict):
            return {
                key: strip(value, key in ("properties", "$defs"))
                for key, value in node.items()
                if named or key != "title" or not isinstance(value, str)
            }
        return [strip(item) for item in node] if isinstance(node, list) else node

    plain: dict[str, Any] = strip(schema)
    plain.setdefault("properties", {})
    return plain


def _summary(method: Callable[..., Any]) -> str:
    text = inspect.getdoc(method) or ""
    return re.split(r"\n\s*(?:Args|Returns|Raises):\s*\n", "\n" + text)[0].strip()


def _argument_docs(method: Callable[..., Any]) -> dict[str, str]:
    """The lines of a docstring's `Args:` section, by argument."""
    text = inspect.getdoc(method) or ""
    section = re.search(r"(?:^|\n)Args:\s*\n((?:[ \t]+.*(?:\n|$)|\n)+)", text)
    if section is None:
        return {}
    entries = re.findall(r"^ {2,4}(\w+)(?: \([^)]*\))?:\s*((?:.*)(?:\n {5,}.*)*)", section[1], re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in entries}


def explain_rejection(spec: ActionSpec, error: ValidationError) -> ActionRejected:
    """One readable sentence for the Agent about arguments that do not fit."""
    parts = []
    for item in error.errors(include_url=False, include_context=False)[:5]:
        place = ".".join(str(part) for part in item["loc"]) or "arguments"
        if item["type"] == "missing":
            parts.append(f"{place} is missing")
        elif item["type"] == "extra_forbidden":
            offered = ", ".join(spec.parameters["properties"]) or "none"
            parts.append(f"{place} is no argument of {spec.name} (it takes: {offered})")
        else:
            shown = repr(item["input"])
            shown = shown if len(shown) <= 80 else shown[:77] + "..."
            parts.append(f"{place}: {item['msg']}, got {shown}")
    return ActionRejected(f"{spec.name}: " + "; ".join(parts) + ".")


_loop: asyncio.AbstractEventLoop | None = None
_loop_lock = threading.Lock()


def settle(value: Any) -> Any:
    """The result of an author's function, sync or async. Coroutines run on one background loop."""
    if value is None or type(value) in (str, dict, list) or not inspect.isawaitable(value):
        return value
    global _loop
    with _loop_lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="plural-async", daemon=True).start()

    async def waited() -> tuple[Any, BaseException | None]:
        try:
            return await value, None
        except BaseException as error:  # SystemExit and the like would end the loop for everybody
            return None, error

    result, error = asyncio.run_coroutine_threadsafe(waited(), _loop).result()
    if error is not None:
        raise error
    return result
