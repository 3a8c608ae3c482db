"""JSON as every record writes it: strict, compact, UTF-8, and able to hold whatever an Agent says.

The journals, the atomic files and the ledger encode through here. Numbers that JSON does not have become
the strings "NaN", "Infinity" and "-Infinity": visible, and never mistaken for `null`, the "no signal".
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic_core import from_json, to_json

from plural_gym.errors import RecordError

_TOO_DEEP = 500
"""Levels of nesting that a record may have; the fast encoder ends at about 200."""


def encode(value: Any, indent: int | None = None) -> bytes:
    """`value` as JSON bytes without a newline at the end (and, without `indent`, none inside).

    Raises RecordError for what is not JSON: an object of another type, a value that contains itself.
    """
    try:
        return to_json(value, indent=indent, inf_nan_mode="strings")
    except ValueError:
        return _encode_slowly(value, indent)


def legible(value: Any) -> Any:
    """A value that every record can hold: half a surrogate pair in its texts is written as its escape."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {legible(key): legible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [legible(item) for item in value]
    return value


def text(value: Any) -> str:
    """`value` as a JSON string, for a column whose shape differs from Task to Task."""
    return encode(value).decode()


def decode(line: bytes | str) -> Any:
    """The value of a JSON text. Raises ValueError for anything that is not strict JSON."""
    try:
        return from_json(line, allow_inf_nan=False)
    except ValueError:
        pass
    try:
        return json.loads(line if isinstance(line, str) else line.decode(), parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _encode_slowly(value: Any, indent: int | None) -> bytes:
    """What the fast encoder refuses and JSON allows: lone surrogates (escaped) and deep nesting."""
    separators = (",", ":") if indent is None else None
    try:
        return json.dumps(_plain(value, 0), indent=indent, separators=separators, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(
            f"A record must be JSON: {error}. Record plain dicts, lists and scalars."
        ) from error


def _plain(value: Any, depth: int) -> Any:
    if depth > _TOO_DEEP:
        raise ValueError("it is nested too deeply or contains itself")
    if isinstance(value, dict):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, str | int | float):
        return value
    return json.loads(to_json(value, inf_nan_mode="strings"))
