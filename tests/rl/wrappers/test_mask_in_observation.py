"""MaskInObservation: what is legal, beside what is seen."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from plural_gym.errors import UsageError
from plural_gym.rl.wrappers import BytesObservation, DiscreteActions, JsonAction, MaskInObservation


def test_the_mask_stands_beside_the_observation(world: Callable[..., Any]) -> None:
    env = MaskInObservation(DiscreteActions(world()))
    observation, info = env.reset(seed=0)
    assert observation["action_mask"].tolist() == [1, 1, 1, 1, 0] == info["action_mask"].tolist()
    assert observation["observation"]["text"] == "Play with the lamp."
    observation, *_ = env.step(0)
    assert observation["action_mask"].tolist() == [0, 1, 0, 1, 1] and observation in env.observation_space
    assert observation["action_mask"].dtype == np.int8


def test_keys_are_what_a_library_wants(world: Callable[..., Any]) -> None:
    env = MaskInObservation(BytesObservation(DiscreteActions(world())), ("obs", "mask"))
    assert set(env.observation_space.spaces) == {"obs", "mask"} == set(env.reset(seed=0)[0])


def test_the_actions_of_a_gym_env_are_masked_by_name(world: Callable[..., Any]) -> None:
    env = MaskInObservation(world())
    assert env.observation_space["action_mask"].shape == (2,)
    assert env.reset(seed=0)[0]["action_mask"].tolist() == [1, 0]


@pytest.mark.parametrize("keys", [("a",), ("a", "a"), "ab", ("a", 1), ("", "b"), None, ("a", "b", "c")])
def test_keys_are_two_names(world: Callable[..., Any], keys: Any) -> None:
    with pytest.raises(UsageError, match="keys are two names, such as"):
        MaskInObservation(world(), keys)


def test_actions_without_a_mask_are_refused(world: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=r"needs action_masks\(\).*put it around DiscreteActions"):
        MaskInObservation(gym.make("CartPole-v1"))
    with pytest.raises(UsageError, match="masks the numbers of a Discrete or the names of an ActionSpace"):
        MaskInObservation(JsonAction(world()))
