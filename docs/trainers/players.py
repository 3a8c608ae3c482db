"""Players of a world whose actions are numbers, and how often they solve its Tasks."""

from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym
import numpy as np

Player = Callable[[Any, Any], Any]
"""Chooses an action by the observation and the mask of what is legal, a bool array."""


def success_rate(env: gym.Env[Any, Any], player: Player, tasks: Iterable[str], games: int = 1) -> float:
    """The mean score over Tasks by name, each played `games` times; closes the environment."""
    scores = [play(env, player, task, seed) for task in tasks for seed in range(games)]
    env.close()
    return sum(scores) / len(scores)


def play(env: gym.Env[Any, Any], player: Player, task: str, seed: int) -> float:
    """One episode of a Task; its score by the Task's own Verifiers, 1 where it was solved."""
    observation, _ = env.reset(seed=seed, options={"task": task})
    masks = env.get_wrapper_attr("action_masks")
    over = False
    while not over:
        observation, _, terminated, truncated, _ = env.step(player(observation, masks()))
        over = terminated or truncated
    world: Any = env.unwrapped
    return float(world.score())


def random_legal(seed: int = 0) -> Player:
    """A player that takes any legal action, each as likely as the others."""
    rng = np.random.default_rng(seed)
    return lambda observation, mask: rng.choice(np.flatnonzero(mask))
