"""A reset that was refused can be repeated, whatever made the environment."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

import plural_gym
from plural_gym.errors import UnknownName, UsageError
from plural_gym.rl.wrappers import DiscreteActions

WORDLE = "plural/Wordle-v0"


@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.make(WORDLE),
        lambda: plural_gym.make(WORDLE),
        lambda: gym.make_vec(WORDLE, 2, vectorization_mode="sync"),
        lambda: gym.make_vec(WORDLE, 2),
    ],
)
def test_a_reset_that_was_refused_can_be_repeated(make: Callable[[], Any]) -> None:
    env = make()
    with pytest.raises(UnknownName):
        env.reset(options={"task": "crane-e"})
    env.reset(seed=0)
    env.step(env.action_space.sample())
    env.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": 5}, "chosen by its name"),
        ({"split": "test"}, "a split is chosen when the environment is made"),
        ({"verifiers": ["progress"]}, r"names are for gymnasium\.make"),
    ],
)
def test_what_reset_cannot_take_is_told_with_what_would_do(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gym.make(WORDLE).reset(options=options)


def test_a_task_of_another_split_is_told_as_one() -> None:
    with pytest.raises(UnknownName, match="'wordle/crane' is not in the split 'test'"):
        gym.make(WORDLE, task="crane", split="test")
    with pytest.raises(UsageError, match="name of a Task"):
        gym.make(WORDLE, task=5)


@pytest.mark.parametrize("wrong", ["a", -3, 0, True])
def test_max_chars_is_a_whole_number(wrong: Any) -> None:
    with pytest.raises(UsageError, match="max_chars is a whole number from 1"):
        gym.make(WORDLE, max_chars=wrong)


@pytest.mark.parametrize("wrong", [5, "guess"])
def test_a_catalogue_is_a_list(wrong: Any) -> None:
    with pytest.raises(UsageError, match="catalog is a list of calls"):
        DiscreteActions(gym.make(WORDLE), wrong)


def test_a_party_is_near_to_what_was_meant() -> None:
    with pytest.raises(UnknownName, match="did you mean .plural/LeducPoker-v0."):
        plural_gym.make("plural/LeducPokr-v0")


def test_a_runtime_that_does_not_exist_is_told_when_the_environment_is_made() -> None:
    from plural_gym.environment import Environment

    with pytest.raises(UnknownName, match="dokcer"):
        Environment(name="far", runtime="dokcer").gym()


def test_made_environments_show_themselves_in_a_notebook() -> None:
    env = plural_gym.make(WORDLE, task="crane")
    env.reset(seed=0)
    assert "Wordle" in env._repr_html_()


@pytest.mark.parametrize("hint", [set, set[Any], frozenset])
def test_samples_of_a_set_of_anything_are_accepted(hint: Any) -> None:
    from plural_gym.app import App, action
    from plural_gym.environment import Environment

    class Bag(App):
        @action
        def put(self, items: hint) -> int:
            return len(items)

    env = Environment(name="bag", apps={"bag": Bag}, finish="never").gym()
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(60):
        _, _, _, truncated, info = env.step(env.action_space.sample())
        assert info["error"] == ""
        if truncated:
            env.reset()


def test_a_folder_without_a_ledger_is_not_an_empty_one(tmp_path: Any) -> None:
    from plural_gym.records import ledger

    with pytest.raises(UsageError, match="has no ledger"):
        ledger.read(tmp_path, "rewards")
