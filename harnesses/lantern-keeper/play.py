"""Plays Lanterns by three rules, without a model."""

from typing import Any

from plural import EpisodeOver


def play(task: Any, seat: Any) -> None:
    """Until the game is over: light, hint or give up a card."""
    while not seat.finished:
        seen = seat.view()
        if seat.finished:
            return
        name, arguments = decide(seen)
        try:
            seat.act(name, **arguments)
        except EpisodeOver:
            return


def decide(seen: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What to do with what is seen."""
    lit = seen["lit"]
    for place, known in enumerate(seen["you know"], 1):
        if comes_next(known, lit):
            return "light", {"card": place}
    if seen["hints"]:
        for other, hand in seen["hands"].items():
            for card, known in zip(hand, seen["others know"][other], strict=True):
                color, number = card.split()
                if int(number) == lit[color] + 1 and not comes_next(known, lit):
                    return "hint", {"seat": other, "about": color if number in known else number}
    if seen["you know"]:
        spare = [place for place, known in enumerate(seen["you know"], 1) if is_done(known, lit)]
        return "give_up", {"card": (spare or [1])[0]}
    other, hand = next(iter(seen["hands"].items()))
    return "hint", {"seat": other, "about": hand[0].split()[0]}


def comes_next(known: list[str], lit: dict[str, int]) -> bool:
    """Whether a card of which this is known is certain to come next."""
    colors = [color for color in lit if color in known] or [c for c in lit if f"not {c}" not in known]
    numbers = [number for number in "1234" if number in known]
    return bool(numbers) and all(lit[color] + 1 == int(numbers[0]) for color in colors)


def is_done(known: list[str], lit: dict[str, int]) -> bool:
    """Whether a card of which this is known is certain to be lit already."""
    numbers = [int(number) for number in "1234" if number in known]
    return bool(numbers) and min(lit.values()) >= numbers[0]
