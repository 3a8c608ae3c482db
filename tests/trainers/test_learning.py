"""Libraries really learn in our worlds: each script of docs/trainers in a short form.

The bounds lie far below what the seed reaches (see docs/training-loops.md), and above what chance does: a
random legal player wins 3 % of the small Wordle and files a fifth of the tickets rightly.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.trainers

LEGAL = 6 / 200
"""The random legal player's rate in the small Wordle."""


def test_ppo_of_stable_baselines_learns_to_file_tickets(script: Callable[..., ModuleType]) -> None:
    progress = script("sb3_ppo", "stable_baselines3").main(steps=50_000)
    assert progress.first["train"] <= 0.4
    assert progress.last["train"] >= 0.7


def test_maskable_ppo_wins_three_times_as_often_as_random_legal_play(
    script: Callable[..., ModuleType],
) -> None:
    progress = script("sb3_maskable_ppo", "sb3_contrib", "stable_baselines3").main(steps=60_000)
    assert progress.first["train"] <= 2 * LEGAL
    assert progress.last["train"] >= 5 * LEGAL


def test_a_loop_of_ones_own_learns_in_the_vector_environment(script: Callable[..., ModuleType]) -> None:
    progress = script("cleanrl_ppo", "torch").main(steps=120_000)
    assert progress.first["train"] <= 2 * LEGAL
    assert progress.last["train"] >= 0.3


def test_torchrl_learns_under_masks(script: Callable[..., ModuleType]) -> None:
    progress = script("torchrl_ppo", "torchrl").main(steps=30_000)
    assert progress.first["train"] <= 2 * LEGAL
    assert progress.last["train"] >= 3 * LEGAL


def test_torchrl_collects_json_tool_calls(script: Callable[..., ModuleType]) -> None:
    told: Any = script("torchrl_ppo", "torchrl").text_rollout(seed=0)
    calls, read = list(told["action"]), list(told["next", "text"])
    assert calls[0] == '{"action": "read_ticket", "arguments": {}}'
    assert read[-1] == "ticket resolved"
    assert len(calls) == len(read) == 5
    assert told["next", "terminated"].ravel().tolist() == [False] * 4 + [True]
    assert told["next", "reward"].sum().item() == pytest.approx(0.75)


def test_minari_records_text_and_calls_and_builds_the_world_again(
    script: Callable[..., ModuleType], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloning: Any = script("minari_cloning", "minari", "jax", "h5py")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    cloning.record(40, seed=0)
    data = cloning.minari.load_dataset(cloning.DATA_SET)
    assert data.total_steps >= 40
    env = data.recover_environment()
    for episode in data.iterate_episodes():
        assert episode.terminations[-1] and not episode.truncations.any()
        assert all(text[1::4] == "=====" for text in episode.observations["text"][1:])
        assert all(call.startswith('{"action": "guess"') for call in episode.actions)
    env.reset(seed=0)
    assert env.step(episode.actions[0])[4]["action"] == "guess"


def test_a_policy_learns_from_a_minari_data_set_alone(script: Callable[..., ModuleType]) -> None:
    progress = script("minari_cloning", "minari", "jax", "h5py").main(steps=3_000)
    assert progress.first["train"] <= 2 * LEGAL
    assert progress.last["train"] >= 0.5
