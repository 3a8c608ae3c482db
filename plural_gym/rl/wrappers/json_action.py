"""JsonAction: tool calls as the JSON text that a language model writes."""

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from plural_gym.errors import UsageError
from plural_gym.rl.call_text import call_space
from plural_gym.rl.wrappers.needs import tool_world


class JsonAction(gym.ActionWrapper[Any, Any, Any], RecordConstructorArgs):
    """Actions as JSON text, `{"action": name, "arguments": {...}}`: `Utf8Text` in place of the `ActionSpace`.

    For what takes a text space and no union of spaces: TorchRL, where text travels as NonTensor; Minari,
    whose data sets then hold each call as it was written; loops around a language model. Every sample of the
    space is a valid call. Any other text may be sent too: it is a rejected step, and the Agent reads why.

    Args:
        env: a GymEnv, or wrappers around one that leave its actions as they are.
        max_chars: the longest text of the space. `step` takes longer ones all the same.

    Raises:
        UsageError: no GymEnv inside, or `max_chars` below 1.
    """

    def __init__(self, env: gym.Env[Any, Any], max_chars: int = 65_536) -> None:
        world = tool_world(env, "JsonAction")
        if type(max_chars) is not int or max_chars < 1:
            raise UsageError(f"max_chars is a whole number from 1, got {max_chars!r}.")
        RecordConstructorArgs.__init__(self, max_chars=max_chars)
        gym.ActionWrapper.__init__(self, env)
        self.action_space = call_space(world.schemas, max_chars)

    def action(self, action: Any) -> Any:
        return action
