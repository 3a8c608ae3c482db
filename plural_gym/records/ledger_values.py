"""JSON values turned into what a column of the ledger holds.

Each function takes a value that is not null and raises TypeError, ValueError or OverflowError if the column
cannot hold it; the ledger adds which field of which Trial it was.
"""

from datetime import UTC, datetime
from typing import Any

from plural_gym.records.strict_json import legible


def integer(value: Any, limit: int) -> int:
    """A whole number from -limit to limit - 1."""
    if type(value) is not int:
        raise TypeError
    if not -limit <= value < limit:
        raise OverflowError
    return value


def number(value: Any) -> float:
    """A number, or the word that stands for one that JSON does not have."""
    if isinstance(value, bool) or (isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity")):
        raise TypeError
    return float(value)


def flag(value: Any) -> bool:
    """True or false, and no number."""
    if type(value) is not bool:
        raise TypeError
    return value


def words(value: Any) -> str:
    """Text as it is, or a number's digits (versions); half a surrogate pair is written as its escape."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    return str(legible(str(value)))


def moment(value: Any) -> datetime:
    """ISO 8601 text, or seconds since 1970; without a zone it is UTC."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    if not isinstance(value, str):
        return datetime.fromtimestamp(value, UTC)
    moment = datetime.fromisoformat(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
