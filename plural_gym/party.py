"""Party: the seats of an Environment that several Agents share.

Whose turn it is, what each seat sees and who is out, the Apps say (`App.turn`, `view`, `eliminated`).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, field_validator

from plural_gym.errors import suggest
from plural_gym.word import Word

SEAT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class PartySeat(Word):
    """One place in the world, for one Agent."""

    name: str
    role: str = ""
    """What an Agent in this seat is told of its part; shown beside the Task's instructions."""

    @field_validator("name")
    @classmethod
    def _can_be_written(cls, value: str) -> str:
        if not SEAT_NAME.fullmatch(value):
            raise ValueError(
                f"seat {value!r}: a name is letters, digits, '-' and '_', and begins with a letter"
            )
        return value


class Party(Word):
    """The seats of a world, in the order in which they are served.

    Args:
        seats: names, or names with roles; at least two, no two alike.
    """

    seats: tuple[PartySeat, ...] = Field(min_length=2)

    @field_validator("seats", mode="before")
    @classmethod
    def _seats_by_name(cls, value: Any) -> Any:
        items: Iterable[Any] = value if isinstance(value, (list, tuple)) else [value]
        return tuple({"name": item} if isinstance(item, str) else item for item in items)

    @field_validator("seats")
    @classmethod
    def _names_differ(cls, value: tuple[PartySeat, ...]) -> tuple[PartySeat, ...]:
        names = [seat.name for seat in value]
        doubled = next((name for name in names if names.count(name) > 1), None)
        if doubled is not None:
            raise ValueError(f"two seats are named {doubled!r}; give one another name")
        return value

    @property
    def names(self) -> tuple[str, ...]:
        """The seats' names, in order."""
        return tuple(seat.name for seat in self.seats)

    def role(self, seat: str) -> str:
        """What the Agent in a seat is told of its part; "" for nothing."""
        return next(one.role for one in self.seats if one.name == seat)


@dataclass(frozen=True, slots=True)
class Table:
    """Who may act now and who is out, as the Apps say."""

    turn: tuple[str, ...]
    """In the order of the seats; empty once the episode is over."""
    out: tuple[str, ...] = ()
    """Seats that play no more, in the order of the seats."""


class Split(float):
    """A reward credited to several seats; as a number, their sum."""

    shares: Mapping[str, float]

    def __new__(cls, shares: Mapping[str, float]) -> "Split":
        """Take what each seat gets, finite numbers."""
        made = super().__new__(cls, sum(shares.values()))
        made.shares = dict(shares)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Split, (dict(self.shares),)


def share(value: float | None, acting: str | None, seat: str | None) -> float | None:
    """What a reward is worth to one seat: a number is the acting seat's alone. None: nothing."""
    if isinstance(value, Split):
        return None if seat is None else value.shares.get(seat)
    return value if acting == seat else None


def named_seats(said: Any, seats: Collection[str]) -> tuple[str, ...]:
    """The seats that an App named, in the order of `seats`.

    Raises:
        ValueError: what it said is no seat's name and no collection of such.
    """
    if said.__class__ is str and said in seats:
        return (said,)
    names = (said,) if isinstance(said, str) else said
    if not isinstance(names, Collection) or isinstance(names, Mapping):
        raise ValueError(f"{ascii(said)[:80]} names no seat; give a seat's name or a collection of them")
    for name in names:
        if name not in seats:
            raise ValueError(f"there is no seat {ascii(name)[:80]}; {suggest(str(name), seats)}")
    return tuple(seat for seat in seats if seat in names)
