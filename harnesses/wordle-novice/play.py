"""Plays Wordle like a beginner: keeps the letters in their exact places and heeds no other mark.

Its guesses look arbitrary, but the same game is always played the same.
"""

import functools
import hashlib
from pathlib import Path
from typing import Any

from plural import ActionRejected

HERE = Path(__file__).parent


def play(task: Any, seat: Any) -> str:
    """Guess until the game is over. The answer is the last guess."""
    places = ["."] * 5
    tried: list[str] = []
    while not seat.finished:
        tried.append(choose(places, tried))
        try:
            reply = seat.act("guess", word=tried[-1])
        except ActionRejected:
            continue
        for i, mark in enumerate(reply[2::4]):
            if mark == "g":
                places[i] = tried[-1][i]
    return tried[-1] if tried else ""


def choose(places: list[str], tried: list[str]) -> str:
    """An arbitrary untried word with the known letters in their places (`.`: unknown)."""
    fitting = [
        word
        for word in words()
        if word not in tried
        and all(place in (".", letter) for place, letter in zip(places, word, strict=True))
    ]
    salt = "".join(places) + " ".join(tried)
    return min(fitting or words(), key=lambda word: hashlib.sha256((salt + word).encode()).digest())


@functools.cache
def words() -> tuple[str, ...]:
    """English words of five letters."""
    return tuple((HERE / "words.txt").read_text(encoding="ascii").split())
