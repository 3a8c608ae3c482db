"""The space of tool calls as JSON text, whose samples are all valid calls. `JsonAction` acts in it."""

import functools
import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from plural_gym.rl.codec import ActionCodec
from plural_gym.rl.spaces import Utf8Text
from plural_gym.rl.text_samplers import CannotGenerate
from plural_gym.rl.value_codecs import json_text

_TRIES = 100


@dataclass(frozen=True, slots=True)
class CallText:
    """Makes the JSON text of a random call of one of some actions, with arguments that fit."""

    schemas: str
    """JSON text: action -> JSON Schema of its arguments, in the order of the actions."""

    def __call__(self, rng: np.random.Generator, min_length: int, max_length: int) -> str:
        """Return one text; raises `CannotGenerate` where calls are longer than `max_length` allows."""
        codec = _codec(self.schemas)
        for _ in range(_TRIES):
            index = rng.integers(len(codec.names))
            space = deepcopy(codec.space.spaces[index])  # the codec's own is shared by all threads
            space.seed(int(rng.integers(2**31 - 1)))
            name, arguments = codec.decode((index, space.sample()))
            text = json_text({"action": name, "arguments": arguments})
            if min_length <= len(text) <= max_length:
                return text
        raise CannotGenerate(f"no call is written in {min_length} to {max_length} characters.")


def call_space(schemas: Mapping[str, Mapping[str, Any]], max_chars: int) -> Utf8Text:
    """Return the space of texts up to `max_chars` long; its samples are calls of the actions of `schemas`."""
    return Utf8Text(max_chars, generate=CallText(json.dumps(schemas)))


@functools.lru_cache(64)
def _codec(schemas: str) -> ActionCodec:
    return ActionCodec(json.loads(schemas))
