"""Spaces with finitely many elements: how many, and all of them. `DiscreteActions` lists calls with it."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from plural_gym.rl.spaces import BoundedSequence


def count(space: spaces.Space[Any]) -> int | None:
    """Return how many elements a space has; None without end, as for text and fractions."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiBinary):
        return int(2 ** math.prod(space.shape))
    if isinstance(space, spaces.Box):
        if space.dtype is None or space.dtype.kind not in "iub":
            return None
        return math.prod(high - low + 1 for low, high in _bounds(space))
    if isinstance(space, spaces.OneOf):
        return _total([count(member) for member in space.spaces])
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return _product([count(member) for member in _members(space).values()])
    if isinstance(space, BoundedSequence):
        each = count(space.feature_space)
        if each is None:
            return None if space.max_length else 1
        # Without regard to `distinct_by`: an upper bound there.
        return sum(int(each**length) for length in range(space.min_length, space.max_length + 1))
    return None


def elements(space: spaces.Space[Any]) -> Iterator[Any]:
    """Yield every element of a space that `count` has counted, in order."""
    if isinstance(space, spaces.Discrete):
        yield from (np.int64(value) for value in range(int(space.start), int(space.start + space.n)))
    elif isinstance(space, spaces.MultiBinary):
        shape = space.shape
        for bits in itertools.product((0, 1), repeat=math.prod(shape)):
            yield np.array(bits, np.int8).reshape(shape)
    elif isinstance(space, spaces.Box):
        for values in itertools.product(*(range(low, high + 1) for low, high in _bounds(space))):
            yield np.array(values, space.dtype).reshape(space.shape)
    elif isinstance(space, spaces.OneOf):
        for index, member in enumerate(space.spaces):
            yield from ((np.int64(index), element) for element in elements(member))
    elif isinstance(space, spaces.Dict):
        for values in itertools.product(*map(list, map(elements, space.spaces.values()))):
            yield dict(zip(space.spaces, values, strict=True))
    elif isinstance(space, spaces.Tuple):
        yield from itertools.product(*map(list, map(elements, space.spaces)))
    elif isinstance(space, BoundedSequence):
        for length in range(space.min_length, space.max_length + 1):
            parts = itertools.product(list(elements(space.feature_space)) if length else [], repeat=length)
            yield from (part for part in parts if space.contains(part))


def _bounds(space: spaces.Box) -> list[tuple[int, int]]:
    return [(int(low), int(high)) for low, high in zip(space.low.flat, space.high.flat, strict=True)]


def _members(space: "spaces.Dict | spaces.Tuple[Any]") -> dict[Any, spaces.Space[Any]]:
    """Return the parts of a space by key or place."""
    return dict(space.spaces if isinstance(space, spaces.Dict) else enumerate(space.spaces))


def infinite_parts(space: spaces.Space[Any], path: str = "") -> list[tuple[str, spaces.Space[Any]]]:
    """Return the named parts of a space that have no end, each with its path, such as `reply.text`."""
    if count(space) is not None:
        return []
    found: list[tuple[str, spaces.Space[Any]]] = []
    if isinstance(space, spaces.Dict):
        for key, member in space.spaces.items():
            found += infinite_parts(member, f"{path}.{key}" if path else str(key))
    return found or [(path, space)]


def _total(counts: list[int | None]) -> int | None:
    return None if None in counts else sum(one for one in counts if one is not None)


def _product(counts: list[int | None]) -> int | None:
    return None if None in counts else math.prod(one for one in counts if one is not None)
