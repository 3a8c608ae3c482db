"""Haggles without a model: a time-dependent concession (Faratin et al. 1998)."""

from typing import Any

from plural import EpisodeOver


def play(task: Any, seat: Any, patience: float = 1.0) -> None:
    """Until the talks are over: take the last offer if it beats the own next one, else make that.

    `patience` bends the curve: above 1 it gives in late, below 1 early.
    """
    while not seat.finished:
        seen = seat.view()
        if seat.finished:
            return
        limit, buying = seen["your limit"], seen["you are"] == "buyer"
        made = len(seen["offers"])
        gone = min(made / max(made + seen["offers left"] - 2, 1), 1.0) ** patience
        start = limit // 2 if buying else min(limit * 3 // 2, 1000)
        wanted = round(start + (limit - start) * gone)
        last = seen["offers"][-1]["price"] if seen["offers"] else None
        try:
            if last is not None and (last <= wanted if buying else last >= wanted):
                seat.act("accept")
            else:
                seat.act("offer", price=wanted)
        except EpisodeOver:
            return
