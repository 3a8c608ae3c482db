"""What an Agent sends, as a name and arguments: the Codec of all actions of an Environment.

`GymEnv` and the vector and party environments call `ActionCodec.parse` on every step; `codec_for` and
`observation_space` make the spaces they declare. Whether the arguments suit the action is for the App to
check: a call by name is read here, not validated.
"""

import json
import operator
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from plural_gym.environment import FINISH, Actions, Environment
from plural_gym.errors import ActionRejected, DefinitionError, suggest
from plural_gym.rl.schema_codec import codec_for
from plural_gym.rl.spaces import AS_ARRAYS, ActionSpace, Utf8Text
from plural_gym.rl.value_codecs import Codec, shown

__all__ = ["ActionCodec", "Codec", "UnknownAction", "codec_for", "codec_of", "observation_space"]

_BESIDE = frozenset({"action", "name", "arguments", "id", "call_id", "type", "index"})
_FORMS = (
    "Send an element of the action space, {'action': name, 'arguments': {...}}, that as JSON text, "
    "or the name alone."
)


class UnknownAction(ActionRejected):
    """A call was read, and no action has its name."""

    def __init__(self, message: str, name: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.name = name
        self.arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.name, self.arguments)


class ActionCodec:
    """The actions of an Environment as one `ActionSpace`, keyed by name in declared order.

    `schemas`: for each action the JSON Schema, of type object, of its arguments. `aliases`: other names that
    actions answer to, each with the name it stands for. It never changes, and one
    serves any number of environments; give each its own copy of `space` (`copy.deepcopy`), which is cheap.
    """

    space: ActionSpace
    names: tuple[str, ...]
    schemas: dict[str, dict[str, Any]]
    """What it was made of."""

    def __init__(
        self, schemas: Mapping[str, Mapping[str, Any]], aliases: Mapping[str, str] | None = None
    ) -> None:
        if not schemas:
            raise DefinitionError("an action space needs at least one action.")
        self.names = tuple(schemas)
        self.schemas = {name: dict(schema) for name, schema in schemas.items()}
        self.codecs = tuple(_arguments_codec(name, schema) for name, schema in schemas.items())
        self.space = ActionSpace(self.names, [codec.space for codec in self.codecs])
        self._aliases = dict(aliases or {})
        self._index = {name: index for index, name in enumerate(self.names)}
        self._decoders = tuple(
            (name, codec.decode) for name, codec in zip(self.names, self.codecs, strict=True)
        )
        self._required = {
            name: tuple(schema.get("required", ()) if schema.get("properties") else ())
            for name, schema in schemas.items()
        }

    def encode(self, name: str, arguments: Mapping[str, Any]) -> tuple[np.int64, Any]:
        """Return the element of a call; raises `ActionRejected` where the space has none."""
        index = self._index.get(self._known(name), 0)
        try:
            return np.int64(index), self.codecs[index].encode(arguments)
        except ActionRejected as refusal:
            raise ActionRejected(f"{name}: {refusal}") from None

    def decode(self, element: Any) -> tuple[str, dict[str, Any]]:
        """Return name and arguments of an element; raises `ActionRejected` where the space has it not."""
        name = ""
        try:
            index, member = element
            index = operator.index(index)
            if not 0 <= index < len(self._decoders):
                raise ActionRejected(self._no_index(index))
            name, decode = self._decoders[index]
            return name, decode(member)
        except ActionRejected as refusal:
            raise ActionRejected(f"{name}: {refusal}" if name else str(refusal)) from None
        except Exception:  # an element may be any object, and arrays raise in many ways
            place = f"{name}: expected an element of its arguments" if name else "expected (index, arguments)"
            raise ActionRejected(f"{place}, got {shown(element)}. {_FORMS}") from None

    def parse(self, action: Any) -> tuple[str, dict[str, Any]]:
        """Return name and arguments of whatever an Agent sent, in any of these forms.

        The space's element; `{"action": name, "arguments": {...}}`, where "name" does for "action", JSON text
        for the arguments, and `{"function": {...}}` around it; JSON text of that; the name alone; the index
        alone. Names alone, and indices, are for actions that need no arguments. Everything else raises
        `ActionRejected`. Arguments by name are passed on as they are, elements are checked against the space.
        """
        kind = action.__class__
        if kind is dict:
            name, arguments = action.get("action"), action.get("arguments")
            if name.__class__ is str and arguments.__class__ is dict and name in self._index:
                for key in arguments:
                    if key.__class__ is not str:
                        break
                else:
                    return name, arguments
            return self._call(action)
        if kind is tuple:
            return self.decode(action)
        return self._other(action)

    def _other(self, action: Any) -> tuple[str, dict[str, Any]]:
        if isinstance(action, str):
            return self._text(str(action))
        if isinstance(action, Mapping):
            return self._call(action)
        if isinstance(action, int | np.integer) and not isinstance(action, bool):
            if not 0 <= action < len(self.names):
                raise ActionRejected(self._no_index(int(action)))
            return self._alone(self.names[int(action)])
        if isinstance(action, tuple | list):
            return self.decode(action)
        raise ActionRejected(f"{shown(action)} is not an action. {_FORMS}")

    def _text(self, text: str) -> tuple[str, dict[str, Any]]:
        if text in self._index or text in self._aliases:
            return self._alone(self._known(text))
        stripped = text.strip()
        if not stripped.startswith("{"):
            said = f"{shown(text)} is neither an action nor JSON text of one; "
            said += suggest(stripped[:100], self.names)
            if stripped.replace(".", "_").isidentifier():
                raise UnknownAction(said, stripped[:100], {})
            raise ActionRejected(said)
        return self._call(_json_object("an action", stripped))

    def _call(self, given: Mapping[Any, Any]) -> tuple[str, dict[str, Any]]:
        call = _as_dict(given)
        if isinstance(call.get("function"), Mapping):
            call = _as_dict(call["function"])
        name = call.get("action", call.get("name"))
        if not isinstance(name, str):
            raise ActionRejected(f"{shown(call)} names no action. {_FORMS}")
        arguments = call.get("arguments")
        known = self._known(name, arguments)
        if arguments is None and not call.keys() <= _BESIDE:
            beside = next(str(key) for key in call if key not in _BESIDE)
            raise ActionRejected(f"{name}: {beside!r} stands beside 'arguments'; put it inside.")
        if isinstance(arguments, str):
            arguments = _json_object(f"{name}: 'arguments'", arguments) if arguments.strip() else None
        if arguments is None:
            return known, {}
        if not isinstance(arguments, Mapping):
            raise ActionRejected(
                f"{name}: 'arguments' is an object of name and value, not {shown(arguments)}."
            )
        arguments = _as_dict(arguments)
        if not all(isinstance(key, str) for key in arguments):
            raise ActionRejected(f"{name}: the names in 'arguments' are text, unlike {shown(arguments)}.")
        return known, arguments

    def _alone(self, name: str) -> tuple[str, dict[str, Any]]:
        if self._required[name]:
            raise ActionRejected(
                f"{name} needs arguments: {', '.join(self._required[name])}. "
                f"Send {{'action': {name!r}, 'arguments': {{...}}}}."
            )
        return name, {}

    def _known(self, name: str, arguments: Any = None) -> str:
        name = self._aliases.get(name, name)
        if name not in self._index:
            said = f"there is no action {shown(name)}; {suggest(name[:100], self.names)}"
            raise UnknownAction(said, name, _as_dict(arguments) if isinstance(arguments, Mapping) else {})
        return str(name)

    def _no_index(self, index: int) -> str:
        known = ", ".join(self.names)
        return f"there is no action number {shown(index)}; they are 0 to {len(self.names) - 1}: {known}."


_codecs: weakref.WeakKeyDictionary[Actions, ActionCodec] = weakref.WeakKeyDictionary()


def codec_of(environment: Environment) -> ActionCodec:
    """Return the codec of an Environment's actions; making it takes a while, so one serves all GymEnvs."""
    actions = environment.actions
    known = _codecs.get(actions)
    if known is not None:
        return known
    schemas = {name: dict(spec.parameters) for name, (_, spec) in actions.public.items()}
    offered = environment.finish == "always" or (environment.finish == "auto" and not environment.ends_itself)
    if "finish" not in actions.table and (offered or not schemas):
        schemas["finish"] = dict(FINISH.parameters)
    named = {(app, spec.name): name for name, (app, spec) in actions.public.items()}
    aliases = {alias: named[app, spec.name] for alias, (app, spec) in actions.table.items()}
    made = _codecs[actions] = ActionCodec(schemas, aliases)
    return made


def observation_space(max_chars: int) -> spaces.Dict:
    """Return the space of what an Agent sees: `text` of up to `max_chars` characters; `turn`, from 0."""
    return spaces.Dict(
        {"text": Utf8Text(max_chars, hint=AS_ARRAYS), "turn": spaces.Box(0, 2**31 - 1, (1,), np.int32)},
    )


def _arguments_codec(name: str, schema: Mapping[str, Any]) -> Codec:
    if not schema.get("properties") and "$ref" not in schema and "additionalProperties" not in schema:
        schema = {"type": "object", "properties": {}}  # no arguments, however a tool's maker says so
    try:
        return codec_for(schema)
    except DefinitionError as error:
        raise DefinitionError(f"action {name!r}: {error}") from None


def _as_dict(given: Mapping[Any, Any]) -> dict[Any, Any]:
    """A copy of a mapping, which may be of any class."""
    try:
        return dict(given)
    except Exception:
        raise ActionRejected(f"{shown(given)} cannot be read. {_FORMS}") from None


def _json_object(what: str, text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ActionRejected(f"{what} is not JSON ({error}): {shown(text)}") from None
    if not isinstance(value, dict):
        raise ActionRejected(f"{what} is a JSON object, not {shown(value)}.")
    return value
