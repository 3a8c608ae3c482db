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
    with pytest.raises(UnknownName, match=r"did you mean 'plural/(?i:leduc-?poker)-v0'"):
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


def test_rewards_without_a_finite_sum_are_the_largest_number() -> None:
    def one(step: Any) -> float:
        return 1e308

    def two(step: Any) -> float:
        return 1e308

    env = gym.make(WORDLE, task="crane")
    env.reset(seed=0, options={"verifiers": [one, two]})
    assert env.step({"action": "guess", "arguments": {"word": "slate"}})[1] == 1.7976931348623157e308


def test_what_has_no_json_form_is_the_apps_fault_and_no_rejection() -> None:
    from plural_gym.app import App, action
    from plural_gym.environment import Environment
    from plural_gym.errors import AppFault
    from plural_gym.state import State

    class Loose(State):
        held: dict[str, Any] = {}

    class Odd(App):
        state: Loose

        @action
        def big(self) -> int:
            return 10**5000

        @action
        def hold(self) -> str:
            self.state.held = {"a": object()}
            return "held"

    env = Environment(name="odd", apps={"odd": Odd}, finish="never").gym(on_fault="truncate")
    env.reset(seed=0)
    assert "no JSON form" in env.step("big")[4]["error"]
    env.reset(seed=0)
    env.step("hold")
    with pytest.raises(AppFault, match="its State was read"):
        _ = env.episode


def test_a_task_that_cannot_be_read_is_never_left_out_of_training(tmp_path: Any) -> None:
    from plural_gym.errors import ProjectError

    (tmp_path / "project.yaml").write_text("name: halves\nversion: 0.1.0\n")
    world, task = tmp_path / "environments/half", tmp_path / "tasks/bad"
    world.mkdir(parents=True)
    task.mkdir(parents=True)
    (world / "environment.yaml").write_text("name: half\nversion: 0.1.0\napps: {}\n")
    (task / "task.yaml").write_text(
        "name: bad\nversion: 0.1.0\nenvironment: half\nverifiers: []\ninstructions: x\n"
    )
    (made,) = plural_gym.register_project(tmp_path)
    with pytest.raises(ProjectError, match="verifiers"):
        gym.make(made)
    del gym.registry[made]
