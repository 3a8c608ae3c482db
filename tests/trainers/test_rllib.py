"""RLlib learns in our worlds. Ray asks for one exact Gymnasium, so this runs in an environment of its own."""

from collections.abc import Callable
from types import ModuleType

import pytest

pytestmark = pytest.mark.trainers


def test_rllib_learns_under_masks(script: Callable[..., ModuleType]) -> None:
    progress = script("rllib_ppo", "ray", "torch").main(steps=60_000)
    legal = 6 / 200
    assert progress.first["train"] <= 2 * legal
    assert progress.last["train"] >= 2.5 * legal
