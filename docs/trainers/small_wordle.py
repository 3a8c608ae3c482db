"""Wordle with 200 words: the shipped world, made small enough to be learned in a minute.

160 secrets are for training; 40 come from the split that is held out, so no training game hides them. In
every game all 200 words may be guessed. A player who takes any legal word wins 6 of 200 games, 3 %.
"""

import functools
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from players import Player, success_rate

from plural_gym import Task, shipped
from plural_gym.rl.wrappers import DiscreteActions

TURNS = 6
LETTERS = 26
FEATURES = LETTERS * 12 + 1


@functools.cache
def tasks() -> tuple[Task, ...]:
    """The shipped Tasks of 200 words, each told that only these words may be guessed."""
    shipped_tasks = shipped.project().tasks_of("wordle")
    chosen = [*shipped_tasks.split("train")[::19][:160], *shipped_tasks.split("test")[::8][:40]]
    few = sorted(task.setup["game"]["secret"] for task in chosen)
    return tuple(
        task.model_copy(update={"setup": {"game": {**task.setup["game"], "words": few}}}) for task in chosen
    )


def words() -> list[str]:
    """The 200 words, in the order of their actions."""
    found: list[str] = tasks()[0].setup["game"]["words"]
    return found


def calls() -> list[tuple[str, dict[str, Any]]]:
    """The catalogue of `DiscreteActions`: one call for each word."""
    return [("guess", {"word": word}) for word in words()]


def make(split: str | None = "train") -> gym.Env[Any, Any]:
    """The world as trainers take it: arrays in, numbers out."""
    env = tasks()[0].environment.gym(tasks=tasks(), split=split)
    return LetterObservation(DiscreteActions(env, calls()))


class LetterObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """What the marks so far say of each letter, out of nothing but the texts the Agent has read.

    Box(0, 1, (313,)): for each letter of the alphabet five numbers for "stands here", five for "does not
    stand here", one for "is in the word", one for "is not"; then the share of guesses made. The general
    HashedTextObservation holds all this too, among much else; a wrapper for one world learns faster.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.ObservationWrapper.__init__(self, env)
        self.observation_space = gym.spaces.Box(0.0, 1.0, (FEATURES,), np.float32)
        self._known = np.zeros(FEATURES, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._known = np.zeros(FEATURES, np.float32)
        return super().reset(seed=seed, options=options)

    def observation(self, observation: Any) -> Any:
        learn(self._known, observation["text"])
        return self._known.copy()


def learn(known: Any, text: str) -> None:
    """Add what one text of the game tells; any other text, such as the instructions, tells nothing."""
    if len(text) != 19 or text[1] != "=":
        return
    known[-1] += 1 / TURNS
    for place, (letter, mark) in enumerate(zip(text[::4], text[2::4], strict=True)):
        facts = known[(start := (ord(letter) - ord("a")) * 12) : start + 12]
        if mark == "g":
            facts[place] = facts[10] = 1
        elif mark == "y":
            facts[5 + place] = facts[10] = 1
        else:
            facts[5 + place] = 1
            facts[11] = 1 - facts[10]


def letters_of_words() -> Any:
    """Return float32 (130, words): 1 where a word has a letter in a place; row `place * 26 + letter`."""
    table = np.zeros((5 * LETTERS, len(words())), np.float32)
    for column, word in enumerate(words()):
        for place, letter in enumerate(word):
            table[place * LETTERS + ord(letter) - ord("a"), column] = 1
    return table


def rates(player: Player, games: int = 1) -> dict[str, float]:
    """The share of games won by split, over every Task of it, `games` times each."""
    return {
        split: success_rate(
            make(split), player, [task.name for task in tasks() if task.split == split], games
        )
        for split in ("train", "test")
    }
