"""The Gymnasium spaces that tool calls need and Gymnasium lacks.

`ActionSpace` is a choice among named actions, `Choice` any other union, `Utf8Text` text in any script,
`BoundedSequence` a list with bounds. They are made by `rl.codec`; what their elements mean as arguments of an
action is said there. None of them fits in shared memory: vector environments that ask for it are refused,
because Gymnasium would go on returning the first batch.

Libraries that cannot take a space print it in their error. What an Environment declares therefore says, at
the end of its `repr`, which wrapper helps.
"""

import functools
import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import OneOf, Space, Text, flatten_space
from gymnasium.spaces.utils import flatdim, is_space_dtype_shape_equiv

from plural_gym.errors import UsageError
from plural_gym.rl.bounded_sequence import BoundedSequence
from plural_gym.rl.varying_size import of_varying_size

if TYPE_CHECKING:
    _OneOf = OneOf[Any]
else:
    _OneOf = OneOf  # not generic before Gymnasium 1.3

__all__ = [
    "ALPHANUMERIC",
    "AS_ARRAYS",
    "AS_NUMBERS",
    "SAMPLED_CHARS",
    "ActionSpace",
    "BoundedSequence",
    "Choice",
    "TextSampler",
    "Utf8Text",
]

ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""Characters of sampled text, in order; a space holds every other character as well."""

AS_NUMBERS = " [learners that need Discrete: plural_gym.rl.wrappers.DiscreteActions; or text: JsonAction]"
"""What the `repr` of an `ActionSpace` ends with."""

AS_ARRAYS = "learners that need arrays: plural_gym.rl.wrappers.HashedTextObservation or BytesObservation"
"""The `hint` of text that is observed."""

SAMPLED_CHARS = 64
"""`Utf8Text.sample` makes texts at most this much longer than the shortest one."""

TextSampler = Callable[[np.random.Generator, int, int], str]
"""Makes one text from a generator, the shortest and the longest length; picklable, hence of module level."""


@of_varying_size
class Utf8Text(Text):
    """Text of any script, from `min_length` to `max_length` characters.

    Membership asks for the length, for what `pattern` finds (`re.search`, as JSON Schema has it) and that the
    text can be written as UTF-8; the characters of `charset` are only those that `sample` uses. Characters
    outside it are lost by `gymnasium.spaces.flatten`: text is not for flattening. `hint`: what helps where a
    library cannot take the space; the end of its `repr`, and no part of what it is.
    """

    def __init__(
        self,
        max_length: int,
        *,
        min_length: int = 0,
        charset: str = ALPHANUMERIC,
        pattern: str | None = None,
        generate: TextSampler | None = None,
        hint: str = "",
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
        self.hint = hint
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
        hint = f" [{self.hint}]" if self.hint else ""
        return f"Utf8Text({self.min_length}, {self.max_length}{pattern}){hint}"

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
        return f"ActionSpace({members}){AS_NUMBERS}"

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, ActionSpace) and self.names == other.names and self.spaces == other.spaces


@functools.lru_cache(maxsize=64)
def _tables(charset: str) -> tuple[frozenset[str], tuple[str, ...], dict[str, np.int32]]:
    characters = tuple(dict.fromkeys(charset))
    return frozenset(characters), characters, {char: np.int32(i) for i, char in enumerate(characters)}


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@flatdim.register(ActionSpace)
def _flat_length(space: ActionSpace) -> int:
    _require_flat(space)
    length: int = flatdim.dispatch(OneOf)(space)
    return length


@flatten_space.register(ActionSpace)
def _flat_space(space: ActionSpace) -> Space[Any]:
    _require_flat(space)
    flat: Space[Any] = flatten_space.dispatch(OneOf)(space)
    return flat


def _require_flat(space: ActionSpace) -> None:
    if not space.is_np_flattenable:
        raise ValueError(
            f"{space} cannot be flattened: it has arguments whose length varies. List the calls to choose "
            "from: plural_gym.rl.wrappers.DiscreteActions(env, catalog)."
        )


@is_space_dtype_shape_equiv.register(Utf8Text)
def _equivalent_texts(space_1: Utf8Text, space_2: object) -> bool:
    return isinstance(space_2, Utf8Text)
