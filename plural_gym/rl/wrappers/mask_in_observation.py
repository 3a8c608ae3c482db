"""MaskInObservation: which actions are legal, in the observation, where some libraries look for it."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from plural_gym.errors import UsageError
from plural_gym.rl.spaces import ActionSpace
from plural_gym.rl.wrappers.needs import one_env


class MaskInObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """The observation with a mask beside it: `Dict(observation=..., action_mask=Box(0, 1, (n,), int8))`.

    For libraries that hand a policy nothing but the observation: RLlib, whose masking module wants the keys
    `("observations", "action_mask")`; Tianshou, which wants `("obs", "mask")`; TorchRL's `ActionMask`, which
    takes the keys it is told. MaskablePPO of sb3-contrib needs none of this: it calls `action_masks()`. The
    mask counts over the numbers of a `Discrete` action space, or over the names of an `ActionSpace`; all ones
    where no App says what is legal.

    Args:
        env: DiscreteActions around a GymEnv, or wrappers around that, such as HashedTextObservation.
        keys: the two keys, observation first.

    Raises:
        UsageError: no `action_masks()` inside, actions that no mask counts over, or keys that are not two.
    """

    def __init__(
        self, env: gym.Env[Any, Any], keys: tuple[str, str] = ("observation", "action_mask")
    ) -> None:
        one_env(env, "MaskInObservation")
        chosen = tuple(keys) if isinstance(keys, tuple | list) else ()
        if len(set(chosen)) != 2 or not all(isinstance(key, str) and key for key in chosen):
            raise UsageError(f"keys are two names, such as ('observation', 'action_mask'), got {keys!r}.")
        if not env.has_wrapper_attr("action_masks"):
            raise UsageError(
                f"MaskInObservation needs action_masks(), which {env} has not; put it around DiscreteActions."
            )
        RecordConstructorArgs.__init__(self, keys=list(chosen))
        gym.ObservationWrapper.__init__(self, env)
        self._keys = chosen
        mask = gym.spaces.Box(0, 1, (_actions(env.action_space),), np.int8)
        self.observation_space = gym.spaces.Dict({chosen[0]: env.observation_space, chosen[1]: mask})

    def observation(self, observation: Any) -> dict[str, Any]:
        mask = self.env.get_wrapper_attr("action_masks")()
        return {self._keys[0]: observation, self._keys[1]: mask.astype(np.int8)}


def _actions(space: gym.spaces.Space[Any]) -> int:
    if isinstance(space, gym.spaces.Discrete):
        return int(space.n)
    if isinstance(space, ActionSpace):
        return len(space.names)
    raise UsageError(
        f"MaskInObservation masks the numbers of a Discrete or the names of an ActionSpace, not {space}; "
        "put it around DiscreteActions."
    )
