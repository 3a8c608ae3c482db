"""The Gymnasium spaces that tool calls need and Gymnasium lacks.

`ActionSpace` is a choice among named actions, `Choice` any other union, `Utf8Text` text in any script,
`BoundedSequence` a list with bounds. They are made by `rl.codec`; what their elements mean as arguments of an
action is said there. None of them fits in shared memory: vector environments that ask for it are refused,
because Gymnasium would go on returning the first batch.
"""

import functools
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import OneOf, Space, Text, flatten, flatten_space, unflatten
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector.utils import create_empty_array

from plural_gym.errors import UsageError
from plural_gym.rl.varying_size import of_varying_size

if TYPE_CHECKING:
    _OneOf = OneOf[Any]
else:
    _OneOf = OneOf  # not generic before Gymnasium 1.3

ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""Characters of sampled text, in order; a space holds every other character as well."""

SAMPLED_CHARS = 64
"""`Utf8Text.sample` makes texts at most this much longer than the shortest one."""

SAMPLED_ITEMS = 8
"""`BoundedSequence.sample` makes tuples at most this long, or of the smallest length where that is more.

Halved for each level of sequences inside, lest samples of nested lists grow without end."""

TextSampler = Callable[[np.random.Generator, int, int], str]
"""Makes one text from a generator, the shortest and the longest length; picklable, hence of module level."""


@of_varying_size
class Utf8Text(Text):
    """Text of any script, from `min_length` to `max_length` characters.

    Membership asks for the length, for what `pattern` finds (`re.search`, as JSON Schema has it) and that the
    text can be written as UTF-8; the characters of `charset` are only those that `sample` uses. Characters
    outside it are lost by `gymnasium.spaces.flatten`: text is not for flattening.
    """

    def __init__(
        self,
        max_length: int,
        *,
        min_length: int = 0,
        charset: str = ALPHANUMERIC,
        pattern: str | None = None,
        generate: TextSampler | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not 0 <= min_length <= max_length:
            raise UsageError(
                f"Utf8Text needs 0 <= min_length <= max_length, not {min_length} and {max_length}."
            )
        if not charset:
            raise UsageError("Utf8Text needs at least one character to sample from.")
        # Text.__init__ would build tables of the characters for every space; ours are shared.
        Space.__init__(self, None, str, seed)
        self.min_length = int(min_length)
        self.max_length = int(max_length)
        self.charset = charset
        """In the order that `sample` and `flatten` number them."""
        self.pattern = pattern
        self.generate = generate
        """What `sample` calls in place of drawing characters of `charset`."""
        self._search = re.compile(pattern).search if pattern is not None else None

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Return short text: at most `SAMPLED_CHARS` longer than `min_length`. Masks are Gymnasium's own."""
        if mask is not None or probability is not None:
            if self.generate is not None:
                raise UsageError("text that a pattern or format generates cannot be sampled with a mask.")
            return super().sample(mask, probability)
        longest = min(self.max_length, self.min_length + SAMPLED_CHARS)
        if self.generate is not None:
            return self.generate(self.np_random, self.min_length, self.max_length)
        length = int(self.np_random.integers(self.min_length, longest + 1))
        charset = self.charset
        return "".join([charset[i] for i in self.np_random.integers(0, len(charset), length).tolist()])

    def contains(self, x: Any) -> bool:
        """Say whether `x` is a `str` of a fitting length, with the pattern, without lone surrogates."""
        if not isinstance(x, str) or not self.min_length <= len(x) <= self.max_length:
            return False
        if self._search is not None and self._search(x) is None:
            return False
        return x.isascii() or _encodable(x)

    @property
    def character_set(self) -> frozenset[str]:
        """The characters that `sample` uses."""
        return _tables(self.charset)[0]

    @property
    def character_list(self) -> tuple[str, ...]:
        """The characters that `sample` uses, in order."""
        return _tables(self.charset)[1]

    def character_index(self, char: str) -> np.int32:
        """Return the place of a character, and one past the last for a character outside `charset`."""
        return _tables(self.charset)[2].get(char, np.int32(len(self.character_list)))

    @property
    def characters(self) -> str:
        """The characters that `sample` uses, as one string."""
        return "".join(self.character_list)

    def __repr__(self) -> str:
        pattern = f", pattern={self.pattern!r}" if self.pattern is not None else ""
        return f"Utf8Text({self.min_length}, {self.max_length}{pattern})"

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, Utf8Text) and self._identity() == other._identity()

    def _identity(self) -> tuple[Any, ...]:
        return self.min_length, self.max_length, self.pattern, self.charset, self.generate

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_search"}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._search = re.compile(self.pattern).search if self.pattern is not None else None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy the random generator alone; everything else never changes."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        copied._np_random = deepcopy(self._np_random, memo)
        return copied


@of_varying_size
class Choice(_OneOf):
    """Exactly one of several spaces: element `(index, member's element)`.

    Gymnasium's `OneOf`, with a JSON form that survives members which are a `Dict` or a `Tuple`.
    """

    def to_jsonable(self, sample_n: Iterable[tuple[int, Any]]) -> list[list[Any]]:
        """Return `[index, batch of one in the member's own JSON form]` for each element."""
        return [[int(index), self.spaces[index].to_jsonable([element])] for index, element in sample_n]

    def from_jsonable(self, sample_n: list[list[Any]]) -> list[tuple[Any, ...]]:
        """Return the elements that `to_jsonable` wrote."""
        return [(np.int64(index), self.spaces[index].from_jsonable(batch)[0]) for index, batch in sample_n]

    def __repr__(self) -> str:
        return f"Choice({', '.join(map(str, self.spaces))})"

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, Choice) and self.spaces == other.spaces


@of_varying_size
class ActionSpace(Choice):
    """The actions that an Agent may take: element `(np.int64 index of the action, element of its arguments)`.

    The arguments of an action form a `Dict`; an action without arguments is `Discrete(1)`.
    """

    names: tuple[str, ...]
    """One name an action, in declared order; the index counts along it."""

    def __init__(
        self,
        names: Iterable[str],
        spaces: Iterable[Space[Any]],
        seed: int | np.random.Generator | None = None,
    ) -> None:
        self.names = tuple(names)
        super().__init__(spaces, seed)
        if len(self.names) != len(self.spaces):
            raise UsageError(
                f"ActionSpace needs one name a space; got {len(self.names)} names, {len(self.spaces)} spaces."
            )
        if len(set(self.names)) != len(self.names):
            raise UsageError(f"ActionSpace needs names that differ; {', '.join(sorted(self.names))} do not.")

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> tuple[int, Any]:
        """Return a random action with random arguments.

        `mask`: a 1-D int8 (or bool) array with 1 for each action that may be taken, or Gymnasium's tuple of
        one mask a member. All zeros sample the first action, as `Discrete` does. `probability`: a 1-D float
        array over the actions that sums to 1, or the tuple.
        """
        if mask is not None and probability is not None:
            raise UsageError("sample takes mask or probability, not both.")
        if isinstance(mask, np.ndarray):
            index = self._masked(mask)
        elif isinstance(probability, np.ndarray):
            index = self._drawn(probability)
        else:
            return super().sample(mask, probability)
        return np.int64(index), self.spaces[index].sample()  # type: ignore[return-value]

    def _masked(self, mask: npt.NDArray[Any]) -> int:
        if mask.shape != (len(self.spaces),) or mask.dtype.kind not in "bui":
            raise UsageError(
                f"a mask over actions is int8 of shape ({len(self.spaces)},), one entry each for "
                f"{', '.join(self.names)}; got {mask.dtype} of shape {mask.shape}."
            )
        allowed = np.flatnonzero(mask)
        return int(allowed[self.np_random.integers(len(allowed))]) if len(allowed) else 0

    def _drawn(self, probability: npt.NDArray[Any]) -> int:
        if probability.shape != (len(self.spaces),) or not np.isclose(probability.sum(), 1.0):
            raise UsageError(
                f"a probability over actions is an array of shape ({len(self.spaces)},) that sums to 1; "
                f"got shape {probability.shape}, sum {float(probability.sum()):.3g}."
            )
        return int(self.np_random.choice(len(self.spaces), p=probability))

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={space}" for name, space in zip(self.names, self.spaces, strict=True))
        return f"ActionSpace({members})"

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, ActionSpace) and self.names == other.names and self.spaces == other.spaces


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


@functools.lru_cache(maxsize=64)
def _tables(charset: str) -> tuple[frozenset[str], tuple[str, ...], dict[str, np.int32]]:
    characters = tuple(dict.fromkeys(charset))
    return frozenset(characters), characters, {char: np.int32(i) for i, char in enumerate(characters)}


def _levels(space: Space[Any]) -> int:
    """Return how many sequences lie within each other in a space."""
    if isinstance(space, BoundedSequence):
        return 1 + _levels(space.feature_space)
    members = getattr(space, "spaces", ())
    return max(map(_levels, members.values() if isinstance(members, dict) else members), default=0)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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


@is_space_dtype_shape_equiv.register(Utf8Text)
def _equivalent_texts(space_1: Utf8Text, space_2: object) -> bool:
    return isinstance(space_2, Utf8Text)


@is_space_dtype_shape_equiv.register(BoundedSequence)
def _equivalent_sequences(space_1: BoundedSequence, space_2: Any) -> bool:
    return isinstance(space_2, BoundedSequence) and bool(
        is_space_dtype_shape_equiv(space_1.feature_space, space_2.feature_space)
    )
