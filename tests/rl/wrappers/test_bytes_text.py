"""BytesObservation: text as bytes of a fixed number."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plural_gym.errors import UsageError
from plural_gym.rl.wrappers import BytesObservation, TokenObservation


def test_text_becomes_its_utf8_bytes(world: Callable[..., Any]) -> None:
    env = BytesObservation(world(), 64)
    env.reset(seed=0)
    observation, *_ = env.step("off")
    content = "it is dark — Ünïcödé ✓".encode()
    assert observation["text"].dtype == np.uint8 and observation["text"].shape == (64,)
    assert bytes(observation["text"]) == content + bytes(64 - len(content))
    assert observation["length"].tolist() == [len(content)] and observation["turn"].tolist() == [1]
    assert BytesObservation.text(observation) == "it is dark — Ünïcödé ✓"


@pytest.mark.parametrize("size", range(1, 30))
def test_a_longer_text_is_cut_between_characters(world: Callable[..., Any], size: int) -> None:
    env = BytesObservation(world(), size)
    env.reset(seed=0)
    observation, *_ = env.step("off")
    assert observation in env.observation_space
    text = BytesObservation.text(observation)
    assert "it is dark — Ünïcödé ✓".startswith(text) and len(text.encode()) > size - 3


def test_other_keys_stay(world: Callable[..., Any]) -> None:
    env = BytesObservation(world(), 16)
    assert set(env.observation_space.spaces) == {"text", "length", "turn"}
    assert set(env.reset(seed=0)[0]) == {"text", "length", "turn"}


@pytest.mark.parametrize("size", [0, -3, 1.0, None, True])
def test_the_size_is_a_whole_number(world: Callable[..., Any], size: Any) -> None:
    with pytest.raises(UsageError, match="max_bytes is a whole number from 1"):
        BytesObservation(world(), size)


def test_it_does_not_go_around_tokens(world: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="BytesObservation needs observations with a text"):
        BytesObservation(TokenObservation(world(), lambda text: [1]))
