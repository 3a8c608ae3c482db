"""The small Wordle of the training scripts: its Tasks, what it shows, and who plays it at random."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env


@pytest.fixture
def world(script: Callable[..., ModuleType]) -> Any:
    return script("small_wordle")


def test_200_words_may_be_guessed_and_held_out_secrets_are_never_trained_on(world: Any) -> None:
    secrets = {
        split: {task.setup["game"]["secret"] for task in world.tasks() if task.split == split}
        for split in ("train", "test")
    }
    assert (len(secrets["train"]), len(secrets["test"])) == (160, 40)
    assert not secrets["train"] & secrets["test"]
    assert world.words() == sorted(secrets["train"] | secrets["test"])
    env = world.make("train")
    drawn = set()
    for seed in range(400):
        env.reset(seed=seed)
        drawn.add(env.unwrapped.episode.task.name.removeprefix("wordle/"))
    assert len(drawn) > 100 and drawn <= secrets["train"]


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version:UserWarning")
def test_the_world_keeps_gymnasiums_rules(world: Any) -> None:
    check_env(world.make(), skip_render_check=True)


def test_every_word_is_legal_until_it_was_guessed(world: Any) -> None:
    env = world.make()
    env.reset(seed=0)
    assert env.get_wrapper_attr("action_masks")().all()
    env.step(7)
    assert np.flatnonzero(~env.get_wrapper_attr("action_masks")()).tolist() == [7]


def test_what_is_known_grows_with_every_guess_and_never_tells_more_than_the_marks(world: Any) -> None:
    known = np.zeros(world.FEATURES, np.float32)
    world.learn(known, "Guess the secret word.")
    assert not known.any()
    world.learn(known, "e=y r=- a=g s=- e=-")
    facts = {letter: known[start : start + 12].nonzero()[0].tolist() for letter, start in rows("erasz")}
    # 0-4 stands here, 5-9 does not stand here, 10 is in the word, 11 is not
    assert facts == {"e": [5, 9, 10], "r": [6, 11], "a": [2, 10], "s": [8, 11], "z": []}
    assert known[-1] == pytest.approx(1 / 6)


def rows(letters: str) -> list[tuple[str, int]]:
    return [(letter, (ord(letter) - ord("a")) * 12) for letter in letters]


def test_the_random_legal_player_wins_three_games_of_a_hundred(
    world: Any, script: Callable[..., ModuleType]
) -> None:
    players: Any = script("players")
    rates = world.rates(players.random_legal(), games=5)
    assert 0.015 < rates["train"] < 0.05
