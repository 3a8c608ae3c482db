"""What a wrapper needs of the environment it is put around, and what it says where that is missing."""

from typing import Any

import gymnasium as gym
from gymnasium import spaces

from plural_gym.errors import UsageError
from plural_gym.rl.spaces import ActionSpace


def one_env(env: Any, wrapper: str) -> None:
    """Raise UsageError unless `env` is a single environment."""
    if isinstance(env, gym.vector.VectorEnv):
        raise UsageError(
            f"{wrapper} wraps one environment, not a vector of them; wrap each before it joins the vector."
        )
    if not isinstance(env, gym.Env):
        raise UsageError(f"{wrapper} wraps a gymnasium.Env, got {env!r}.")


def tool_world(env: Any, wrapper: str) -> Any:
    """The GymEnv, or what speaks like one, whose actions `env` still has.

    Raises:
        UsageError: `env` comes from somewhere else, or another wrapper has changed its actions.
    """
    one_env(env, wrapper)
    world = env.unwrapped
    if not (hasattr(world, "decode") and hasattr(world, "judge")):
        raise UsageError(
            f"{wrapper} needs a GymEnv inside, whose actions are tool calls; "
            f"inside is a {type(world).__name__}."
        )
    if not isinstance(env.action_space, ActionSpace):
        raise UsageError(
            f"{wrapper} needs the actions as GymEnv has them, an ActionSpace; a wrapper inside has made them "
            f"{env.action_space}. Leave one of the two out."
        )
    return world


def text_space(env: Any, wrapper: str) -> spaces.Dict:
    """The observation space of `env`, which is a Dict with a text.

    Raises:
        UsageError: it is not, or another wrapper has changed it.
    """
    one_env(env, wrapper)
    space = env.observation_space
    if not isinstance(space, spaces.Dict) or not isinstance(space.spaces.get("text"), spaces.Text):
        raise UsageError(
            f"{wrapper} needs observations with a text, Dict('text': Text), as GymEnv has them; got {space}."
        )
    return space
