"""Wordle: one secret word of five letters, six guesses.

The game tells the Agent marks and nothing else. What a guess is worth is decided by the Verifiers of a Task.
"""

import functools
from pathlib import Path
from typing import Literal

from pydantic import field_validator

from plural import App, State, action

HERE = Path(__file__).parent
GUESSES = 6
"""Guesses in one game; rejected ones do not count."""


def _accepted_words() -> dict[str, tuple[str, str, str, str, str, str]]:
    """Every word that may be guessed, with its five letters and its key for `colour`.

    The key is a string that lies within a secret exactly when repeated letters of the guess could matter:
    a dot for a word without repeated letters, the letter where one is repeated, nothing where two are.
    """
    words = {}
    for word in (HERE / "words.txt").read_text(encoding="ascii").split():
        repeated = sorted({letter for letter in word if word.count(letter) > 1})
        words[word] = (*word, "." if not repeated else repeated[0] if len(repeated) == 1 else "")
    return words


ACCEPTED = _accepted_words()
"""The words of `words.txt`, shared by all games of a process."""


@functools.cache
def drawn_words() -> tuple[str, ...]:
    """The words of the training split, one of which is drawn where no Task sets the secret."""
    return tuple((HERE / "draw.txt").read_text(encoding="ascii").split())


def colour(guess: str, secret: str) -> str:
    """The five marks of an accepted `guess`: `g` right letter and place, `y` right letter, `-` neither.

    A letter gets at most as many marks as the secret has of it, exact places first, then from the left.
    """
    a, b, c, d, e, key = ACCEPTED[guess]
    if key in secret:
        return _colour_repeated(guess, secret)
    v, w, x, y, z = secret
    return (
        f"{'g' if a == v else 'y' if a in secret else '-'}"
        f"{'g' if b == w else 'y' if b in secret else '-'}"
        f"{'g' if c == x else 'y' if c in secret else '-'}"
        f"{'g' if d == y else 'y' if d in secret else '-'}"
        f"{'g' if e == z else 'y' if e in secret else '-'}"
    )


def _colour_repeated(guess: str, secret: str) -> str:
    unmatched = ""
    for letter, truth in zip(guess, secret, strict=True):
        if letter != truth:
            unmatched += truth
    marks = ""
    for letter, truth in zip(guess, secret, strict=True):
        if letter == truth:
            marks += "g"
        elif letter in unmatched:
            unmatched = unmatched.replace(letter, "", 1)
            marks += "y"
        else:
            marks += "-"
    return marks


class Game(State):
    """One game of Wordle."""

    secret: str = ""
    """The word to find; empty until `reset` draws one, where the Task sets none."""
    guesses: list[str] = []
    """The accepted guesses, in order."""
    marks: list[str] = []
    """The marks of each guess: five of `g`, `y` and `-`."""
    status: Literal["playing", "won", "lost"] = "playing"

    @field_validator("secret")
    @classmethod
    def _secret_is_a_word(cls, secret: str) -> str:
        if secret and secret not in ACCEPTED:
            raise ValueError("the secret must be a lowercase five-letter word of words.txt")
        return secret


class Wordle(App):
    """A game of Wordle: find the secret five-letter word in six guesses."""

    state: Game

    def reset(self, task: object) -> None:
        """Draw a secret where the Task's setup gave none."""
        if not self.state.secret:
            words = drawn_words()
            self.state.secret = words[int(self.rng.integers(len(words)))]

    @action
    def guess(self, word: str) -> str:
        """Guess the secret word and read the marks.

        The reply shows each letter with its mark, such as `c=- r=y a=g n=- e=-`:
        g: the letter is in the secret word and in this place;
        y: the letter is in the secret word, in another place;
        -: the secret word has no such letter, or no more of them than are marked already.

        Args:
            word: An English word of five letters. Any other is rejected and does not use up a guess.
        """
        game = self.state
        if word not in ACCEPTED:
            word = _accepted(word)
        marks, guesses = colour(word, game.secret), game.guesses
        guesses.append(word)
        game.marks.append(marks)
        if marks == "ggggg":
            game.status = "won"
        elif len(guesses) == GUESSES:
            game.status = "lost"
        a, b, c, d, e = word
        v, w, x, y, z = marks
        return f"{a}={v} {b}={w} {c}={x} {d}={y} {e}={z}"

    def terminated(self) -> bool:
        """The word was found, or six guesses were made."""
        return self.state.status != "playing"


def _accepted(word: str) -> str:
    """`word` without capitals and surrounding space; refuses what is no word of the list."""
    tidy = word.strip().lower()
    if tidy in ACCEPTED:
        return tidy
    if len(tidy) != 5:
        raise ValueError(f"{word[:40]!r} has {len(tidy)} letters; guess a word of five")
    raise ValueError(f"{word[:40]!r} is not in the word list; guess another English word")
