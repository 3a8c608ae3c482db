"""Both call styles, through whatever wrappers lie between."""

import pickle
import warnings
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import OrderEnforcing, RecordEpisodeStatistics, TimeLimit
from pydantic import Field

from plural_gym import App, Environment, Step, action
from plural_gym.errors import UsageError
from plural_gym.rl.wrappers import CallStyle


class Ledger(App):
    """Notes what it is told."""

    @action
    def note(self, action: str, times: Annotated[int, Field(ge=1, le=9)] = 1) -> str:
        """Note a word; the argument has an awkward name."""
        return " ".join([action] * times)

    @action
    def rest(self) -> str:
        """Do nothing."""
        return "…"


WORLD = Environment(name="ledger", apps={"ledger": Ledger}, finish="never")


class Louder(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A wrapper of a user: it knows nothing of keywords."""

    def __init__(self, env: gym.Env[Any, Any], mark: str = "!") -> None:
        RecordConstructorArgs.__init__(self, mark=mark)
        gym.Wrapper.__init__(self, env)
        self._mark = mark

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return {**observation, "text": observation["text"] + self._mark}, reward, terminated, truncated, info


def rejected(step: Step) -> float | None:
    return -1.0 if step.error else None


def stack(turns: int = 3) -> CallStyle:
    return CallStyle(
        RecordEpisodeStatistics(Louder(TimeLimit(OrderEnforcing(WORLD.gym()), turns), mark="!!"))
    )


def test_a_name_with_keywords_passes_every_wrapper() -> None:
    env = stack()
    _, info = env.reset(seed=0, verifiers=[rejected])
    assert info["rewards"] == {"rejected": 0.0}
    assert env.step("note", action="milk", times=2)[0]["text"] == "milk milk!!"
    observation, reward, *_ = env.step("note", times="many")
    assert reward == -1.0 and "note: action is missing" in observation["text"]
    _, _, terminated, truncated, info = env.step("rest")
    assert (terminated, truncated) == (False, True)
    assert info["episode"]["r"] == -1.0 and info["episode"]["l"] == 3


@pytest.mark.parametrize(
    "form",
    [
        {"action": "note", "arguments": {"action": "milk"}},
        '{"action": "note", "arguments": {"action": "milk"}}',
        "element",
    ],
)
def test_every_other_form_passes_as_it_is(form: Any) -> None:
    env = stack()
    env.reset(seed=0)
    if form == "element":
        form = env.encode("note", action="milk")
        assert form in env.action_space
        assert env.decode(form) == {"action": "note", "arguments": {"action": "milk"}}
    assert env.step(form)[0]["text"] == "milk!!"


def test_options_and_verifiers_go_together_and_options_stay_the_callers() -> None:
    env = stack()
    options = {"setup": {}}
    _, info = env.reset(options=options, verifiers=[rejected])
    assert list(info["rewards"]) == ["rejected"]
    assert options == {"setup": {}}
    assert env.reset()[1]["rewards"] == {}


def test_keywords_go_with_a_name() -> None:
    env = stack()
    env.reset(seed=0)
    with pytest.raises(UsageError, match="keywords go with an action's name, got 0"):
        env.step(0, action="milk")


def test_what_a_gym_env_has_beside_reset_and_step_is_there() -> None:
    env = stack()
    env.reset(seed=0, verifiers=[rejected])
    env.step("rest")
    assert [tool["function"]["name"] for tool in env.tools()] == ["note", "rest"]
    assert env.episode.trajectory[0]["action"] == "rest"
    assert env.score() is None
    assert env.action_masks().tolist() == [True, True]


def test_masks_are_those_of_the_actions_it_takes() -> None:
    from plural_gym.rl.wrappers import DiscreteActions

    catalog = ["rest", ("note", {"action": "milk"}), ("note", {"action": "tea"})]
    env = CallStyle(DiscreteActions(WORLD.gym(), catalog))
    env.reset(seed=0)
    assert env.action_masks().shape == (3,)
    assert env.step(2)[0]["text"] == "tea"


def test_a_spec_of_json_rebuilds_the_stack() -> None:
    made = CallStyle(Louder(gym.make("plural_gym:plural/Wordle-v0", task="crane"), mark="?"))
    assert made.spec is not None
    again = gym.make(EnvSpec.from_json(made.spec.to_json()))
    assert str(again) == str(made) and again.spec == made.spec
    again.reset(seed=0)
    assert isinstance(again, CallStyle)
    assert again.step("guess", word="slate")[0]["text"] == "s=- l=- a=g t=- e=g?"


def test_a_pickled_one_plays_the_same() -> None:
    env = pickle.loads(pickle.dumps(stack()))
    env.reset(seed=0)
    assert env.step("note", action="milk")[0]["text"] == "milk!!"


def test_gymnasiums_check_finds_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version")
        check_env(CallStyle(WORLD.gym()), skip_render_check=True)


def test_it_wraps_one_environment() -> None:
    with pytest.raises(UsageError, match="CallStyle wraps one environment, not a vector"):
        CallStyle(gym.make_vec("plural_gym:plural/Wordle-v0", 2))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"CallStyle wraps a gymnasium\.Env, got 3"):
        CallStyle(3)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_arguments_like_any() -> None:
    env = stack()
    env.reset(seed=0)
    assert env.step("note", action="a", times=np.int64(2))[0]["text"] == "a a!!"
