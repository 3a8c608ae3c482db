"""Stable-Baselines3 and sb3-contrib take the wrappers as they are; with the real packages."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from plural_gym.rl.wrappers import (
    BytesObservation,
    DiscreteActions,
    HashedTextObservation,
    RecordLedger,
    TokenObservation,
)

pytestmark = [pytest.mark.trainers, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

WORDS = ["crane", "slate", "brick", "pound", "jumpy", "fight", "angry"]


def numbered() -> Any:
    env = gym.make("plural_gym:plural/Wordle-v0", disable_env_checker=True)
    return DiscreteActions(env, [("guess", {"word": word}) for word in WORDS])


@pytest.mark.parametrize(
    "wrap",
    [
        HashedTextObservation,
        BytesObservation,
        lambda env: TokenObservation(env, str.encode, 64, vocabulary=256),
    ],
    ids=["hashed", "bytes", "tokens"],
)
def test_the_checker_has_no_complaint(trainers: Callable[..., None], wrap: Callable[[Any], Any]) -> None:
    trainers("stable_baselines3")
    from stable_baselines3.common.env_checker import check_env

    check_env(wrap(numbered()))


def test_masks_are_found_through_the_stack(trainers: Callable[..., None], tmp_path: Any) -> None:
    trainers("stable_baselines3", "sb3_contrib")
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
    from stable_baselines3.common.env_util import make_vec_env

    envs = make_vec_env(lambda: HashedTextObservation(RecordLedger(numbered(), tmp_path), 64), 2, seed=0)
    envs.reset()
    assert is_masking_supported(envs) and get_action_masks(envs).shape == (2, len(WORDS))
    envs.step(np.array([1, 2]))
    assert get_action_masks(envs).tolist() == [
        [number != taken for number in range(len(WORDS))] for taken in (1, 2)
    ]
    model = MaskablePPO("MlpPolicy", envs, n_steps=16, batch_size=16, n_epochs=1, device="cpu", seed=0)
    model.learn(64)
    envs.close()
