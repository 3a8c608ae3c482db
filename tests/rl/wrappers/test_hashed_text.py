"""HashedTextObservation: a vector of what was said in the episode."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from plural_gym.errors import UsageError
from plural_gym.rl.text_features import hashed
from plural_gym.rl.wrappers import HashedTextObservation


def played(env: Any, *calls: Any) -> list[Any]:
    observations = [env.reset(seed=0)[0]]
    return observations + [env.step(call)[0] for call in calls]


SWITCH = {"action": "switch", "arguments": {"color": "red", "bright": False}}


def test_a_vector_of_what_was_said(world: Callable[..., Any]) -> None:
    env = HashedTextObservation(world(), 256)
    assert env.observation_space == gym.spaces.Box(-1.0, 1.0, (257,), np.float32)
    first, second = played(env, SWITCH)
    assert first.dtype == second.dtype == np.float32
    numbers, _ = hashed("Play with the lamp.", (1, 2), 16)
    assert set(np.flatnonzero(first[:-1])) == {number % 256 for number in numbers.tolist()}
    assert np.count_nonzero(second) > np.count_nonzero(first)


def test_the_last_number_is_the_share_of_turns_gone(world: Callable[..., Any]) -> None:
    observations = played(HashedTextObservation(world(), 16), SWITCH, "off", "fly")
    assert [float(one[-1]) for one in observations] == pytest.approx([0, 1 / 12, 2 / 12, 3 / 12])


def test_the_same_episode_gives_the_same_vectors(world: Callable[..., Any]) -> None:
    env, other = (HashedTextObservation(world(), 64) for _ in range(2))
    first = played(env, SWITCH, "off")
    assert repr(first) == repr(played(env, SWITCH, "off")) == repr(played(other, SWITCH, "off"))


def test_earlier_texts_are_remembered(world: Callable[..., Any]) -> None:
    env = HashedTextObservation(world(), 4096, history=None)
    remembering = played(env, SWITCH, "off", "off")[3]
    fresh = played(env, "off", "off", "off")[3]
    assert not np.array_equal(remembering[:-1], fresh[:-1]), "the lamp was red once"
    blind = HashedTextObservation(world(), 4096, history=1)
    assert np.array_equal(played(blind, SWITCH, "off", "off")[3], played(blind, "off", "off", "off")[3])


def test_a_history_forgets_the_oldest_text(world: Callable[..., Any]) -> None:
    env = HashedTextObservation(world(), 4096, history=2)
    with_red = played(env, SWITCH, "off", "off", "off")
    without = played(env, "off", "off", "off", "off")
    assert not np.array_equal(with_red[2], without[2])
    assert np.array_equal(with_red[3], without[3]) and np.array_equal(with_red[4], without[4])


def test_what_was_said_twice_counts_once(world: Callable[..., Any]) -> None:
    env = HashedTextObservation(world(), 4096, history=None)
    observations = played(env, "off", "off", "off")
    assert np.array_equal(observations[1][:-1], observations[3][:-1])
    assert np.abs(observations[3]).max() <= 1.0


def test_the_vector_is_the_callers_own(world: Callable[..., Any]) -> None:
    env = HashedTextObservation(world(), 64)
    first = played(env, SWITCH)
    for one in first:
        one[:] = 9
    assert np.abs(played(env, SWITCH)[1]).max() <= 1.0


def test_without_a_known_limit_turns_are_measured_by_a_hundred() -> None:
    class Talk(gym.Env[Any, Any]):
        observation_space = gym.spaces.Dict(
            {"text": gym.spaces.Text(9), "turn": gym.spaces.Box(0, 999, (1,), np.int32)}
        )
        action_space = gym.spaces.Discrete(1)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return {"text": "hello", "turn": np.array([50], np.int32)}, {}

    assert HashedTextObservation(Talk(), 8).reset()[0][-1] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size is a whole number from 1, got 0"),
        ({"size": True}, "size is a whole number"),
        ({"size": 2.5}, "size is a whole number"),
        ({"ngrams": ()}, r"ngrams are lengths from 1, such as \(1, 2\), got \(\)"),
        ({"ngrams": (0,)}, "ngrams are lengths"),
        ({"ngrams": 2}, "ngrams are lengths"),
        ({"places": -1}, "places is a whole number from 0, got -1"),
        ({"history": 0}, "history is a whole number from 1, or None"),
        ({"history": "all"}, "history is a whole number"),
    ],
)
def test_arguments_out_of_range_are_refused(
    world: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        HashedTextObservation(world(), **options)
