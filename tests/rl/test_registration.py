"""The shipped ids say the truth about the worlds behind them."""

import warnings

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from plural_gym.rl.registration import SHIPPED, ShippedId, register_shipped
from plural_gym.shipped import project


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.environment)
def test_an_id_stands_for_the_environment_its_version_and_its_limit(shipped: ShippedId) -> None:
    environment = project().environments[shipped.environment]
    assert shipped.id.endswith(f"-v{environment.version.split('.')[0]}")
    assert shipped.turns == environment.limits.turns
    with gym.make(f"plural_gym:{shipped.id}") as env:
        assert env.spec is not None and env.spec.max_episode_steps == shipped.turns


def test_every_shipped_environment_has_an_id() -> None:
    environments = project().environments
    alone = {name for name in environments if environments[name].party is None}
    assert {shipped.environment for shipped in SHIPPED} == alone


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.environment)
def test_gymnasiums_check_finds_nothing(shipped: ShippedId) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(f"plural_gym:{shipped.id}").unwrapped)


def test_registering_twice_changes_nothing() -> None:
    before = {shipped.id: gym.registry[shipped.id] for shipped in SHIPPED}
    register_shipped()
    assert all(gym.registry[name] is spec for name, spec in before.items())


def test_several_at_once_play_tasks_of_their_own() -> None:
    envs = gym.make_vec("plural_gym:plural/Wordle-v0", num_envs=3)
    envs.reset(seed=1)
    observation, *_ = envs.step([{"action": "guess", "arguments": {"word": "slate"}}] * 3)
    assert len(set(observation["text"])) > 1
    envs.close()
