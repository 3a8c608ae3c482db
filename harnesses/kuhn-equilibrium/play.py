"""Plays Kuhn poker by an exact equilibrium (Kuhn 1950), worth -1/18 of a chip a hand to `first`."""

import random
from typing import Any

from plural import EpisodeOver


def chance(card: str, line: list[str], bluff: float) -> float:
    """How often to bet, or to call a bet, with a card after what was done in the hand.

    `bluff` names the equilibrium: how often `first` bets with the jack, 0 to 1/3. All of them are worth the
    same to both seats.
    """
    if line == []:
        return {"J": bluff, "Q": 0.0, "K": 3 * bluff}[card]
    if line == ["check"]:
        return {"J": 1 / 3, "Q": 0.0, "K": 1.0}[card]
    if line == ["bet"]:
        return {"J": 0.0, "Q": 1 / 3, "K": 1.0}[card]
    return {"J": 0.0, "Q": bluff + 1 / 3, "K": 1.0}[card]


def play(task: Any, seat: Any, bluff: float = 1 / 3) -> None:
    """Until the match is over: look, draw, act."""
    draw = random.Random()
    while not seat.finished:
        seen = seat.view()
        if seat.finished:
            return
        bold = draw.random() < chance(seen["card"], seen["line"], bluff)
        try:
            if "bet" in seen["line"]:
                seat.act("call" if bold else "fold")
            else:
                seat.act("bet" if bold else "check")
        except EpisodeOver:
            return
