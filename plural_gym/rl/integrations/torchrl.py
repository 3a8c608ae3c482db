"""TorchRL: importing this module lets `torchrl.envs.GymWrapper` and `GymEnv` take environments of plural_gym.

    import plural_gym.rl.integrations.torchrl

TorchRL knows no spec for a choice among tool calls. Actions, and texts, then travel as `NonTensor`, whose
random values are samples of the space: a random rollout plays valid calls. What a policy writes under
"action" goes to `step` as it is, so JSON text of a call and a mapping do as well.
"""

from copy import deepcopy
from typing import Any

import torch
from gymnasium import spaces
from tensordict import NonTensorData
from torchrl.data import NonTensor
from torchrl.envs.libs.gym import register_gym_spec_conversion

from plural_gym.rl.spaces import ActionSpace, BoundedSequence, Choice, Utf8Text


class SampledNonTensor(NonTensor):  # type: ignore[misc, unused-ignore]  # TorchRL may be missing
    """A `NonTensor` whose `example_data` is a space: `rand` draws from it, by torch's random generator."""

    def rand(self, shape: Any = None) -> Any:
        return _drawn(super().rand(shape), self.example_data)


def _drawn(holder: Any, space: spaces.Space[Any]) -> Any:
    """Put samples where `NonTensor` put the space."""
    if isinstance(holder, NonTensorData):
        space.seed(int(torch.randint(2**31 - 1, ())))
        return NonTensorData(data=space.sample(), batch_size=holder.batch_size, device=holder.device)
    return type(holder)(*(_drawn(one, space) for one in holder.tensordicts), stack_dim=holder.stack_dim)


def convert(space: spaces.Space[Any], device: Any = None, **_: Any) -> NonTensor:
    """The TorchRL spec of one of this package's spaces."""
    return SampledNonTensor((), device=device, example_data=deepcopy(space))


for _kind in (ActionSpace, Choice, BoundedSequence, Utf8Text):
    register_gym_spec_conversion(_kind)(convert)
