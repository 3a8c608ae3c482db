"""Plays Wordle from what the Agent sees: the marks of its own guesses, and word lists of its own.

Each guess is the word that splits the words still possible into the most groups of equal marks. What to
guess is a function of the marks so far, so later games reuse what earlier ones worked out.
"""

import functools
from collections import Counter
from pathlib import Path
from typing import Any

from plural import ActionRejected

HERE = Path(__file__).parent
OPENER = "tares"
WIDTH = 30
"""How many words are weighed for a guess, beside those still possible."""
SAMPLE = 100
"""How many of the words still possible a guess is weighed against."""

History = tuple[tuple[str, str], ...]
"""Each guess with its marks."""


def play(task: Any, seat: Any) -> str:
    """Guess until the game is over. The answer is the last guess."""
    history: History = ()
    refused: frozenset[str] = frozenset()
    word = ""
    while not seat.finished:
        word = choose(history, refused)
        try:
            reply = seat.act("guess", word=word)
        except ActionRejected:
            refused |= {word}
        else:
            history += ((word, reply[2::4]),)
    return word


@functools.lru_cache(maxsize=20_000)
def choose(history: History, refused: frozenset[str] = frozenset()) -> str:
    """The next guess after `history`; words that the game `refused` are left out."""
    if not history and OPENER not in refused:
        return OPENER
    common, rare = word_lists()
    possible = [word for word in fitting(common, history) if word not in refused]
    if not possible:
        possible = [word for word in fitting(rare, history) if word not in refused]
    if len(possible) <= 2 or len(history) == 5:
        return possible[0] if possible else OPENER
    sample = possible[:: len(possible) // SAMPLE + 1]
    weighed = possible[:: len(possible) // WIDTH + 1] + probes(possible, refused)
    groups = {word: len({marks(word, secret) for secret in sample}) for word in weighed}
    inside = set(possible)
    return max(weighed, key=lambda word: (groups[word], word in inside))


def probes(possible: list[str], refused: frozenset[str]) -> list[str]:
    """The common words whose letters tell the possible words apart best, each letter for itself."""
    count = Counter(letter for word in possible for letter in set(word))
    split = {letter: min(n, len(possible) - n) for letter, n in count.items()}
    at = Counter((i, letter) for word in possible for i, letter in enumerate(word))
    worth = {}
    for word in word_lists()[0]:
        letters = set(word)
        value = sum([split.get(letter, 0) for letter in letters])
        worth[word] = 2 * value + sum([min(at[pair], len(possible) - at[pair]) for pair in enumerate(word)])
    ranked = sorted(worth, key=worth.__getitem__, reverse=True)
    return [word for word in ranked[:WIDTH] if word not in refused]


@functools.lru_cache(maxsize=20_000)
def fitting(words: tuple[str, ...], history: History) -> tuple[str, ...]:
    """Those of `words` that, as the secret, would have given every reply of `history`."""
    if not history:
        return words
    guess, seen = history[-1]
    return tuple(word for word in fitting(words, history[:-1]) if marks(guess, word) == seen)


def marks(guess: str, secret: str) -> str:
    """The marks that `guess` gets for `secret`."""
    unmatched = ""
    for letter, truth in zip(guess, secret, strict=True):
        if letter != truth:
            unmatched += truth
    row = ""
    for letter, truth in zip(guess, secret, strict=True):
        if letter == truth:
            row += "g"
        elif letter in unmatched:
            unmatched = unmatched.replace(letter, "", 1)
            row += "y"
        else:
            row += "-"
    return row


@functools.cache
def word_lists() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Common English words of five letters, which secrets mostly are, and rare ones."""
    common, rare = ((HERE / name).read_text(encoding="ascii").split() for name in ("common.txt", "rare.txt"))
    return tuple(common), tuple(rare)
