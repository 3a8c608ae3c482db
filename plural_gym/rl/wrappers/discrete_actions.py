"""DiscreteActions: tool calls as the numbers that Stable-Baselines3, RLlib, Tianshou and CleanRL act by."""

import copy
import operator
from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from plural_gym.errors import UsageError
from plural_gym.rl.catalogue import all_calls, checked_calls
from plural_gym.rl.value_codecs import json_text
from plural_gym.rl.wrappers.needs import tool_world

_SCALARS = (str, int, float, bool, type(None))


class DiscreteActions(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Actions as numbers, each one call out of a catalogue: `Discrete(n)` in place of the `ActionSpace`.

    For libraries whose algorithms take `Discrete` only: Stable-Baselines3 (all algorithms), sb3-contrib's
    MaskablePPO, RLlib, Tianshou, TorchRL's discrete policies, CleanRL. MaskablePPO finds `action_masks()`
    through any stack of wrappers. Where an App says what is legal, `info["action_mask"]` is over the
    catalogue.

    Args:
        env: a GymEnv, or wrappers around one that leave its actions as they are.
        catalog: the calls to choose from, in the order of their numbers: `{"action": name, "arguments":
            {...}}`, `(name, {...})`, or a name that needs no arguments. None: every call there is, where each
            argument has finitely many values; `finish` then goes without an answer.
        limit: most calls that are listed without a catalogue.

    Raises:
        UsageError: no GymEnv inside; an entry that fits no action, or stands twice; without a catalogue, an
            argument without end, or more calls than `limit`.
    """

    def __init__(
        self, env: gym.Env[Any, Any], catalog: Iterable[Any] | None = None, *, limit: int = 10_000
    ) -> None:
        self._world = tool_world(env, "DiscreteActions")
        if catalog is not None and (isinstance(catalog, str) or not isinstance(catalog, Iterable)):
            raise UsageError(f"catalog is a list of calls, got {catalog!r}.")
        catalog = None if catalog is None else list(catalog)
        RecordConstructorArgs.__init__(self, catalog=catalog, limit=limit)
        gym.Wrapper.__init__(self, env)
        if catalog is None:
            calls = all_calls(self._world, env.action_space, limit, "DiscreteActions")
        else:
            calls = checked_calls(self._world, catalog)
        self._calls = calls
        self._plain = [
            all(isinstance(value, _SCALARS) for value in call["arguments"].values()) for call in calls
        ]
        self.action_space = gym.spaces.Discrete(len(calls))
        self._judged: tuple[Any, Callable[[], list[bool]]] | None = None

    def call(self, index: Any) -> dict[str, Any]:
        """The call that a number stands for, `{"action": name, "arguments": {...}}`; a copy.

        Raises:
            UsageError: the catalogue has no such number.
        """
        try:
            place = operator.index(index.item() if isinstance(index, np.ndarray) else index)
        except (TypeError, ValueError):
            place = -1
        if not 0 <= place < len(self._calls):
            raise UsageError(f"the catalogue has calls 0 to {len(self._calls) - 1}, and no {index!r}.")
        call = self._calls[place]
        if self._plain[place]:
            return {"action": call["action"], "arguments": call["arguments"].copy()}
        return copy.deepcopy(call)

    def index(self, call: Any) -> int:
        """The number of a call in any of the catalogue's forms.

        Raises:
            UsageError: it is none of the catalogue.
        """
        (asked,) = checked_calls(self._world, [call], "call")
        for place, known in enumerate(self._calls):
            if known == asked:
                return place
        raise UsageError(f"{json_text(asked)} is none of the {len(self._calls)} calls of the catalogue.")

    def action_masks(self) -> Any:
        """Which calls may be taken now: a bool array over the catalogue, all True where no App says."""
        return np.frombuffer(bytes(self._legal()), np.bool_).copy()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, self._over_catalogue(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(self.call(action))
        return observation, reward, terminated, truncated, self._over_catalogue(info)

    def _over_catalogue(self, info: dict[str, Any]) -> dict[str, Any]:
        if "action_mask" in info:
            info["action_mask"] = np.frombuffer(bytes(self._legal()), np.int8).copy()
        return info

    def _legal(self) -> list[bool]:
        host = self._world.host
        if self._judged is None or self._judged[0] is not host:
            calls = [(call["action"], call["arguments"]) for call in self._calls]
            self._judged = host, self._world.judge(calls)
        return self._judged[1]()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_judged": None}
