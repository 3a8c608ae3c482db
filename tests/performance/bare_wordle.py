"""Wordle written by hand as one `gymnasium.Env`: the limit against which stepping is measured.

Same words, same marks with repeated letters, same texts and turns, same dense reward as the shipped world
with its Verifier `progress`; `bench_step.py` holds both against each other before it times them. The reward
is kept up as the game goes. No actions by name, no argument validation beyond the word list, no State as a
value, no Verifier, no trail of what happened, no `info`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

ROOT = Path(__file__).parents[2] / "envs" / "wordle"
WORDS = (ROOT / "words.txt").read_text(encoding="ascii").split()
SECRETS = (ROOT / "draw.txt").read_text(encoding="ascii").split()
REPEATED = {word: len(set(word)) < 5 for word in WORDS}
INSTRUCTIONS = "Guess the secret word."


def marks_of(guess: str, secret: str) -> str:
    """Two passes: exact places first, then misplaced letters from the left."""
    if not REPEATED[guess]:
        a, b, c, d, e = guess
        v, w, x, y, z = secret
        return (
            ("g" if a == v else "y" if a in secret else "-")
            + ("g" if b == w else "y" if b in secret else "-")
            + ("g" if c == x else "y" if c in secret else "-")
            + ("g" if d == y else "y" if d in secret else "-")
            + ("g" if e == z else "y" if e in secret else "-")
        )
    left = [truth for letter, truth in zip(guess, secret, strict=True) if letter != truth]
    marks = []
    for letter, truth in zip(guess, secret, strict=True):
        if letter == truth:
            marks.append("g")
        elif letter in left:
            left.remove(letter)
            marks.append("y")
        else:
            marks.append("-")
    return "".join(marks)


class BareWordle(gym.Env[dict[str, Any], str]):
    """Actions are words; the observation is the text of the marks and the turn."""

    observation_space = gym.spaces.Dict(
        {"text": gym.spaces.Text(4096), "turn": gym.spaces.Box(0, 2**31 - 1, (1,), np.int32)}
    )
    action_space = gym.spaces.Text(5)

    def __init__(self, secrets: Sequence[str] = SECRETS) -> None:
        self.secrets = secrets

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if options:
            self.secret = options["secret"]
        else:
            self.secret = self.secrets[int(self.np_random.integers(len(self.secrets)))]
        self.guesses = 0
        self.turn = 0
        self.best = 0
        return {"text": INSTRUCTIONS, "turn": np.array([0], dtype=np.int32)}, {}

    def step(self, word: str) -> Any:
        self.turn += 1
        if word not in REPEATED:
            word, problem = tidied(word)
            if problem is not None:
                text = json.dumps({"error": problem}, separators=(",", ":"), ensure_ascii=False)
                observation = {"text": text, "turn": np.array([self.turn], dtype=np.int32)}
                return observation, -0.1, False, self.turn >= 12, {}
        marks = marks_of(word, self.secret)
        self.guesses += 1
        worth = 2 * marks.count("g") + marks.count("y")
        growth = 0
        if worth > self.best:
            growth = worth - self.best
            self.best = worth
        terminated = self.guesses == 6
        if marks == "ggggg":
            growth += 10
            terminated = True
        truncated = self.turn >= 12 and not terminated
        a, b, c, d, e = word
        v, w, x, y, z = marks
        text = f"{a}={v} {b}={w} {c}={x} {d}={y} {e}={z}"
        turn = np.array([self.turn], dtype=np.int32)
        return {"text": text, "turn": turn}, growth / 20, terminated, truncated, {}


def tidied(word: str) -> tuple[str, str | None]:
    """The word without capitals and surrounding space, and why it is no guess; None where it is one."""
    tidy = word.strip().lower()
    if tidy in REPEATED:
        return tidy, None
    if len(tidy) != 5:
        return tidy, f"{word[:40]!r} has {len(tidy)} letters; guess a word of five"
    return tidy, f"{word[:40]!r} is not in the word list; guess another English word"
