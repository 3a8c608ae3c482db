"""Makes text for `Utf8Text.sample`: from a regular expression, from a JSON Schema format, from a short list.

A sampler is called with a generator, the shortest and the longest length. Samplers are values: equal by
what they make, picklable, without state.
"""

import functools
import importlib
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_sre: Any = importlib.import_module("re._parser")  # how Python itself reads a pattern

_VISIBLE = "".join(map(chr, range(33, 127)))
_DIGITS = "0123456789"
_WORD = _DIGITS + "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
_CATEGORIES = {
    "CATEGORY_DIGIT": _DIGITS,
    "CATEGORY_WORD": _WORD,
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_DIGIT": "".join(char for char in _VISIBLE if char not in _DIGITS),
    "CATEGORY_NOT_WORD": "".join(char for char in _VISIBLE if char not in _WORD),
    "CATEGORY_NOT_SPACE": _VISIBLE,
}
_TRIES = 60
_MANY = 8
"""How far a repeat without an upper bound goes beyond its lower one, where the length asks for no more."""

_DATE = r"(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])"
_TIME = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-%s[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_IPV4 = r"10\.[1-9]\d?\.[1-9]\d?\.[1-9]\d?"
_IPV6 = r"([1-9a-f][0-9a-f]{0,3}:){7}[1-9a-f][0-9a-f]{0,3}"
_EMAIL = r"[a-z]{3,10}@[a-z]{3,10}\.(com|org)"
_URI = r"https://[a-z]{3,10}\.(com|org)/[a-z0-9]{0,8}"

FORMATS: dict[str, str] = {
    "date": _DATE,
    "date-time": f"{_DATE}T{_TIME}Z",
    "time": _TIME,
    "duration": r"P[1-9]\d?DT([1-9]|1\d|2[0-3])H",
    "uuid": _UUID % "4",
    **{f"uuid{version}": _UUID % version for version in "1345678"},
    "email": _EMAIL,
    "idn-email": _EMAIL,
    "name-email": _EMAIL,
    "hostname": r"[a-z]{3,10}\.(com|org)",
    "uri": _URI,
    "url": _URI,
    "iri": _URI,
    "uri-reference": _URI,
    "multi-host-uri": r"postgres://[a-z]{3,10}:[a-z]{3,10}@[a-z]{3,10}:5432/[a-z]{3,10}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "ipvanyaddress": _IPV4,
    "ipv4interface": _IPV4,
    "ipv6interface": _IPV6,
    "ipvanyinterface": _IPV4,
    "ipv4network": r"10\.[1-9]\d?\.[1-9]\d?\.0/24",
    "ipv6network": r"fd[0-9a-f]{2}::/64",
    "ipvanynetwork": r"10\.[1-9]\d?\.[1-9]\d?\.0/24",
    "byte": r"([A-Za-z0-9]{4}){0,4}",
    "base64": r"([A-Za-z0-9]{4}){0,4}",
    "base64url": r"([A-Za-z0-9]{4}){0,4}",
    "json-string": r"\d{1,3}",
    "json-pointer": r"(/[a-z]{1,8}){0,3}",
}
"""For each format that plain letters would not meet: a pattern that makes some of its texts, not all."""


class CannotGenerate(ValueError):
    """No text was found for a pattern and its lengths."""


@dataclass(frozen=True, slots=True)
class RegexText:
    """Text that `pattern` is found in (`re.search`)."""

    pattern: str

    def __call__(self, rng: np.random.Generator, min_length: int, max_length: int) -> str:
        """Return one text; raises `CannotGenerate` where none is found."""
        tree, search = _parsed(self.pattern)
        for _ in range(_TRIES):
            text = _Attempt(rng, min_length, max_length).sequence(tree)
            if len(text) < min_length:  # a pattern without an end allows anything behind it
                text += "a" * (min_length - len(text))
            if len(text) <= max_length and search(text):
                return text
        raise CannotGenerate(f"no text of {min_length} to {max_length} characters for {self.pattern!r}.")


@dataclass(frozen=True, slots=True)
class PickText:
    """One of a few texts, whatever the lengths."""

    choices: tuple[str, ...]

    def __call__(self, rng: np.random.Generator, min_length: int, max_length: int) -> str:
        """Return one of the texts."""
        return self.choices[int(rng.integers(len(self.choices)))]


ANY_JSON = PickText(
    ("null", "true", "false", "0", "1", "-7", "0.5", '""', '"text"', "[]", "[1,2]", "{}", '{"key":"value"}')
)
"""Small JSON values of every type."""


def generates(pattern: str, min_length: int, max_length: int) -> bool:
    """Say whether text for a pattern can be made reliably: Python reads it, and 20 attempts all succeed."""
    try:
        rng = np.random.default_rng(0)
        for _ in range(20):
            RegexText(pattern)(rng, min_length, max_length)
    except (re.error, ValueError, OverflowError, RecursionError, NotImplementedError):
        return False
    return True


@functools.lru_cache(maxsize=1024)
def _parsed(pattern: str) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a pattern of an App's author may use what Python deprecates
        return _sre.parse(pattern), re.compile(pattern).search


class _Attempt:
    """One walk over a parsed pattern, with the groups that back references need."""

    def __init__(self, rng: np.random.Generator, min_length: int, max_length: int) -> None:
        self.rng = rng
        self.min_length = min_length
        self.max_length = max_length
        self.groups: dict[int, str] = {}

    def sequence(self, nodes: Iterable[tuple[Any, Any]]) -> str:
        return "".join([self.node(str(op), value) for op, value in nodes])

    def node(self, op: str, value: Any) -> str:
        match op:
            case "LITERAL":
                return chr(value)
            case "NOT_LITERAL":
                return self.pick(_candidates((("NEGATE", None), ("LITERAL", value))))
            case "ANY":
                return self.pick(_VISIBLE)
            case "IN":
                return self.pick(_candidates(tuple((str(kind), item) for kind, item in value)))
            case "CATEGORY":
                return self.pick(_CATEGORIES[str(value)])
            case "BRANCH":
                return self.sequence(value[1][int(self.rng.integers(len(value[1])))])
            case "SUBPATTERN":
                text = self.sequence(value[3])
                if value[0] is not None:
                    self.groups[value[0]] = text
                return text
            case "ATOMIC_GROUP":
                return self.sequence(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return "".join([self.sequence(value[2]) for _ in range(self.times(value[0], value[1]))])
            case "GROUPREF":
                return self.groups.get(value, "")
            case "AT" | "ASSERT" | "ASSERT_NOT":
                return ""  # whether they hold is seen when the whole text is searched
            case _:
                raise NotImplementedError(f"no text is made for {op} of a regular expression.")

    def pick(self, candidates: Sequence[str]) -> str:
        if not candidates:
            raise CannotGenerate("a character class of the pattern has no visible member.")
        return candidates[int(self.rng.integers(len(candidates)))]

    def times(self, least: int, most: Any) -> int:
        most = int(most)
        if least > self.max_length:
            raise CannotGenerate(f"a repeat of {least} or more is longer than {self.max_length}.")
        asked_least = max(least, min(self.min_length, most))
        asked_most = min(most, max(self.max_length, asked_least))
        if self.min_length > least and self.rng.random() < 0.5:  # repeats are mostly there to give length
            return int(self.rng.integers(asked_least, min(asked_most, asked_least + _MANY) + 1))
        return int(self.rng.integers(least, min(most, max(least + _MANY, asked_least)) + 1))


@functools.lru_cache(maxsize=1024)
def _candidates(items: tuple[tuple[str, Any], ...]) -> str:
    found: dict[str, None] = {}
    for kind, value in items:
        if kind == "LITERAL":
            found[chr(value)] = None
        elif kind == "RANGE":
            low, high = value
            found.update(dict.fromkeys(map(chr, range(low, min(high, low + 999) + 1))))
        elif kind == "CATEGORY":
            found.update(dict.fromkeys(_CATEGORIES[str(value)]))
    if any(kind == "NEGATE" for kind, _ in items):
        return "".join(char for char in _VISIBLE if char not in found)
    return "".join(char for char in found if not "\ud800" <= char <= "\udfff")
