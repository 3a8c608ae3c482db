"""Wordle: one secret word of five letters, six guesses.

The game tells the Agent marks and nothing else. What a guess is worth is decided by the Verifiers of a Task.
"""

import functools
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationInfo, field_validator

from plural import App, Board, Cell, State, action

HERE = Path(__file__).parent
GUESSES = 6
"""Guesses in one game; rejected ones do not count."""
TILES = {"g": "#538d4e", "y": "#b59f3b", "-": "#3a3a3c"}
"""What each mark looks like on the board."""


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

    words: list[str] = []
    """The words that may be guessed in this game; empty: all of `words.txt`."""
    secret: str = ""
    """The word to find; empty until `reset` draws one, where the Task sets none."""
    guesses: list[str] = []
    """The accepted guesses, in order."""
    marks: list[str] = []
    """The marks of each guess: five of `g`, `y` and `-`."""
    status: Literal["playing", "won", "lost"] = "playing"

    @field_validator("words")
    @classmethod
    def _words_are_of_the_list(cls, words: list[str]) -> list[str]:
        unknown = next((word for word in words if word not in ACCEPTED), None)
        if unknown is not None:
            raise ValueError(f"{unknown!r} is no lowercase five-letter word of words.txt")
        return words

    @field_validator("secret")
    @classmethod
    def _secret_is_a_word(cls, secret: str, info: ValidationInfo) -> str:
        if secret and secret not in ACCEPTED:
            raise ValueError("the secret must be a lowercase five-letter word of words.txt")
        words = info.data.get("words")
        if secret and words and secret not in words:
            raise ValueError("the secret must be one of the words that may be guessed")
        return secret


class Wordle(App):
    """A game of Wordle: find the secret five-letter word in six guesses."""

    state: Game
    few: frozenset[str] = frozenset()
    """The words of a smaller game, to look them up."""

    def reset(self, task: object) -> None:
        """Draw a secret where the Task's setup gave none."""
        game = self.state
        if game.words:
            self.few = frozenset(game.words)
        if not game.secret:
            words = game.words or drawn_words()
            game.secret = words[int(self.rng.integers(len(words)))]

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
        words = self.few or ACCEPTED
        if word not in words:
            word = _accepted(word, words)
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

    def is_legal(self, action: str, arguments: Mapping[str, str] | None = None) -> bool:
        """A guess is legal while it is a word of the game that was not guessed before."""
        if arguments is None:
            return True
        word = arguments["word"]
        words = self.few or ACCEPTED
        if word not in words:
            word = word.strip().lower()
        return word in words and word not in self.state.guesses

    def board(self) -> Board:
        """The guesses as coloured tiles; the secret only once the game is lost."""
        game = self.state
        rows = [
            [Cell(letter.upper(), TILES[mark]) for letter, mark in zip(word, marks, strict=True)]
            for word, marks in zip(game.guesses, game.marks, strict=True)
        ]
        empty = [[Cell()] * 5] * (GUESSES - len(rows))
        lost = f"the word was {game.secret.upper()}" if game.status == "lost" else ""
        return Board(rows + empty, caption=lost, tiles=True)

    def terminated(self) -> bool:
        """The word was found, or six guesses were made."""
        return self.state.status != "playing"


def _accepted(word: str, words: Collection[str]) -> str:
    """`word` without capitals and surrounding space; refuses what is none of the words of this game."""
    tidy = word.strip().lower()
    if tidy in words:
        return tidy
    if len(tidy) != 5:
        raise ValueError(f"{word[:40]!r} has {len(tidy)} letters; guess a word of five")
    raise ValueError(f"{word[:40]!r} is not in the word list; guess another English word")
