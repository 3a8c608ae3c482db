"""HashedTextObservation: the text of an episode as one float vector, for networks of plain layers."""

from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from plural_gym.errors import UsageError
from plural_gym.rl.text_features import hashed
from plural_gym.rl.wrappers.needs import text_space

_TURNS = 100
"""What the turn is measured against where the environment names no limit."""
_LAST, _ALL = 0x9E3779B9, 0x85EBCA6B
"""How far the places of the last text, and of all remembered ones, are moved: words count apart in each."""


class HashedTextObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """Observations as one vector: `Box(-1, 1, (size + 1,), float32)` in place of text and turn.

    For libraries whose networks take arrays: Stable-Baselines3 ("MlpPolicy"), RLlib, Tianshou, TorchRL,
    CleanRL. Words, their pairs and their places in the line are hashed, with a sign, into `size` numbers, and
    each is clipped to -1..1: 0 where nothing that hashes there was said. The last number is the share of the
    turns gone, 0 to 1. Nothing is learned or stored; a text gives the same vector in every process.

    One text is seldom all that a policy has to know: the marks of the fourth guess in Wordle say nothing of
    the first three. So the vector speaks of the whole episode: the text of `reset`, the last text, and all
    of the last `history` texts taken together, each hashed apart from the others. `history=1` leaves it at
    the first two, for worlds that tell everything at each step.

    Args:
        env: an environment with a text in its observation, such as a GymEnv.
        size: how many places. More places, fewer n-grams that share one.
        ngrams: lengths of the runs of words that are hashed.
        places: words of lines with up to so many words are also hashed with their place; 0: none are.
        history: how many texts of steps are remembered; None: all of the episode.

    Raises:
        UsageError: observations without a text, or an argument out of its range.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        size: int = 1024,
        *,
        ngrams: tuple[int, ...] = (1, 2),
        places: int = 16,
        history: int | None = 8,
    ) -> None:
        text_space(env, "HashedTextObservation")
        _check(size, ngrams, places, history)
        RecordConstructorArgs.__init__(self, size=size, ngrams=list(ngrams), places=places, history=history)
        gym.ObservationWrapper.__init__(self, env)
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (size + 1,), np.float32)
        self._size = size
        self._ngrams, self._places = tuple(ngrams), places
        world = getattr(env.unwrapped, "environment", None)
        self._turns = world.limits.turns if world is not None else _TURNS
        self._history = history
        self._begin("")

    def _begin(self, text: str) -> None:
        self._first = np.zeros(self._size, np.float32)
        self._add(self._first, text, 0)
        self._all = np.zeros(self._size, np.float32)
        self._kept: deque[str] = deque()

    def _add(self, bag: Any, text: str, moved: int, times: int = 1) -> None:
        numbers, signs = hashed(text, self._ngrams, self._places)
        np.add.at(bag, (numbers + moved) % self._size, signs * times)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._begin(observation["text"])
        return self._vector(self._first, observation["turn"]), info

    def observation(self, observation: Any) -> Any:
        text = observation["text"]
        found = self._first.copy()
        self._add(found, text, _LAST)
        if self._history != 1:
            self._remember(text)
            found += self._all
        return self._vector(found, observation["turn"])

    def _remember(self, text: str) -> None:
        self._add(self._all, text, _ALL)
        if self._history is not None:
            self._kept.append(text)
            if len(self._kept) > self._history:
                self._add(self._all, self._kept.popleft(), _ALL, -1)

    def _vector(self, found: Any, turn: Any) -> Any:
        vector = np.empty(self._size + 1, np.float32)
        np.clip(found, -1.0, 1.0, out=vector[:-1])
        vector[-1] = min(float(turn[0]) / self._turns, 1.0)
        return vector


def _check(size: int, ngrams: tuple[int, ...], places: int, history: int | None) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise UsageError(f"size is a whole number from 1, got {size!r}.")
    lengths = list(ngrams) if isinstance(ngrams, tuple | list) else []
    if not lengths or not all(type(length) is int and length >= 1 for length in lengths):
        raise UsageError(f"ngrams are lengths from 1, such as (1, 2), got {ngrams!r}.")
    if type(places) is not int or places < 0:
        raise UsageError(f"places is a whole number from 0, got {places!r}.")
    if history is not None and (type(history) is not int or history < 1):
        raise UsageError(f"history is a whole number from 1, or None for the whole episode, got {history!r}.")
