"""TorchRL takes environments of plural_gym once the integration is imported; with the real package."""

import json
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

from plural_gym.rl.wrappers import (
    BytesObservation,
    DiscreteActions,
    HashedTextObservation,
    JsonAction,
    MaskInObservation,
)

pytestmark = [pytest.mark.trainers, pytest.mark.filterwarnings("ignore")]  # of TorchRL's own


@pytest.fixture(autouse=True)
def integration(trainers: Callable[..., None]) -> None:
    trainers("torch", "torchrl")
    import plural_gym.rl.integrations.torchrl  # noqa: F401


def desk() -> Any:
    return gym.make("plural_gym:plural/SupportDesk-v0", disable_env_checker=True)


def guesses() -> Any:
    words = ["crane", "slate", "brick", "pound", "jumpy", "fight"]
    env = gym.make("plural_gym:plural/Wordle-v0", disable_env_checker=True)
    calls = [("guess", {"word": word}) for word in words]
    return MaskInObservation(HashedTextObservation(DiscreteActions(env, calls), 64))


@pytest.mark.parametrize(
    "wrap",
    [lambda env: env, JsonAction, lambda env: JsonAction(BytesObservation(env))],
    ids=["as it is", "JsonAction", "bytes"],
)
def test_random_rollouts_play_valid_calls(wrap: Callable[[Any], Any]) -> None:
    import torch
    from torchrl.envs import GymWrapper, check_env_specs

    torch.manual_seed(0)
    env = GymWrapper(wrap(desk()))
    check_env_specs(env)
    rollout = env.rollout(40, break_when_any_done=False)
    actions = [rollout[step]["action"] for step in range(40)]
    assert len({repr(action) for action in actions}) > 5
    world = env._env.unwrapped
    for action in actions:
        name, arguments = world._codec.parse(action)
        assert world.encode(name, **arguments) is not None
    assert rollout["next", "done"].any()


def test_the_seed_of_torch_repeats_a_random_rollout() -> None:
    import torch
    from torchrl.envs import GymWrapper

    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        env = GymWrapper(JsonAction(desk()))
        rollout = env.rollout(5)
        drawn.append([rollout[step]["action"] for step in range(5)])
    assert drawn[0] == drawn[1]


def test_what_a_policy_writes_reaches_the_environment() -> None:
    from tensordict import NonTensorData
    from torchrl.envs import GymWrapper

    for wrap in (JsonAction, lambda env: env):
        env = GymWrapper(wrap(desk()))
        state = env.reset(seed=0)
        call = {"action": "categorize", "arguments": {"category": "bug"}}
        state["action"] = NonTensorData(json.dumps(call))
        after = env.step(state)["next"]
        assert after["text"] == "filed under bug" and after["turn"].tolist() == [1]
        assert after["reward"].shape == (1,)


def test_random_text_is_a_rejected_step() -> None:
    from tensordict import NonTensorData
    from torchrl.envs import GymWrapper

    env = GymWrapper(JsonAction(desk()))
    state = env.reset()
    state["action"] = NonTensorData("a string")
    assert "error" in json.loads(env.step(state)["next"]["text"])


def test_drawing_leaves_the_environments_own_space_alone() -> None:
    from torchrl.envs import GymWrapper

    env = JsonAction(desk())
    env.action_space.seed(5)
    expected = [env.action_space.sample() for _ in range(3)]
    env.action_space.seed(5)
    GymWrapper(env).action_spec.rand()
    assert [env.action_space.sample() for _ in range(3)] == expected


def test_action_mask_never_lets_a_guess_stand_twice() -> None:
    from torchrl.envs import ActionMask, GymWrapper, TransformedEnv, check_env_specs

    env = TransformedEnv(GymWrapper(guesses()), ActionMask())
    check_env_specs(env)
    rollout = env.rollout(24, break_when_any_done=False)
    game: set[int] = set()
    for number, done in zip(
        rollout["action"].argmax(-1).tolist(), rollout["next", "done"].squeeze(-1).tolist(), strict=True
    ):
        assert number not in game
        game = set() if done else game | {number}


def test_several_environments_and_collectors_take_it() -> None:
    from torchrl.collectors import Collector
    from torchrl.envs import GymEnv, GymWrapper, SerialEnv

    envs = SerialEnv(2, lambda: GymWrapper(JsonAction(desk())))
    assert envs.rollout(4, break_when_any_done=False).shape == (2, 4)
    envs.close()
    collector = Collector(lambda: GymWrapper(JsonAction(desk())), None, frames_per_batch=6, total_frames=12)
    try:
        batches = [batch.shape for batch in collector]
    finally:
        collector.shutdown()
    assert batches == [(6,), (6,)]
    assert GymEnv("plural_gym:plural/SupportDesk-v0").rollout(3).shape == (3,)


def test_unions_and_lists_of_arguments_are_converted() -> None:
    from torchrl.envs.libs.gym import _gym_to_torchrl_spec_transform

    from plural_gym.rl.codec import codec_for

    schema = {
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": "string"}}, "note": {"type": "string"}},
    }
    spec = _gym_to_torchrl_spec_transform(codec_for(schema).space)
    assert set(spec.keys()) == {"tags", "note"}
    assert spec.rand() is not None
