"""BoundedSequence: a list with bounds, as a Gymnasium space. `rl.spaces` has the others of tool calls."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Space, flatten, flatten_space, unflatten
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector.utils import create_empty_array

from plural_gym.errors import UsageError
from plural_gym.rl.varying_size import of_varying_size

SAMPLED_ITEMS = 8
"""`BoundedSequence.sample` makes tuples at most this long, or of the smallest length where that is more.

Halved for each level of sequences inside, lest samples of nested lists grow without end."""


@of_varying_size
class BoundedSequence(Space[tuple[Any, ...]]):
    """A tuple of `min_length` to `max_length` elements of one space.

    `distinct_by`: a function of module level; no two elements of a tuple give the same value. None lets
    elements repeat.
    """

    def __init__(
        self,
        space: Space[Any],
        min_length: int,
        max_length: int,
        *,
        distinct_by: Callable[[Any], Hashable] | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not 0 <= min_length <= max_length:
            raise UsageError(
                f"BoundedSequence needs 0 <= min_length <= max_length, not {min_length} and {max_length}."
            )
        self.feature_space = space
        self.min_length = int(min_length)
        self.max_length = int(max_length)
        self.distinct_by = distinct_by
        self._longest = min(self.max_length, max(self.min_length, SAMPLED_ITEMS >> _levels(space), 1))
        super().__init__(None, None, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: the length varies."""
        return False

    def seed(self, seed: int | Sequence[int] | None = None) -> tuple[int, Any]:
        """Seed the lengths and the elements: from one int, from a pair, or at random (None)."""
        if seed is None:
            return int(super().seed(None)), self.feature_space.seed(None)
        if isinstance(seed, int):
            own = int(super().seed(seed))
            inner = int(self.np_random.integers(np.iinfo(np.int32).max))
            super().seed(seed)
            return own, self.feature_space.seed(inner)
        if len(seed) != 2:
            raise UsageError(f"BoundedSequence is seeded by None, an int or two ints, not by {len(seed)}.")
        return int(super().seed(seed[0])), self.feature_space.seed(seed[1])

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> tuple[Any, ...]:
        """Return at most `SAMPLED_ITEMS` elements. `mask`, `probability`: passed to every element's space."""
        length = int(self.np_random.integers(self.min_length, self._longest + 1))
        masks = {
            key: value for key, value in (("mask", mask), ("probability", probability)) if value is not None
        }
        if self.distinct_by is None:
            return tuple(self.feature_space.sample(**masks) for _ in range(length))
        found: dict[Hashable, Any] = {}
        for _ in range(50 * length):
            element = self.feature_space.sample(**masks)
            found.setdefault(self.distinct_by(element), element)
            if len(found) == length:
                break
        return tuple(found.values())

    def contains(self, x: Any) -> bool:
        """Say whether `x` is a tuple of a fitting length whose elements all fit."""
        return (
            isinstance(x, tuple)
            and self.min_length <= len(x) <= self.max_length
            and all(self.feature_space.contains(element) for element in x)
            and (self.distinct_by is None or len(set(map(self.distinct_by, x))) == len(x))
        )

    def to_jsonable(self, sample_n: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Return one batch of the elements' own JSON form for each tuple."""
        return [self.feature_space.to_jsonable(list(sample)) if sample else [] for sample in sample_n]

    def from_jsonable(self, sample_n: list[Any]) -> list[tuple[Any, ...]]:
        """Return the tuples that `to_jsonable` wrote."""
        return [tuple(self.feature_space.from_jsonable(batch)) if batch else () for batch in sample_n]

    def __repr__(self) -> str:
        return f"BoundedSequence({self.feature_space}, {self.min_length}, {self.max_length})"

    def __eq__(self, other: object, /) -> bool:
        return (
            isinstance(other, BoundedSequence)
            and (self.min_length, self.max_length) == (other.min_length, other.max_length)
            and self.distinct_by == other.distinct_by
            and self.feature_space == other.feature_space
        )


def _levels(space: Space[Any]) -> int:
    """Return how many sequences lie within each other in a space."""
    if isinstance(space, BoundedSequence):
        return 1 + _levels(space.feature_space)
    members = getattr(space, "spaces", ())
    return max(map(_levels, members.values() if isinstance(members, dict) else members), default=0)


@create_empty_array.register(BoundedSequence)
def _empty_sequences(space: BoundedSequence, n: int = 1, fn: Any = np.zeros) -> tuple[tuple[()], ...]:
    return ((),) * n


@flatten.register(BoundedSequence)
def _flatten_sequence(  # type: ignore[misc]  # mypy leaves the TypeVar of `flatten` open
    space: BoundedSequence, x: tuple[Any, ...]
) -> tuple[Any, ...]:
    return tuple(flatten(space.feature_space, element) for element in x)


@unflatten.register(BoundedSequence)
def _unflatten_sequence(  # type: ignore[misc]
    space: BoundedSequence, x: tuple[Any, ...]
) -> tuple[Any, ...]:
    return tuple(unflatten(space.feature_space, element) for element in x)


@flatten_space.register(BoundedSequence)
def _flatten_sequence_space(space: BoundedSequence) -> BoundedSequence:
    return BoundedSequence(flatten_space(space.feature_space), space.min_length, space.max_length)


@is_space_dtype_shape_equiv.register(BoundedSequence)
def _equivalent_sequences(space_1: BoundedSequence, space_2: Any) -> bool:
    return isinstance(space_2, BoundedSequence) and bool(
        is_space_dtype_shape_equiv(space_1.feature_space, space_2.feature_space)
    )
