"""Codecs for the numbers of a JSON Schema: bounds, open ends, multiples, and what 64 bits can hold."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from plural_gym.errors import DefinitionError
from plural_gym.rl.spaces import Utf8Text
from plural_gym.rl.text_samplers import PickText
from plural_gym.rl.value_codecs import (
    MAX_CHARS,
    Codec,
    IntegerCodec,
    JsonCodec,
    MultipleCodec,
    NumberCodec,
    TextCodec,
    multiple,
)

MAX_INTEGER = 2**53
"""Whole numbers without a bound end here, where floating point stops telling neighbours apart."""

MAX_MULTIPLES = 2**46
"""Multiples of a fraction without a bound end here, before floating point has no digits left to be one."""

_LARGEST = 2**62


def integer_codec(schema: Mapping[str, Any]) -> Codec:
    """The codec of `type: integer`: Discrete where few values fit, else a Box of int64."""
    low, high, low_open, high_open = _bounds(schema)
    step = abs(Fraction(str(schema.get("multipleOf", 1))).numerator) or 1
    least = -MAX_INTEGER if low is None else math.floor(low) + 1 if low_open else math.ceil(low)
    most = MAX_INTEGER if high is None else math.ceil(high) - 1 if high_open else math.floor(high)
    if low is None and most < -MAX_INTEGER // 2:
        least = most - MAX_INTEGER
    if high is None and least > MAX_INTEGER // 2:
        most = least + MAX_INTEGER
    first, last = -(-least // step), most // step
    if first > last:
        raise DefinitionError(f"no whole number lies from {least} to {most} with multipleOf {step}.")
    if max(first, -_LARGEST) > min(last, _LARGEST):  # no element of 64 bits
        return JsonCodec(PickText((str(first * step), str(last * step))))
    return IntegerCodec(max(first, -_LARGEST) * step, min(last, _LARGEST) * step, step)


def number_codec(schema: Mapping[str, Any]) -> Codec:
    """The codec of `type: number`: a Box of float64 within the schema's bounds."""
    low, high, low_open, high_open = _bounds(schema)
    least = -math.inf if low is None else float(np.nextafter(low, math.inf)) if low_open else float(low)
    most = math.inf if high is None else float(np.nextafter(high, -math.inf)) if high_open else float(high)
    if least > most:
        raise DefinitionError(f"no number lies from {low} to {high}.")
    step = float(schema.get("multipleOf", 0))
    if step > 0:
        last = MAX_MULTIPLES if high is None else min(_LARGEST, math.ceil(most / step) + 1)
        if low is None:
            first = min(0, last) - MAX_MULTIPLES
        else:
            first = max(-_LARGEST, math.floor(least / step) - 1)
            last = max(0, first) + MAX_MULTIPLES if high is None else last
        while multiple(first, step) < least and first <= last:
            first += 1
        while multiple(last, step) > most and first <= last:
            last -= 1
        if first > last:
            raise DefinitionError(f"no multiple of {step:g} lies from {low} to {high}.")
        return MultipleCodec(first, last, step)
    if math.isinf(most - least) and math.isfinite(least) and math.isfinite(most):
        least, most = max(least, -8e307), min(most, 8e307)  # sampling needs a finite distance
    return NumberCodec(least, most)


def numeric_text(number: Mapping[str, Any]) -> TextCodec:
    """Text beside a number, as for a Decimal: any text belongs, and numbers are sampled."""
    low, high, low_open, high_open = _bounds(number)
    start = math.floor(low) if low is not None else math.ceil(high) - 9 if high is not None else 0
    fitting = [
        n
        for n in range(start, start + 12)
        if (low is None or n > low or (n == low and not low_open))
        and (high is None or n < high or (n == high and not high_open))
    ]
    made = tuple(map(str, fitting)) or (repr((low + high) / 2),)  # without a whole number it has both ends
    return TextCodec(Utf8Text(MAX_CHARS, generate=PickText(made)))


def _bounds(schema: Mapping[str, Any]) -> tuple[Any, Any, bool, bool]:
    """Return lowest, highest (None where open) and whether each is itself excluded."""
    low, high = schema.get("minimum"), schema.get("maximum")
    low_edge, high_edge = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    low_open, high_open = low_edge is True, high_edge is True  # as OpenAPI 3.0 writes it
    if low_edge is not None and not isinstance(low_edge, bool) and (low is None or low_edge >= low):
        low, low_open = low_edge, True
    if high_edge is not None and not isinstance(high_edge, bool) and (high is None or high_edge <= high):
        high, high_open = high_edge, True
    return low, high, low_open, high_open
