"""One seat of a party as a gymnasium.Env: others play between its turns, and it is paid for what they do."""

import warnings
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from plural_gym.agent import Agent
from plural_gym.errors import ActionRejected, UnknownName, UsageError
from plural_gym.rl.seat_env import SeatEnv

from .party_worlds import auction, stones, zero_sum


def seat(count: int = 2, *, name: str | None = "seat_0", opponents: Any = None, **options: Any) -> SeatEnv:
    environment, tasks = stones(count)
    return SeatEnv(environment.aec(tasks=tasks, **options), name, opponents)


def take(number: int) -> dict[str, Any]:
    return {"action": "take", "arguments": {"count": number}}


@pytest.mark.parametrize("count", [2, 4])
def test_one_seat_passes_check_env(count: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(seat(count), skip_render_check=True)


def test_the_others_play_until_it_is_this_seats_turn_again() -> None:
    env = seat(3, opponents=lambda observation, info: take(2))
    observation, _ = env.reset(seed=0)
    assert '"stones":12' in observation["text"]
    observation, reward, terminated, _, _ = env.step(take(1))
    assert '"stones":7' in observation["text"] and (reward, terminated) == (0.1, False)


def test_a_seat_that_is_not_first_begins_after_the_others() -> None:
    env = seat(2, name="seat_1", opponents=lambda observation, info: take(3))
    observation, _ = env.reset(seed=0)
    assert '"stones":9' in observation["text"] and env.party.agent_selection == "seat_1"


def test_what_the_others_do_to_this_seat_is_part_of_its_reward() -> None:
    env = SeatEnv(
        auction().aec(verifiers=[zero_sum]),
        "left",
        lambda observation, info: {"action": "bid", "arguments": {"amount": 10}},
    )
    env.reset(seed=0)
    bid = {"action": "bid", "arguments": {"amount": 1}}
    rewards = [env.step(bid)[1] for _ in range(3)]
    assert rewards == [-1.0, -1.0, -1.0]
    with pytest.raises(gym.error.ResetNeeded):
        env.step(bid)


def test_an_eliminated_seat_ends_its_own_episode() -> None:
    env = seat(4, opponents=lambda observation, info: take(1))
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(take(6))
    assert (terminated, truncated, info["over"]) == (True, False, 1)


def test_random_opponents_repeat_with_the_seed() -> None:
    def history(seed: int) -> list[str]:
        env = seat(4, name=None)
        seen = [env.reset(seed=seed)[0]["text"], env.seat]
        for _ in range(4):
            observation, _, terminated, truncated, _ = env.step("wait")
            seen.append(observation["text"])
            if terminated or truncated:
                break
        return seen

    assert history(4) == history(4) != history(5)


def test_past_selves_join_the_opponents_that_are_drawn_from() -> None:
    asked: set[str] = set()

    def named(name: str) -> Any:
        def play(observation: Any, info: Any) -> Any:
            asked.add(name)
            return take(3)

        return play

    env = seat(opponents=[named("first")])
    env.add_opponent(named("second"))
    for number in range(20):
        env.reset(seed=number)
        env.step(take(1))
    assert asked == {"first", "second"}


def test_an_agent_plays_another_seat_through_its_harness() -> None:
    seen: list[Any] = []

    def careful(task: Any, seat: Any) -> str:
        while not seat.finished:
            seen.append(seat.view()["stones"])
            try:
                seat.act("take", count=9 if len(seen) == 1 else 2)
            except ActionRejected as error:
                seen.append(str(error))
        return "done"

    env = seat(opponents=Agent(name="careful", harness=careful))
    env.reset(seed=0)
    over = False
    while not over:
        _, _, terminated, truncated, _ = env.step(take(3))
        over = terminated or truncated
    env.close()
    assert seen[:4] == [9, "take 1 to 6 stones, not 9", 9, 4]


def test_an_agent_that_returns_leaves_its_seat() -> None:
    env = seat(opponents=Agent(name="gone", harness=lambda task, seat: None))
    env.reset(seed=0)
    _, _, terminated, truncated, _ = env.step(take(1))
    assert (terminated, truncated) == (False, True)


def test_seats_and_opponents_that_do_not_exist_are_refused() -> None:
    with pytest.raises(UsageError, match="no seat 'seat_9'; did you mean"):
        seat(name="seat_9")
    with pytest.raises(UsageError, match="no seat 'nobody'"):
        seat(opponents={"nobody": None})
    with pytest.raises(UsageError, match="an opponent is a policy"):
        seat(opponents="strong")
    with pytest.raises(UnknownName):
        seat().reset(options={"task": "nothing"})
