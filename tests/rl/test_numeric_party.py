"""A party in numbers: vectors, Discrete actions and masks where PettingZoo's tools look for them."""

import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, seed_test

from plural_gym import shipped
from plural_gym.errors import UsageError
from plural_gym.rl.numeric_party import NumericParty
from plural_gym.rl.seat_env import SeatEnv

from .party_worlds import auction, stones

PROJECT = shipped.project()


@pytest.fixture(autouse=True)
def _of_pettingzoo() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def poker(name: str = "kuhn-poker", **options: Any) -> NumericParty:
    env = PROJECT.environments[name].aec(tasks=PROJECT.tasks_of(name), task="one-hand")
    return NumericParty(env, **options)


CATALOG = [("take", {"count": 1}), ("take", {"count": 3}), ("take", {"count": 5}), "wait"]


def test_poker_in_numbers_passes_pettingzoos_tests() -> None:
    for name in ("kuhn-poker", "leduc-poker"):
        api_test(poker(name), num_cycles=200)
        seed_test(lambda name=name: poker(name), 30)


@pytest.mark.parametrize("count", [2, 4])
def test_a_catalogue_numbers_the_calls_of_a_world_without_an_end_of_them(count: int) -> None:
    environment, tasks = stones(count)
    api_test(NumericParty(environment.aec(tasks=tasks), CATALOG), num_cycles=200)
    with pytest.raises(UsageError, match="NumericParty would list more than 100 calls"):
        NumericParty(environment.aec(tasks=tasks), limit=100)


def test_the_mask_is_of_the_seats_legal_moves_and_nothing_out_of_turn() -> None:
    env = poker()
    env.reset(seed=0)
    names = [env.call(number)["action"] for number in range(4)]
    assert names == ["check", "bet", "call", "fold"]
    assert env.observe("first")["action_mask"].tolist() == [1, 1, 0, 0]
    assert env.observe("second")["action_mask"].tolist() == [0, 0, 0, 0]
    env.step(1)
    assert env.infos["second"]["action_mask"].tolist() == [0, 0, 1, 1]


def test_what_seats_see_tells_their_vectors_apart() -> None:
    env = poker()
    vectors = []
    for deal in (["J", "Q"], ["Q", "J"], ["K", "J"]):
        env.reset(seed=0, options={"setup": {"table": {"deal": deal}}})
        vectors.append(env.observe("first")["observation"])
    assert not np.array_equal(vectors[0], vectors[1]) and not np.array_equal(vectors[1], vectors[2])
    env.reset(seed=0, options={"setup": {"table": {"deal": ["J", "K"]}}})
    assert np.array_equal(vectors[0], env.observe("first")["observation"])


def test_own_features_need_their_length() -> None:
    def parity(observation: Any) -> Any:
        return [len(observation["text"]) % 2, 1.0]

    env = poker(features=parity, size=2)
    env.reset(seed=0)
    assert env.observation_space("first")["observation"].shape == (2,)
    assert env.observe("first")["observation"].tolist()[1] == 1.0
    with pytest.raises(UsageError, match="size="):
        poker(features=parity)


def test_what_is_no_party_or_no_call_is_refused() -> None:
    with pytest.raises(UsageError, match="wraps a PartyEnv"):
        NumericParty(auction().parallel())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="fits no action"):
        poker(catalog=["raise"])
    env = poker()
    env.reset(seed=0)
    with pytest.raises(UsageError, match="calls 0 to 3"):
        env.step(9)


def test_one_seat_in_numbers_passes_check_env_and_masks() -> None:
    env = SeatEnv(poker(), "second")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)
    env.reset(seed=3)
    total = 0.0
    over = False
    while not over:
        mask = env.action_masks()
        assert mask.dtype == bool and mask.any()
        action = env.action_space.sample(mask.astype(np.int8))
        _, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        assert info["error"] == ""
        total += reward
    assert total in (-2.0, -1.0, 1.0, 2.0)
