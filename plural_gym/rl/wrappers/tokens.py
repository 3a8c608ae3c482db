"""TokenObservation: text as the token ids of a tokenizer, for networks with an embedding of tokens."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from plural_gym.errors import UsageError
from plural_gym.rl.wrappers.needs import text_space


class TokenObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """The text as token ids: `input_ids` and `attention_mask` in place of `text`.

    For policies that embed tokens, such as a transformer of the Transformers library under Stable-Baselines3
    ("MultiInputPolicy"), TorchRL or a loop of your own; the keys are those that such models take. `input_ids`
    is int64 of shape `(max_tokens,)`, filled up with `pad`; `attention_mask` is int8, 1 where a token stands.
    Of a longer text the first `max_tokens` tokens are kept. Other keys, such as `turn`, stay.

    Args:
        env: an environment with a text in its observation, such as a GymEnv.
        tokenizer: an object with `encode(text)`, or a function of the text, that gives ids (or bytes), an
            object with `.ids` (`tokenizers.Tokenizer`) or a mapping with "input_ids". With one, an EnvSpec
            can be pickled but not written as JSON.
        max_tokens: the size of the arrays.
        pad: the id that fills up.
        vocabulary: how many ids there are, 0 to `vocabulary - 1`. None: what the tokenizer says by
            `get_vocab_size()` or `len()`, else 2**31.

    Raises:
        UsageError: observations without a text, a tokenizer that gives no ids, or one beyond the vocabulary.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        tokenizer: Any,
        max_tokens: int = 512,
        *,
        pad: int = 0,
        vocabulary: int | None = None,
    ) -> None:
        inner = text_space(env, "TokenObservation")
        if type(max_tokens) is not int or max_tokens < 1:
            raise UsageError(f"max_tokens is a whole number from 1, got {max_tokens!r}.")
        self._encode = getattr(tokenizer, "encode", tokenizer)
        if not callable(self._encode):
            raise UsageError(f"tokenizer has encode(text), or is a function of the text; got {tokenizer!r}.")
        self._vocabulary = _size(tokenizer) if vocabulary is None else vocabulary
        if not 0 <= pad < self._vocabulary:
            raise UsageError(f"pad is an id of the vocabulary, 0 to {self._vocabulary - 1}, got {pad}.")
        RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            tokenizer=tokenizer,
            max_tokens=max_tokens,
            pad=pad,
            vocabulary=vocabulary,
        )
        gym.ObservationWrapper.__init__(self, env)
        self._max_tokens, self._pad = max_tokens, pad
        rest = {key: space for key, space in inner.spaces.items() if key != "text"}
        self.observation_space = gym.spaces.Dict(
            {
                **rest,
                "input_ids": gym.spaces.Box(0, self._vocabulary - 1, (max_tokens,), np.int64),
                "attention_mask": gym.spaces.Box(0, 1, (max_tokens,), np.int8),
            }
        )

    def observation(self, observation: Any) -> dict[str, Any]:
        ids = self._ids(observation["text"])
        tokens = np.full(self._max_tokens, self._pad, np.int64)
        tokens[: len(ids)] = ids
        mask = np.zeros(self._max_tokens, np.int8)
        mask[: len(ids)] = 1
        rest = {key: value for key, value in observation.items() if key != "text"}
        return {**rest, "input_ids": tokens, "attention_mask": mask}

    def _ids(self, text: str) -> Any:
        """The first ids of a text, as an int64 array."""
        encoded = self._encode(text)
        encoded = encoded["input_ids"] if isinstance(encoded, Mapping) else getattr(encoded, "ids", encoded)
        try:
            ids = np.asarray(list(encoded))
        except (TypeError, ValueError):
            ids = np.asarray(None)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise UsageError(f"the tokenizer gives a list of ids for a text; it gave {str(encoded)[:80]}.")
        kept: Any = ids[: self._max_tokens]
        if kept.size and not 0 <= int(kept.min()) <= int(kept.max()) < self._vocabulary:
            beyond = next(int(one) for one in kept if not 0 <= one < self._vocabulary)
            raise UsageError(
                f"the tokenizer gave the id {beyond}, beyond its vocabulary of {self._vocabulary}; "
                "give vocabulary=, the number of ids."
            )
        return kept


def _size(tokenizer: Any) -> int:
    """How many ids a tokenizer says it has."""
    if hasattr(tokenizer, "get_vocab_size"):
        return int(tokenizer.get_vocab_size())
    try:
        return len(tokenizer)
    except TypeError:
        return 2**31
