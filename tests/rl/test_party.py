"""A party as PettingZoo plays it: turns, simultaneous moves, elimination, what each seat sees and earns."""

import json
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test
from pettingzoo.utils import parallel_to_aec

from plural_gym.app import App, action
from plural_gym.environment import Environment
from plural_gym.errors import AppFault, UnknownName, UsageError
from plural_gym.rl.party import PartyEnv
from plural_gym.step import Step

from .party_worlds import auction, stones, zero_sum


@pytest.fixture(autouse=True)
def _of_pettingzoo() -> Any:
    # Its tests warn of every observation that is not an array, and of every space but Box and Discrete.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def party(count: int = 2, **options: Any) -> PartyEnv:
    environment, tasks = stones(count, options.pop("turns", 60))
    made: PartyEnv = environment.aec(tasks=tasks, **options)
    return made


@pytest.mark.parametrize("count", [2, 4])
def test_a_party_passes_pettingzoos_api_test(count: int) -> None:
    api_test(party(count), num_cycles=300)


@pytest.mark.parametrize("count", [2, 4])
def test_a_seed_repeats_a_party(count: int) -> None:
    seed_test(lambda: party(count), 40)


def test_a_party_passes_pettingzoos_render_test() -> None:
    render_test(lambda render_mode=None: party(render_mode=render_mode))


@pytest.mark.parametrize("count", [2, 4])
def test_the_parallel_form_passes_pettingzoos_tests(count: int) -> None:
    environment, tasks = stones(count)
    parallel_api_test(environment.parallel(tasks=tasks), num_cycles=200)
    parallel_seed_test(lambda: environment.parallel(tasks=tasks), 20)
    parallel_api_test(auction().parallel(verifiers=[zero_sum]), num_cycles=200)
    api_test(parallel_to_aec(auction().parallel(verifiers=[zero_sum])), num_cycles=100)
    api_test(auction().aec(verifiers=[zero_sum]), num_cycles=100)


def _history(env: Any, seed: int, steps: int) -> list[Any]:
    seen = []
    observations, infos = env.reset(seed=seed)
    for number, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(seed + number)
    for _ in range(steps):
        seen.append(json.dumps([_plain(observations), _plain(infos)], sort_keys=True))
        if not env.agents:
            observations, infos = env.reset()
            continue
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        observations, rewards, terminations, truncations, infos = env.step(actions)
        seen.append(json.dumps([rewards, terminations, truncations], sort_keys=True))
    return seen


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(
    "make", [lambda: auction().parallel(), lambda: stones(4)[0].parallel(tasks=stones(4)[1])]
)
def test_many_steps_of_the_parallel_form_repeat_exactly(make: Any) -> None:
    one, two, other = _history(make(), 7, 150), _history(make(), 7, 150), _history(make(), 8, 150)
    assert one == two != other


def play(env: PartyEnv, *moves: Any) -> None:
    for move in moves:
        env.step(move)


def take(count: int) -> dict[str, Any]:
    return {"action": "take", "arguments": {"count": count}}


def test_a_seat_sees_its_own_view_and_never_anothers_secret() -> None:
    env = party(4)
    env.reset(seed=3)
    secrets = env.game.live.host.snapshot("pot")
    known = json.loads(json.dumps(env.game.live.initial and _state(env)))["secrets"]
    assert secrets is not None
    for _ in range(40):
        for seat in env.agents:
            received = json.dumps([env.observe(seat), env.infos[seat]], default=lambda array: array.tolist())
            assert str(known[seat]) in received
            others = [str(secret) for other, secret in known.items() if other != seat]
            assert not any(secret in received for secret in others)
        if not env.agents:
            break
        dead = env.terminations[env.agent_selection] or env.truncations[env.agent_selection]
        env.step(None if dead else take(1))


def _state(env: PartyEnv) -> Any:
    from plural_gym.state import thaw

    return thaw(env.game.live.host.snapshot("pot"))  # type: ignore[arg-type]


def test_an_eliminated_seat_leaves_and_the_others_go_on() -> None:
    env = party(4)
    env.reset(seed=1)
    play(env, take(1), take(5))
    assert env.terminations == {"seat_0": False, "seat_1": True, "seat_2": False, "seat_3": False}
    assert env.agent_selection == "seat_1"
    env.step(None)
    assert env.agents == ["seat_0", "seat_2", "seat_3"] and env.agent_selection == "seat_2"
    play(env, take(1), take(1), take(1))
    assert env.agent_selection == "seat_2"


def test_a_rejected_move_is_told_to_its_seat_alone_which_moves_again() -> None:
    env = party()
    env.reset(seed=1)
    play(env, take(9))
    assert env.agent_selection == "seat_0" and env.rewards == {"seat_0": -0.5, "seat_1": 0.0}
    assert env.infos["seat_0"]["error"] == "take 1 to 6 stones, not 9" and env.infos["seat_1"]["error"] == ""
    assert "not 9" in env.observe("seat_0")["text"] and "not 9" not in env.observe("seat_1")["text"]
    play(env, '{"action": "take"', "nonsense", 17)
    assert env.agent_selection == "seat_0"
    play(env, "wait")
    assert env.agent_selection == "seat_1"


def test_a_limit_truncates_every_living_seat() -> None:
    env = party(4, turns=3)
    env.reset(seed=1)
    play(env, "wait", take(6), None, "wait")
    assert env.truncations == {"seat_0": True, "seat_2": True, "seat_3": True}
    assert not any(env.terminations.values())


def test_a_mapping_of_rewards_reaches_every_seat_that_it_names() -> None:
    env = auction().parallel(verifiers=[zero_sum])
    env.reset(seed=0)
    bid = {"action": "bid", "arguments": {"amount": 3}}
    _, rewards, _, _, infos = env.step({"left": bid, "right": {"action": "bid", "arguments": {"amount": 9}}})
    assert rewards == {"left": -1.0, "right": 1.0}
    assert infos["left"]["rewards"] == {"zero_sum": -1.0}


def test_the_score_of_each_seat_can_join_its_last_reward() -> None:
    env = party(score_as_reward=True)
    env.reset(seed=1)
    play(env, take(3), take(3), take(3), take(3))
    assert (env.game.score("seat_1"), env.game.score("seat_0")) == (1.0, 0.0)
    assert env.rewards == {"seat_0": 0.0, "seat_1": 1.3}


def test_masks_say_whose_turn_it_is_and_what_is_legal() -> None:
    class Picky(App):
        @action
        def one(self) -> str:
            return "1"

        @action
        def two(self) -> str:
            return "2"

        def turn(self) -> str:
            return "a"

        def is_legal(self, action: str, arguments: Any = None) -> bool:
            return action == "two" and self.seat == "a"

    env = Environment(name="picky", apps={"app": Picky}, party=("a", "b"), finish="never").aec()
    env.reset(seed=0)
    assert env.infos["a"]["action_mask"].tolist() == [0, 1]
    assert env.infos["b"]["action_mask"].tolist() == [0, 0]


def test_an_app_that_fails_raises_or_ends_the_episode() -> None:
    class Bad(App):
        @action
        def go(self) -> str:
            raise KeyError("lost")

        def turn(self) -> str:
            return "a"

    environment = Environment(name="bad", apps={"app": Bad}, party=("a", "b"))
    env = environment.aec()
    env.reset(seed=0)
    with pytest.raises(AppFault, match="lost"):
        env.step("go")
    env = environment.aec(on_fault="truncate")
    env.reset(seed=0)
    env.step("go")
    assert env.truncations == {"a": True, "b": True} and "lost" in env.infos["a"]["error"]


def test_a_task_is_chosen_by_name_and_by_option() -> None:
    environment, tasks = stones(2)
    env = environment.aec(tasks=tasks, task="ring")
    env.reset(seed=0, options={"task": "ring", "setup": {"pot": {"stones": 2}}})
    assert "2 stones" in env.observe("seat_0")["text"]
    with pytest.raises(UnknownName, match="rung"):
        env.reset(options={"task": "rung"})
    with pytest.raises(UsageError, match="no option 'tsk'"):
        env.reset(options={"tsk": "ring"})


def test_a_party_pickles_before_it_is_reset() -> None:
    env = party()
    copy = pickle.loads(pickle.dumps(env))
    for one in (env, copy):
        one.reset(seed=5)
    assert env.observe("seat_0")["text"] == copy.observe("seat_0")["text"]


def test_a_world_without_seats_has_no_party_face() -> None:
    alone = Environment(name="alone", apps={"pot": type(stones(2)[0].apps["pot"].__name__, (App,), {})})
    with pytest.raises(UsageError, match="has no party"):
        alone.aec()


def test_rewards_in_self_play_are_the_movers_alone() -> None:
    def one(step: Step) -> float:
        return 1.0

    env = party(verifiers=[one])
    env.reset(seed=0)
    play(env, take(1))
    assert env.rewards == {"seat_0": 1.0, "seat_1": 0.0}
    env.step(take(1))
    assert env._cumulative_rewards == {"seat_0": 1.0, "seat_1": 1.0}


def test_the_parallel_form_says_what_is_wrong_with_its_actions() -> None:
    env = auction().parallel()
    env.reset(seed=0)
    with pytest.raises(UsageError, match="turn of seat 'left', and actions has none"):
        env.step({})
    with pytest.raises(UsageError, match="no seat 'lef'; did you mean 'left'"):
        env.step({"lef": None})
    with pytest.raises(UsageError, match="a mapping from seat to action"):
        env.step(5)
