"""Codecs: between a JSON value and an element of a Gymnasium space, one class a shape of value.

`container_codecs` has those of values that hold others, `schema_codec` chooses among them by JSON Schema, and
`codec` joins those of an Environment's actions. `decode` is on the hot path of every step: it checks while it
converts, so that an element needs no membership test before. Both directions raise `ActionRejected`; the
message starts with the path to the value.
"""

import json
import math
import operator
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from gymnasium import spaces

from plural_gym.errors import ActionRejected
from plural_gym.rl.spaces import TextSampler, Utf8Text
from plural_gym.rl.text_samplers import ANY_JSON, PickText

MAX_CHARS = 4096
"""Longest text of a schema that names no longest."""
MAX_CHOICES = 1024
"""Whole numbers up to this many are a `Discrete`, one-hot when flattened; more are a `Box`."""


class Codec(ABC):
    """One JSON Schema as a space, and the two ways between its JSON values and the space's elements."""

    space: spaces.Space[Any]

    @abstractmethod
    def encode(self, value: Any) -> Any:
        """Return the element of a JSON value; raises `ActionRejected` where the space has none."""

    @abstractmethod
    def decode(self, element: Any) -> Any:
        """Return the JSON value of an element; raises `ActionRejected` where it is none of the space's."""


class FiniteCodec(Codec):
    """One of a few JSON values: the index into them, in declared order. Booleans are False, True."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)
        self._index = {json_text(value): index for index, value in reversed(tuple(enumerate(self.values)))}
        self.space = spaces.Discrete(len(self.values))

    def encode(self, value: Any) -> np.int64:
        try:
            return np.int64(self._index[json_text(value)])
        except (KeyError, TypeError, ValueError):
            allowed = ", ".join(map(json_text, self.values[:12])) + (", ..." if len(self.values) > 12 else "")
            raise misfit(f"one of {allowed}", value) from None

    def decode(self, element: Any) -> Any:
        index = whole_number(element)
        if not 0 <= index < len(self.values):
            raise misfit(f"an index below {len(self.values)}", element)
        value = self.values[index]
        if value.__class__ is dict or value.__class__ is list:
            return json.loads(json_text(value)) if value else value.__class__()  # never shared
        return value


class IntegerCodec(Codec):
    """A whole number `low..high`, every `step` of them; both ends included and multiples of `step`."""

    def __init__(self, low: int, high: int, step: int = 1) -> None:
        self.low, self.high, self.step = low, high, step
        first, last = low // step, high // step
        self._in_box = last - first >= MAX_CHOICES
        if self._in_box:
            self.space = spaces.Box(first, last, (1,), np.int64)
        else:
            self.space = spaces.Discrete(last - first + 1, start=first)

    def encode(self, value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            raise misfit("a whole number", value)
        self._check(value, value)
        quotient = value // self.step
        return np.array([quotient], np.int64) if self._in_box else np.int64(quotient)

    def decode(self, element: Any) -> int:
        value = whole_number(element) * self.step
        self._check(value, element)
        return value

    def _check(self, value: int, given: Any) -> None:
        if not self.low <= value <= self.high or value % self.step:
            multiple = f", a multiple of {self.step}" if self.step > 1 else ""
            raise misfit(f"a whole number from {self.low} to {self.high}{multiple}", given)


class NumberCodec(Codec):
    """A finite number `low..high`, both ends included, infinite where open."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.space = spaces.Box(low, high, (1,), np.float64)

    def encode(self, value: Any) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise misfit("a number", value)
        return np.array([self._checked(value, value)], np.float64)

    def decode(self, element: Any) -> float:
        return self._checked(_number(element), element)

    def _checked(self, value: float, given: Any) -> float:
        if not math.isfinite(value) or not self.low <= value <= self.high:
            raise misfit(f"a finite number from {self.low:g} to {self.high:g}", given)
        return float(value)


class MultipleCodec(Codec):
    """A multiple of a fraction, `first * step` to `last * step`: the quotient, which is a whole number."""

    def __init__(self, first: int, last: int, step: float) -> None:
        self.step = step
        self._quotient = IntegerCodec(first, last)
        self.space = self._quotient.space

    def encode(self, value: Any) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise misfit("a number", value)
        quotient = round(value / self.step)
        if abs(quotient * self.step - value) > 1e-9 * max(1.0, abs(value)):
            raise misfit(f"a multiple of {self.step:g}", value)
        return self._quotient.encode(quotient)

    def decode(self, element: Any) -> float:
        return multiple(self._quotient.decode(element), self.step)


def multiple(quotient: int, step: float) -> float:
    """Return `quotient * step`, as people write it: 0.3 for three tenths, and not 0.30000000000000004."""
    product = quotient * step
    if abs(quotient) > _ROUNDED or "e" in repr(step):
        return product
    return round(product, len(repr(step).partition(".")[2]))


_ROUNDED = 10**6
"""Above this, what is written has not the digits to be taken for a multiple."""


class TextCodec(Codec):
    """Text: the element is the value."""

    space: Utf8Text

    def __init__(self, space: Utf8Text) -> None:
        self.space = space
        self._low, self._high = space.min_length, space.max_length
        self._plain = space.pattern is None

    def encode(self, value: Any) -> str:
        return self.decode(value)

    def decode(self, element: Any) -> str:
        if (
            element.__class__ is str
            and self._plain
            and self._low <= len(element) <= self._high
            and element.isascii()
        ):
            return element
        if not isinstance(element, str):
            raise misfit("text", element)
        if not self.space.contains(element):
            pattern = f" with the pattern {self.space.pattern}" if self.space.pattern is not None else ""
            raise misfit(f"text of {self._low} to {self._high} characters{pattern}", element)
        return str(element)


class JsonCodec(Codec):
    """Any JSON value, as its JSON text: for what has no space of its own."""

    def __init__(self, generate: TextSampler = ANY_JSON) -> None:
        self.space = Utf8Text(MAX_CHARS, min_length=1, generate=generate)
        self._text = TextCodec(self.space)

    def encode(self, value: Any) -> str:
        try:
            text = json_text(value)
        except (TypeError, ValueError, RecursionError):
            raise misfit("a JSON value", value) from None
        return self._text.encode(text)

    def decode(self, element: Any) -> Any:
        try:
            return json.loads(self._text.decode(element), parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            raise misfit("JSON text", element) from None


class JsonObjectCodec(JsonCodec):
    """Any JSON object, as its JSON text; only the empty one is sampled."""

    def __init__(self) -> None:
        super().__init__(PickText(("{}",)))

    def decode(self, element: Any) -> Any:
        value = super().decode(element)
        if not isinstance(value, dict):
            raise misfit("JSON text of an object", element)
        return value


def shown(value: Any) -> str:
    """Return a value for a message: short, and never failing."""
    try:
        return _REPR.repr(value)
    except Exception:  # a stranger's __repr__ may raise anything
        return f"<{type(value).__name__}>"


_REPR: Final = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


def misfit(expected: str, value: Any) -> ActionRejected:
    """Return the refusal of a value, with what would have fitted."""
    return ActionRejected(f"expected {expected}, got {shown(value)}.")


def json_text(value: Any) -> str:
    """Return the one compact JSON text of a value; keys are sorted."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def whole_number(element: Any) -> int:
    """Return the int that an element of a `Discrete` or an integer `Box` stands for."""
    try:
        if element.__class__ is np.ndarray and element.shape == (1,):
            element = element[0]
        return operator.index(element)
    except TypeError:
        raise misfit("a whole number", element) from None


def _number(element: Any) -> float:
    if element.__class__ is np.ndarray and element.shape == (1,):
        element = element.item()
    if isinstance(element, int | float | np.integer | np.floating) and not isinstance(element, bool):
        return float(element)
    raise misfit("an array of one number", element)
