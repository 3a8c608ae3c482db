"""What a GymEnv says of legal actions, in `info` and when asked."""

import pickle
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from plural_gym import App, Environment, State, Step, action
from plural_gym.errors import AppFault


class Steps(State):
    height: int = 0


class Ladder(App):
    """Three rungs."""

    state: Steps

    @action
    def up(self) -> str:
        """Climb."""
        if self.state.height == 3:
            raise ValueError("this is the top")
        self.state.height += 1
        return "up"

    @action
    def down(self) -> str:
        """Climb down."""
        self.state.height -= 1
        return "down"

    @action
    def jump(self, to: int = 0) -> str:
        """Jump."""
        self.state.height = to
        return "jumped"

    def is_legal(self, action: str, arguments: Mapping[str, Any] | None = None) -> bool:
        if self.state.height == 99:
            raise LookupError("too high")
        if action == "jump":
            return arguments is None or arguments.get("to", 0) <= 3
        return self.state.height < 3 if action == "up" else self.state.height > 0


class Open(App):
    """Says nothing of what is legal."""

    @action
    def go(self) -> str:
        """Go."""
        return "gone"


WORLD = Environment(name="ladder", apps={"ladder": Ladder})


def height(step: Step) -> float:
    return float(step.current_state["height"])


OPTIONS: list[dict[str, Any]] = [
    {},
    {"verifiers": [height]},
    {"verifiers": [height, lambda step: None]},
    {"reveal_state": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "reward", "rewards", "long way"])
def test_info_says_which_actions_are_legal(options: dict[str, Any]) -> None:
    env = WORLD.gym(**options)
    assert env.action_space.names == ("up", "down", "jump", "finish")
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 0, 1, 1] and info["action_mask"].dtype == np.int8
    courses = [
        ("up", [1, 1, 1, 1]),
        ({"action": "jump", "arguments": {"to": 3}}, [0, 1, 1, 1]),
        ("up", [0, 1, 1, 1]),
        ("fly", [0, 1, 1, 1]),
        ("no call at all", [0, 1, 1, 1]),
        ({"action": "jump", "arguments": {"to": 0}}, [1, 0, 1, 1]),
        ("finish", [1, 0, 1, 1]),
    ]
    keys = set(info)
    for call, mask in courses:
        *_, info = env.step(call)
        assert info["action_mask"].tolist() == mask, call
        assert set(info) == keys
        assert env.action_masks().tolist() == [bool(one) for one in mask]


def test_masks_are_fresh_arrays() -> None:
    env = WORLD.gym()
    _, first = env.reset(seed=0)
    first["action_mask"][:] = 9
    _, second = env.reset(seed=0)
    assert second["action_mask"].tolist() == [1, 0, 1, 1]
    env.action_masks()[:] = False
    assert env.action_masks().any()


def test_without_an_app_that_says_it_there_is_no_mask_and_everything_is_legal() -> None:
    env = Environment(name="open", apps={"open": Open}).gym()
    _, info = env.reset(seed=0)
    assert "action_mask" not in info and "action_mask" not in env.step("go")[4]
    assert env.action_masks().tolist() == [True, True] and env.action_masks().dtype == np.bool_
    assert env.is_legal("go") and env.is_legal("finish") and not env.is_legal("come")


def test_single_calls_are_judged() -> None:
    env = WORLD.gym()
    env.reset(seed=0)
    assert env.is_legal("up") and env.is_legal("up", {}) and not env.is_legal("down")
    assert env.is_legal("jump", {"to": 3}) and not env.is_legal("jump", {"to": 4})
    assert env.is_legal("ladder.up") and not env.is_legal("fly") and not env.is_legal("up", {"x": 1})
    assert env.is_legal("finish", {"answer": 1}) and not env.is_legal("finish", {"reply": 1})
    assert env.legal([("down", None), ("finish", None), ("up", None)]) == [False, True, True]


def test_there_is_nothing_to_ask_before_the_first_reset() -> None:
    env = WORLD.gym()
    for ask in (env.action_masks, lambda: env.is_legal("up")):
        with pytest.raises(gym.error.ResetNeeded, match="call reset"):
            ask()


def test_an_app_that_fails_in_is_legal_is_at_fault() -> None:
    env = WORLD.gym()
    env.reset(seed=0)
    with pytest.raises(AppFault, match="LookupError: too high"):
        env.step("jump", to=99)
    assert env.episode.stop_reason == "error"
    env = WORLD.gym(on_fault="truncate")
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step("jump", to=99)
    assert (terminated, truncated) == (False, True) and "too high" in info["error"]
    assert info["action_mask"].tolist() == [1, 0, 1, 1], "the last that is known"
    with pytest.raises(AppFault, match="too high"):
        env.reset(options={"setup": {"ladder": {"height": 99}}})


def test_a_checkpoint_brings_the_mask_back() -> None:
    env = WORLD.gym()
    env.reset(seed=0)
    here = env.checkpoint()
    env.step("up")
    _, info = env.restore(here)
    assert info["action_mask"].tolist() == [1, 0, 1, 1]
    assert env.action_masks().tolist() == [True, False, True, True]


def test_a_masked_sample_is_a_legal_action() -> None:
    env = WORLD.gym()
    _, info = env.reset(seed=0)
    env.action_space.seed(0)
    names = {env.decode(env.action_space.sample(info["action_mask"]))["action"] for _ in range(50)}
    assert names == {"up", "jump", "finish"}


def test_the_environment_with_masks_keeps_gymnasiums_contract() -> None:
    env = WORLD.gym(verifiers=[height])
    check_env(env, skip_render_check=True)
    again = pickle.loads(pickle.dumps(env))
    assert again.reset(seed=1)[1]["action_mask"].tolist() == [1, 0, 1, 1]


def test_wordle_forbids_what_is_no_word_and_what_was_guessed() -> None:
    env: Any = gym.make("plural_gym:plural/Wordle-v0", task="crane").unwrapped
    env.reset(seed=0)
    assert env.is_legal("guess", {"word": "slate"}) and env.is_legal("guess", {"word": " Slate\n"})
    assert not env.is_legal("guess", {"word": "zzzzz"}) and not env.is_legal("guess", {"word": "slates"})
    env.step("guess", word="slate")
    assert not env.is_legal("guess", {"word": "slate"}) and env.is_legal("guess")
    assert env.is_legal("guess", {"word": "crane"})
