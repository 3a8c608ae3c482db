"""The table of a party: asks the Apps who may act, who is out and what a seat sees, and holds them to it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from plural_gym.app import LiveApp
from plural_gym.errors import AppFault, Fault
from plural_gym.party import Table, named_seats
from plural_gym.state import freeze_value, thaw


def table_of(apps: Mapping[str, LiveApp], seats: Sequence[str], over: bool = False) -> Table:
    """Who may act now and who is out.

    With several Apps that lead, everybody whom one of them names may act; where none leads, everybody.

    Args:
        over: whether the episode has ended, so that it is nobody's turn.

    Raises:
        AppFault: an App failed, named no seat, one that does not exist, or one that is out.
    """
    out: set[str] = set()
    for name, live in apps.items():
        if live.eliminates:
            out.update(_asked(name, "eliminated", live.eliminated, seats))
    gone = tuple(seat for seat in seats if seat in out) if out else ()
    if over:
        return Table((), gone)
    leading = {name: live for name, live in apps.items() if live.leads}
    turn: set[str] = set()
    for name, live in leading.items():
        named = _asked(name, "turn", live.turn, seats)
        if len(leading) == 1 and named and out.isdisjoint(named):
            return Table(named, gone)
        dead = next((seat for seat in named if seat in out), None)
        if dead is not None:
            raise _fault(name, f"turn names seat {dead!r}, which is out")
        turn.update(named)
    if not leading:
        turn = set(seats) - out
    if not turn:
        who = next(iter(leading), next(iter(apps)))
        raise _fault(who, "turn names no seat, and the episode is not over")
    return Table(tuple(seat for seat in seats if seat in turn), gone)


def view_of(apps: Mapping[str, LiveApp], seat: str) -> Any:
    """What a seat sees now, a JSON value: None for nothing; with several Apps that show something, by App.

    Raises:
        AppFault: an App failed.
    """
    views = {}
    for name, live in apps.items():
        try:
            seen = live.view(seat)
            if seen is not None:
                views[name] = thaw(freeze_value(seen))
        except (Exception, SystemExit) as error:
            fault = Fault.of(error, f"app {name}")
            raise AppFault(f"{fault}; its view was asked.", fault) from error
    return next(iter(views.values())) if len(views) == 1 else views or None


def forfeit(apps: Mapping[str, LiveApp], seat: str) -> bool:
    """Take a seat out whose Agent has left; whether some App goes on without it.

    Raises:
        AppFault: an App failed.
    """
    settled = False
    for name, live in apps.items():
        try:
            settled |= live.forfeit(seat)
        except (Exception, SystemExit) as error:
            fault = Fault.of(error, f"app {name}")
            raise AppFault(f"{fault}; seat {seat!r} was forfeited.", fault) from error
    return settled


def _asked(name: str, what: str, ask: Any, seats: Collection[str]) -> tuple[str, ...]:
    try:
        said = ask()
    except (Exception, SystemExit) as error:
        fault = Fault.of(error, f"app {name}")
        raise AppFault(f"{fault}; its {what} was asked.", fault) from error
    try:
        return named_seats(said, seats)
    except (ValueError, TypeError) as error:
        raise _fault(name, f"{what}: {error}") from None


def _fault(app: str, said: str) -> AppFault:
    fault = Fault(f"app {app}", AppFault.__name__, said, "turn")
    return AppFault(f"{fault}.", fault)
