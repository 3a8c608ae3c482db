"""TokenObservation: any tokenizer, ids and mask of a fixed size."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plural_gym.errors import UsageError
from plural_gym.rl.wrappers import TokenObservation


def words(text: str) -> list[int]:
    return [len(word) for word in text.split()]


class Encoding:
    def __init__(self, ids: list[int]) -> None:
        self.ids = ids


class LikeTokenizers:
    """As `tokenizers.Tokenizer` speaks."""

    def encode(self, text: str) -> Encoding:
        return Encoding(words(text))

    def get_vocab_size(self) -> int:
        return 30


class LikeTransformers:
    """As a tokenizer of Transformers speaks: `encode`, and a length."""

    def encode(self, text: str) -> list[int]:
        return words(text)

    def __len__(self) -> int:
        return 30


def mapped(text: str) -> dict[str, list[int]]:
    return {"input_ids": words(text), "attention_mask": [1]}


@pytest.mark.parametrize("tokenizer", [words, LikeTokenizers(), LikeTransformers(), mapped])
def test_any_kind_of_tokenizer_is_taken(world: Callable[..., Any], tokenizer: Any) -> None:
    env = TokenObservation(world(), tokenizer, 6, pad=7)
    observation, _ = env.reset(seed=0)
    assert observation["input_ids"].tolist() == [4, 4, 3, 5, 7, 7]
    assert observation["attention_mask"].tolist() == [1, 1, 1, 1, 0, 0]
    assert observation["input_ids"].dtype == np.int64 and observation["attention_mask"].dtype == np.int8
    assert (
        set(observation) == {"input_ids", "attention_mask", "turn"} and observation in env.observation_space
    )


def test_of_a_longer_text_the_first_tokens_are_kept(world: Callable[..., Any]) -> None:
    observation, _ = TokenObservation(world(), words, 2).reset(seed=0)
    assert (observation["input_ids"].tolist(), observation["attention_mask"].tolist()) == ([4, 4], [1, 1])


def test_the_vocabulary_is_what_the_tokenizer_says(world: Callable[..., Any]) -> None:
    def top(tokenizer: Any, **options: Any) -> int:
        env = TokenObservation(world(), tokenizer, 4, **options)
        return int(env.observation_space["input_ids"].high[0]) + 1

    assert top(LikeTokenizers()) == top(LikeTransformers()) == 30
    assert top(words) == 2**31 and top(words, vocabulary=99) == 99


def test_an_empty_text_is_all_padding(world: Callable[..., Any]) -> None:
    env = TokenObservation(world("mute"), lambda text: [], 3)
    assert env.reset(seed=0)[0]["attention_mask"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (lambda text: [99], "gave the id 99, beyond its vocabulary of 30; give vocabulary="),
        (lambda text: [1, -2], "gave the id -2, beyond"),
        (lambda text: "abc", "the tokenizer gives a list of ids for a text; it gave abc"),
        (lambda text: [1.5], "gives a list of ids"),
        (lambda text: [[1], [2]], "gives a list of ids"),
        (lambda text: [[1], [2, 3]], "gives a list of ids"),
        (lambda text: None, "gives a list of ids"),
    ],
)
def test_what_is_no_ids_is_refused(world: Callable[..., Any], tokenizer: Any, message: str) -> None:
    env = TokenObservation(world(), tokenizer, 4, vocabulary=30)
    with pytest.raises(UsageError, match=message):
        env.reset(seed=0)


def test_arguments_out_of_range_are_refused(world: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="max_tokens is a whole number from 1, got 0"):
        TokenObservation(world(), words, 0)
    with pytest.raises(UsageError, match="pad is an id of the vocabulary, 0 to 29, got 30"):
        TokenObservation(world(), LikeTokenizers(), pad=30)
    with pytest.raises(
        UsageError, match=r"tokenizer has encode\(text\), or is a function of the text; got 3"
    ):
        TokenObservation(world(), 3)


def test_bytes_are_ids_too(world: Callable[..., Any]) -> None:
    env = TokenObservation(world(), str.encode, 64, vocabulary=256)
    env.reset(seed=0)
    observation, *_ = env.step("off")
    ids = observation["input_ids"][observation["attention_mask"] == 1]
    assert bytes(ids.tolist()).decode() == "it is dark — Ünïcödé ✓"
