"""Environments of one world share what never changes, and nothing else."""

import gc
import tracemalloc
from typing import Any

import gymnasium as gym
import pytest

from plural_gym.errors import UnknownName
from plural_gym.rl import worlds

SLATE = {"action": "guess", "arguments": {"word": "slate"}}


def test_a_project_is_opened_once_until_it_is_opened_anew(workshop: Any) -> None:
    first = worlds.project_at(workshop.root)
    assert worlds.project_at(str(workshop.root / "tasks")) is first
    anew = worlds.open_anew(workshop.root)
    assert anew is not first and worlds.project_at(workshop.root) is anew


def test_tasks_are_listed_once_and_none_is_none(workshop: Any) -> None:
    project = worlds.project_at(workshop.root)
    assert worlds.tasks_of(project, "counter", None) is worlds.tasks_of(project, "counter", None)
    with pytest.raises(UnknownName, match="has no Environment 'countr'; did you mean 'counter'"):
        worlds.tasks_of(project, "countr", None)


def test_two_environments_share_tasks_and_no_generator() -> None:
    one, other = (gym.make("plural_gym:plural/Wordle-v0").unwrapped for _ in range(2))
    assert one.plans is other.plans  # type: ignore[attr-defined]
    assert one.action_space == other.action_space and one.action_space is not other.action_space
    one.action_space.seed(1)
    other.action_space.seed(2)
    assert one.action_space.sample() != other.action_space.sample()
    assert one.np_random is not other.np_random


def test_an_environment_of_a_shipped_world_takes_little_memory() -> None:
    def made(count: int) -> list[Any]:
        envs = [gym.make("plural_gym:plural/Wordle-v0") for _ in range(count)]
        for seed, env in enumerate(envs):
            env.action_space.seed(seed)
            env.reset(seed=seed)
            env.step(SLATE)
        return envs

    kept = made(64)  # and with them what all share
    gc.collect()
    tracemalloc.start()
    try:
        kept += made(64)
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / 64 < 50_000
