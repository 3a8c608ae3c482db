"""Codecs of values that hold others: unions, objects, maps, lists, sets.

Each calls the codecs of its parts and puts the path to the part before what they refuse. `schema_codec`
chooses among them.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from plural_gym.errors import ActionRejected, suggest
from plural_gym.rl.spaces import BoundedSequence, Choice
from plural_gym.rl.value_codecs import Codec, FiniteCodec, json_text, misfit, whole_number


class UnionCodec(Codec):
    """A value of one of several shapes: the first that encodes, and gives the same value back, is taken."""

    def __init__(self, members: Sequence[Codec]) -> None:
        self.members = tuple(members)
        self.space = Choice([member.space for member in self.members])

    def encode(self, value: Any) -> tuple[np.int64, Any]:
        lossy: tuple[np.int64, Any] | None = None
        refusals: list[str] = []
        for index, member in enumerate(self.members):
            try:
                element = member.encode(value)
                again = member.decode(element)
            except ActionRejected as refusal:
                refusals.append(str(refusal))
                continue
            if json_text(again) == json_text(value):  # `==` would take [1.0] for [1], and [1] for [True]
                return np.int64(index), element
            lossy = lossy or (np.int64(index), element)
        if lossy is None:
            raise ActionRejected("; or ".join(dict.fromkeys(refusals)))
        return lossy

    def decode(self, element: Any) -> Any:
        index, member = _pair(element, len(self.members))
        return self.members[index].decode(member)


class ObjectCodec(Codec):
    """An object with named properties: a dict of elements.

    A property that may be left out is `Choice((Discrete(1), its space))`, with index 0 where absent. `extras`
    takes what other properties the object may have, as one JSON object under a key of its own.
    """

    space: spaces.Dict

    def __init__(
        self, properties: Mapping[str, Codec], required: Sequence[str], extras: Codec | None = None
    ) -> None:
        self.properties = dict(properties)
        self.required = frozenset(required)
        self.extras = extras
        self._extras_key = "*" if "*" not in properties else "**extras**"
        self._needed = tuple((key, codec.decode) for key, codec in properties.items() if key in required)
        self._optional = tuple(
            (key, codec.decode) for key, codec in properties.items() if key not in required
        )
        members = {
            key: codec.space if key in self.required else Choice((spaces.Discrete(1), codec.space))
            for key, codec in self.properties.items()
        }
        if extras is not None:
            members[self._extras_key] = extras.space
        self._size = len(members)
        self.space = spaces.Dict(members)

    def encode(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise misfit("an object", value)
        unknown = {key: value[key] for key in value if key not in self.properties}
        if unknown and self.extras is None:
            key = str(next(iter(unknown)))
            raise ActionRejected(f"has no argument {key!r}; {suggest(key, self.properties)}")
        element: dict[str, Any] = {}
        for key, codec in self.properties.items():
            if key in value:
                inner = _at(key, codec.encode, value[key])
                element[key] = inner if key in self.required else (np.int64(1), inner)
            elif key in self.required:
                raise ActionRejected(f"{key}: is missing.")
            else:
                element[key] = (np.int64(0), np.int64(0))
        if self.extras is not None:
            element[self._extras_key] = self.extras.encode(unknown)
        return element

    def decode(self, element: Any) -> dict[str, Any]:
        if not isinstance(element, Mapping) or len(element) != self._size:
            raise misfit(f"a dict of {', '.join(self.space.spaces)}", element)
        value: dict[str, Any] = {}
        key = ""
        try:
            for key, decode in self._needed:
                value[key] = decode(element[key])
            for key, decode in self._optional:
                index, inner = _pair(element[key], 2)
                if index:
                    value[key] = decode(inner)
            if self.extras is not None:
                key = self._extras_key
                return {**self.extras.decode(element[key]), **value}
        except ActionRejected as refusal:
            raise ActionRejected(f"{key}: {refusal}") from None
        except KeyError:
            raise ActionRejected(f"{key}: is missing.") from None
        return value


class MapCodec(Codec):
    """An object whose keys are not named beforehand: a sequence of `(key, value)` with different keys."""

    space: BoundedSequence

    def __init__(self, key: Codec, value: Codec, min_length: int, max_length: int) -> None:
        self.key, self.value = key, value
        self.space = BoundedSequence(
            spaces.Tuple((key.space, value.space)), min_length, max_length, distinct_by=first_part
        )

    def encode(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, Mapping):
            raise misfit("an object", value)
        _check_length(self.space, len(value), value)
        return tuple(
            (self.key.encode(key), _at(str(key), self.value.encode, item)) for key, item in value.items()
        )

    def decode(self, element: Any) -> dict[str, Any]:
        items = [_parts(item, 2) for item in _elements(self.space, element)]
        value = {self.key.decode(key): item for key, item in items}
        if len(value) != len(items):
            raise misfit("keys that differ", element)
        return {key: _at(key, self.value.decode, item) for key, item in value.items()}


class ListCodec(Codec):
    """A list of one shape: a tuple of elements. `distinct`: no two items are equal, as in a set."""

    space: BoundedSequence

    def __init__(self, item: Codec, min_length: int, max_length: int, *, distinct: bool = False) -> None:
        self.item = item
        self.distinct = distinct
        self.space = BoundedSequence(
            item.space, min_length, max_length, distinct_by=hashable if distinct else None
        )

    def encode(self, value: Any) -> tuple[Any, ...]:
        items = (
            list({json_text(item): item for item in _list(value)}.values()) if self.distinct else _list(value)
        )
        _check_length(self.space, len(items), value)
        return tuple(_at(str(place), self.item.encode, item) for place, item in enumerate(items))

    def decode(self, element: Any) -> list[Any]:
        items = _elements(self.space, element)
        if self.distinct and len(set(map(hashable, items))) != len(items):
            raise misfit("items that differ", element)
        return [_at(str(place), self.item.decode, item) for place, item in enumerate(items)]


class TupleCodec(Codec):
    """A list of fixed length with a shape for each place."""

    def __init__(self, items: Sequence[Codec]) -> None:
        self.items = tuple(items)
        self.space = spaces.Tuple([item.space for item in self.items])

    def encode(self, value: Any) -> tuple[Any, ...]:
        if len(_list(value)) != len(self.items):
            raise misfit(f"a list of {len(self.items)}", value)
        return tuple(_at(str(i), codec.encode, value[i]) for i, codec in enumerate(self.items))

    def decode(self, element: Any) -> list[Any]:
        parts = _parts(element, len(self.items))
        return [_at(str(i), codec.decode, parts[i]) for i, codec in enumerate(self.items)]


class SubsetCodec(Codec):
    """A set drawn from a few values: one bit a value."""

    def __init__(self, item: FiniteCodec) -> None:
        self.item = item
        self.space = spaces.MultiBinary(len(item.values))

    def encode(self, value: Any) -> Any:
        element = np.zeros(len(self.item.values), np.int8)
        for place, item in enumerate(_list(value)):
            element[_at(str(place), self.item.encode, item)] = 1
        return element

    def decode(self, element: Any) -> list[Any]:
        bits = np.asarray(element)
        if bits.shape != (len(self.item.values),) or not np.isin(bits, (0, 1)).all():
            raise misfit(f"{len(self.item.values)} zeros and ones", element)
        return [self.item.decode(index) for index in np.flatnonzero(bits)]


def first_part(element: Any) -> Hashable:
    """What the pairs of a `MapCodec` differ by: their key."""
    return hashable(element[0])


def hashable(element: Any) -> Hashable:
    """Return a value that is equal for equal elements of a space, arrays and dicts included."""
    if isinstance(element, np.ndarray):
        return tuple(element.tolist())
    if isinstance(element, dict):
        return tuple((key, hashable(value)) for key, value in sorted(element.items()))
    if isinstance(element, tuple):
        return tuple(map(hashable, element))
    return element  # type: ignore[no-any-return]


def _at(key: str, convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    except ActionRejected as refusal:
        raise ActionRejected(f"{key}: {refusal}") from None


def _pair(element: Any, members: int) -> tuple[int, Any]:
    index, member = _parts(element, 2)
    index = whole_number(index)
    if not 0 <= index < members:
        raise misfit(f"an index below {members}", index)
    return index, member


def _parts(element: Any, length: int) -> Sequence[Any]:
    if not isinstance(element, tuple | list) or len(element) != length:
        raise misfit(f"a tuple of {length}", element)
    return element


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise misfit("a list", value)
    return value


def _elements(space: BoundedSequence, element: Any) -> Sequence[Any]:
    if not isinstance(element, tuple | list):
        raise misfit("a tuple", element)
    _check_length(space, len(element), element)
    return element


def _check_length(space: BoundedSequence, length: int, value: Any) -> None:
    if not space.min_length <= length <= space.max_length:
        raise misfit(f"{space.min_length} to {space.max_length} items", value)
