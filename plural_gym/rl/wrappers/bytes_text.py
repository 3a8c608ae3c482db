"""BytesObservation: text as fixed-size arrays of bytes, which fit in shared memory."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from plural_gym.errors import UsageError
from plural_gym.rl.wrappers.needs import text_space


class BytesObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """The text as UTF-8 bytes: `text` becomes `Box(0, 255, (max_bytes,), uint8)`, beside it `length`.

    For what needs arrays of a fixed size and still has to get the text itself: Gymnasium's `AsyncVectorEnv`
    with its shared memory, Stable-Baselines3 ("MultiInputPolicy"), replay buffers, networks over characters.
    `text` is filled up with zeros; `length`, int32 of shape (1,), counts the bytes that are text. A longer
    text is cut before the character that does not fit. Other keys, such as `turn`, stay.

    Args:
        env: an environment with a text in its observation, such as a GymEnv.
        max_bytes: the size of the array.

    Raises:
        UsageError: observations without a text, or with a `length` already; `max_bytes` below 1.
    """

    def __init__(self, env: gym.Env[Any, Any], max_bytes: int = 1024) -> None:
        inner = text_space(env, "BytesObservation")
        if type(max_bytes) is not int or max_bytes < 1:
            raise UsageError(f"max_bytes is a whole number from 1, got {max_bytes!r}.")
        if "length" in inner.spaces:
            raise UsageError("BytesObservation adds the key 'length', which the observation has already.")
        RecordConstructorArgs.__init__(self, max_bytes=max_bytes)
        gym.ObservationWrapper.__init__(self, env)
        self._max_bytes = max_bytes
        self.observation_space = gym.spaces.Dict(
            {
                **inner.spaces,
                "text": gym.spaces.Box(0, 255, (max_bytes,), np.uint8),
                "length": gym.spaces.Box(0, max_bytes, (1,), np.int32),
            }
        )

    def observation(self, observation: Any) -> dict[str, Any]:
        content = observation["text"].encode()
        if len(content) > self._max_bytes:
            # Half a character at the end is left out.
            content = content[: self._max_bytes].decode(errors="ignore").encode()
        array = np.zeros(self._max_bytes, np.uint8)
        array[: len(content)] = np.frombuffer(content, np.uint8)
        return {**observation, "text": array, "length": np.array([len(content)], np.int32)}

    @staticmethod
    def text(observation: Any) -> str:
        """The text of one observation, as a policy that reads text wants it."""
        return bytes(observation["text"][: int(observation["length"][0])]).decode()
