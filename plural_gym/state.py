"""State: an App's private truth, and State as a value.

An author subclasses `State`. The host takes its value before and after each action (`freeze`); reward
functions, checks and records read values, never the live object.

Dumping a model twice a step would cost more than all the rest of a step. So a State class whose fields are
scalars, lists of scalars and mappings of scalars gets a copier compiled for just those fields: 0.2 us a
value. Every other State is kept as JSON bytes, which nobody can change. Either way a value equals another
exactly when the States do, and is the same live and in replay.
"""

import copy
import functools
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError, from_json, to_json

from plural_gym.records.strict_json import legible

Values = dict[str, Any]
Frozen = bytes | tuple[Callable[[Values], Values], Values]
"""A value that nobody changes: JSON bytes, or a copier with the copy it keeps to itself."""


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class _StateMeta(ModelMetaclass):
    """Allows field names that are methods of pydantic's models, such as `schema`, `copy` and `json`."""

    def __new__(mcs, *args: Any, **kwargs: Any) -> type:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
            made: type = super().__new__(mcs, *args, **kwargs)
            return made


class State(BaseModel, metaclass=_StateMeta):
    """The facts an App holds. The Agent never sees them; Verifiers read them.

    Fields are typed, assignments are validated and unknown fields are refused. A Task's `setup` sets
    fields before the episode starts. Validators depend on fields only: a setup may be validated once and its
    State copied from then on.
    """

    model_config = ConfigDict(
        validate_assignment=True,
        validate_default=True,
        extra="forbid",
        protected_namespaces=(),
        ser_json_inf_nan="strings",
        use_attribute_docstrings=True,
    )


@functools.cache
def maker(state_class: type[State]) -> Callable[[Mapping[str, Any]], State]:
    """The function that makes a State of this class: its defaults, then a Task's setup, validated.

    A State of plain fields is validated once for each setup and copied from then on, which costs a third; all
    Apps of a process share that, for hundreds may play the same thousands of Tasks. Validators may therefore
    depend on the fields alone.
    """
    validate = state_class.__pydantic_validator__.validate_python
    copy_fields = copier(state_class)
    if copy_fields is None or not _made_of_fields_alone(state_class):
        return lambda setup: validate(dict(setup))
    known: dict[int, tuple[Mapping[str, Any], Values, Values, set[str]]] = {}

    def made(setup: Mapping[str, Any]) -> State:
        found = known.get(id(setup))
        if found is not None and found[1] == setup:
            # A State of fields that were validated before: `model_construct`, at a tenth of its cost.
            copied = _new(state_class)
            _set_fields(copied, copy_fields(found[2]))
            _set_given(copied, found[3].copy())
            _set_extra(copied, None)
            _set_private(copied, None)
            return copied
        state: State = validate(dict(setup))
        if _PLAIN.issuperset(map(type, setup.values())):
            if len(known) >= _KNOWN_SETUPS:
                known.clear()
            # The setup itself is kept so that its id stays its own; a copy, because somebody may change it.
            unchanged = copy.deepcopy(dict(setup))
            known[id(setup)] = (setup, unchanged, copy_fields(state.__dict__), state.model_fields_set.copy())
        return state

    return made


_KNOWN_SETUPS = 8192
_PLAIN = frozenset({str, int, bool, type(None), list, dict})
_new = object.__new__
_set_fields, _set_given, _set_extra, _set_private = (
    BaseModel.__dict__[slot].__set__
    for slot in (
        "__dict__",
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    )
)


def _made_of_fields_alone(state_class: type[State]) -> bool:
    """Whether equal setups make equal States: no code of the class runs beside its validators."""
    if state_class.__pydantic_custom_init__ or state_class.__pydantic_post_init__ is not None:
        return False
    factories = (field.default_factory for field in state_class.model_fields.values())
    return all(factory in (None, list, dict) for factory in factories)


def freezer(state_class: type[State]) -> Callable[[State], Frozen]:
    """The function that takes the value of a State of this class."""
    copy_fields = copier(state_class)
    if copy_fields is None:
        serialize = state_class.__pydantic_serializer__.to_json
        return lambda state: serialize(state, warnings=False, fallback=_numpy_value)
    return lambda state: (copy_fields, copy_fields(state.__dict__))


def freeze_value(value: Any) -> bytes:
    """The JSON bytes of any JSON-like value: models, dates, Enums and sets become JSON values.

    Raises:
        pydantic_core.PydanticSerializationError: the value has no JSON form.
    """
    try:
        return json_bytes(value)
    except PydanticSerializationError:
        if not isinstance(value, (dict, list)):
            raise
        # Half a surrogate pair somewhere inside? Then its escape; anything else fails again.
        return json_bytes(legible(value))


def json_bytes(value: Any) -> bytes:
    """What `freeze_value` gives, of a value whose texts are whole. Raises as it does."""
    return to_json(value, inf_nan_mode="strings", fallback=_numpy_value)


def _numpy_value(value: Any) -> Any:
    """What `App.rng` draws, numpy's scalars and arrays, as Python's own."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def thaw(frozen: Frozen) -> Any:
    """The JSON value that was frozen: fresh objects at every call, so the caller may change them."""
    if isinstance(frozen, tuple):
        return frozen[0](frozen[1])
    return from_json(frozen)


def frozen_json(frozen: Frozen) -> bytes:
    """The value as JSON bytes, for records and for other processes."""
    return to_json(frozen[1]) if isinstance(frozen, tuple) else frozen


def check_setup(state_class: type[State], setup: dict[str, Any]) -> State:
    """A State of `state_class`: its defaults, then `setup`, validated.

    Raises:
        pydantic.ValidationError: a field is unknown, or a value does not fit.
    """
    return state_class.model_validate(setup)


@functools.cache
def copier(state_class: type[State]) -> Callable[[Values], Values] | None:
    """A function `fields -> fresh fields` for a class of plain fields only; None for any other class."""
    lines = copy_lines(state_class)
    if not lines:
        return None
    written = "".join(f"    {line}\n" for line in lines)
    scope: dict[str, Any] = {}
    # In this file's name, so that no line of it is taken for the author's.
    exec(compile(f"def copy(fields):\n{written}    return copied", __file__, "exec"), scope)
    compiled: Callable[[Values], Values] = scope["copy"]
    return compiled


def copy_lines(state_class: type[State]) -> tuple[str, ...]:
    """Lines that copy the mapping `fields` into a `copied`; none where `copier` is None."""
    decorators = state_class.__pydantic_decorators__
    if decorators.computed_fields or decorators.field_serializers or decorators.model_serializers:
        return ()
    containers = []
    for name, field in state_class.model_fields.items():
        shape = _shape(field.annotation)
        if shape is None or field.exclude or any(hasattr(extra, "func") for extra in field.metadata):
            return ()
        if shape == "container":
            containers.append(name)
    fields = ", ".join(f"{name!r}: copied[{name!r}]" for name in state_class.model_fields)
    return (
        "copied = fields.copy()",  # which copies the keys in one go
        f"if len(copied) != {len(state_class.model_fields)}:",  # beside the fields may stand more
        f"    copied = {{{fields}}}",
        *(f"copied[{name!r}] = copied[{name!r}].copy()" for name in containers),
    )


def _shape(annotation: Any) -> Literal["scalar", "container"] | None:
    """Whether values of this type are immutable JSON scalars, flat containers of such, or neither.

    Floats are neither: NaN and infinity need the JSON form.
    """
    if annotation in (str, int, bool, None, type(None)):
        return "scalar"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return "scalar" if all(type(value) in (str, int, bool, type(None)) for value in arguments) else None
    if origin in (typing.Union, types.UnionType):
        return "scalar" if all(_shape(one) == "scalar" for one in arguments) else None
    if origin is list and _shape(arguments[0]) == "scalar":
        return "container"
    if origin is dict and arguments[0] is str and _shape(arguments[1]) == "scalar":
        return "container"
    return None
