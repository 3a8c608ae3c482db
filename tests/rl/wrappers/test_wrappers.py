"""What holds for every wrapper: Gymnasium's contract, pickling, vectors, specs, and refusals."""

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from plural_gym.errors import UsageError
from plural_gym.rl import wrappers
from plural_gym.rl.wrappers import (
    BytesObservation,
    DiscreteActions,
    HashedTextObservation,
    JsonAction,
    MaskInObservation,
    RecordLedger,
    TokenObservation,
)

CATALOG = ["read_ticket", "send_reply", "resolve", ("categorize", {"category": "billing"})]


class Letters:
    """A tokenizer of a user."""

    def encode(self, text: str) -> list[int]:
        return [ord(char) % 50 for char in text]

    def __len__(self) -> int:
        return 50


def letters(text: str) -> list[int]:
    return Letters().encode(text)


def stacks(folder: Path) -> dict[str, Callable[[Any], Any]]:
    return {
        "JsonAction": JsonAction,
        "DiscreteActions": lambda env: DiscreteActions(env, CATALOG),
        "HashedTextObservation": lambda env: HashedTextObservation(env, 64),
        "BytesObservation": lambda env: BytesObservation(env, 100),
        "TokenObservation": lambda env: TokenObservation(env, Letters(), 40),
        "MaskInObservation": MaskInObservation,
        "RecordLedger": lambda env: RecordLedger(env, folder),
        "all": lambda env: MaskInObservation(
            HashedTextObservation(DiscreteActions(RecordLedger(env, folder), CATALOG), 32)
        ),
        "text": lambda env: RecordLedger(BytesObservation(JsonAction(env)), folder),
    }


NAMES = list(stacks(Path()))


@pytest.fixture(params=NAMES)
def make(request: pytest.FixtureRequest, desk: Callable[..., Any], tmp_path: Path) -> Callable[[], Any]:
    wrap = stacks(tmp_path)[request.param]
    return lambda: wrap(desk())


def test_gymnasiums_checker_is_content(make: Callable[[], Any]) -> None:
    env = make()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version")
        # Of the modes none is changed by a wrapper; the environment's own tests render.
        check_env(env, skip_render_check=True)
    env.close()


def test_observations_and_samples_stay_in_their_spaces(make: Callable[[], Any]) -> None:
    env = make()
    env.action_space.seed(0)
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        assert observation in env.observation_space
        over = False
        while not over:
            action = env.action_space.sample()
            assert action in env.action_space
            observation, _, terminated, truncated, _ = env.step(action)
            assert observation in env.observation_space
            over = terminated or truncated
    env.close()


def test_a_pickled_environment_plays_the_same(make: Callable[[], Any]) -> None:
    env = make()
    again = pickle.loads(pickle.dumps(env))
    assert again.observation_space == env.observation_space and again.action_space == env.action_space
    first, other = env.reset(seed=3)[0], again.reset(seed=3)[0]
    env.action_space.seed(1)
    action = env.action_space.sample()
    assert repr((first, env.step(action)[:4])) == repr((other, again.step(action)[:4]))
    env.close()
    again.close()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "TokenObservation"])
def test_a_spec_with_the_wrapper_is_json_and_builds_it_again(
    name: str, desk: Callable[..., Any], tmp_path: Path
) -> None:
    env = stacks(tmp_path)[name](desk())
    again: Any = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert str(again) == str(env)
    assert again.observation_space == env.observation_space and again.action_space == env.action_space
    env.close()
    again.close()


def test_a_spec_with_a_tokenizer_can_be_pickled(desk: Callable[..., Any]) -> None:
    env = TokenObservation(desk(), letters, 10, vocabulary=50)
    again: Any = gym.make(pickle.loads(pickle.dumps(env.spec)))
    assert again.observation_space == env.observation_space


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_vector_environments_take_it(kind: Any, make: Callable[[], Any]) -> None:
    env = make()
    arrays = "Utf8Text" not in str(env.observation_space)
    env.close()
    options = {} if kind is SyncVectorEnv else {"shared_memory": arrays, "context": "fork"}
    envs = kind([make, make], **options)
    try:
        before, _ = envs.reset(seed=0)
        before = repr(before)
        envs.action_space.seed(0)
        after = [repr(envs.step(envs.action_space.sample())[0]) for _ in range(4)]
        assert len({before, *after}) > 1, "observations go on"
    finally:
        envs.close()


def test_bytes_go_through_shared_memory_as_the_text_goes_on(desk: Callable[..., Any]) -> None:
    def make() -> Any:
        return BytesObservation(JsonAction(desk()), 2000)

    envs = AsyncVectorEnv([make, make], shared_memory=True, context="fork")
    try:
        envs.reset(seed=[1, 2])
        calls = '{"action": "categorize", "arguments": {"category": "bug"}}', '{"action": "resolve"}'
        observations = envs.step(calls)[0]
        texts = [
            BytesObservation.text({"text": text, "length": length})
            for text, length in zip(observations["text"], observations["length"], strict=True)
        ]
        assert texts == ["filed under bug", '{"error":"send a reply before you resolve the ticket"}']
    finally:
        envs.close()


@pytest.mark.parametrize("name", NAMES[:-2])
def test_an_environment_from_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=name):
        stacks(tmp_path)[name](gym.make("CartPole-v1"))


@pytest.mark.parametrize("name", NAMES[:-2])
def test_what_is_no_single_environment_is_refused(
    name: str, desk: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=f"{name} wraps a gymnasium.Env, got 7"):
        stacks(tmp_path)[name](7)
    envs = SyncVectorEnv([desk])
    with pytest.raises(UsageError, match=f"{name} wraps one environment, not a vector"):
        stacks(tmp_path)[name](envs)
    envs.close()


def test_wrappers_that_change_the_same_thing_do_not_stack(desk: Callable[..., Any]) -> None:
    numbers = DiscreteActions(desk(), CATALOG)
    with pytest.raises(UsageError, match="JsonAction needs the actions as GymEnv has them"):
        JsonAction(numbers)
    with pytest.raises(UsageError, match="DiscreteActions needs the actions as GymEnv has them"):
        DiscreteActions(JsonAction(desk()), CATALOG)
    with pytest.raises(UsageError, match="BytesObservation needs observations with a text"):
        BytesObservation(HashedTextObservation(desk()))
    with pytest.raises(UsageError, match="HashedTextObservation needs observations with a text"):
        HashedTextObservation(BytesObservation(desk()))
    with pytest.raises(UsageError, match="TokenObservation needs observations with a text"):
        TokenObservation(TokenObservation(desk(), letters), letters)


def test_every_wrapper_is_exported_once_and_explained() -> None:
    for name in wrappers.__all__:
        wrapper = getattr(wrappers, name)
        assert issubclass(wrapper, gym.Wrapper) and len(wrapper.__doc__) > 100
    assert set(wrappers.__all__) <= set(dir(wrappers))
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        wrappers.Nothing  # noqa: B018


def test_what_lies_inside_stays_reachable(desk: Callable[..., Any]) -> None:
    env: Any = MaskInObservation(BytesObservation(DiscreteActions(desk(), CATALOG)))
    env.reset(seed=0)
    assert env.get_wrapper_attr("action_masks")().dtype == np.bool_
    assert env.get_wrapper_attr("call")(0) == {"action": "read_ticket", "arguments": {}}
    assert [tool["function"]["name"] for tool in env.unwrapped.tools()][:1] == ["read_ticket"]
