"""RLlib's PPO, on its new API, learns Wordle with 200 words.

RLlib hands a policy nothing but the observation, so `MaskInObservation` puts what is legal beside it, under
the keys that RLlib's own masking module reads.

    python docs/trainers/rllib_ppo.py --seed 1

Ray asks for one exact release of Gymnasium: install it into an environment of its own, `pip install
'plural-gym[rllib]'`.
"""

from typing import Any

import numpy as np
import ray
import small_wordle
import torch
from progress import Progress, run
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

from plural_gym.rl.wrappers import MaskInObservation

STEPS = 300_000
BATCH = 4_000
MEASURED = 10
"""Iterations between two measurements."""


def make(config: Any) -> MaskInObservation:
    """The world of `small_wordle`, with its masks, for RLlib."""
    return MaskInObservation(small_wordle.make("train"), ("observations", "action_mask"))


def configuration(seed: int) -> PPOConfig:
    """PPO in this process; `env_runners(num_env_runners=...)` would spread it over several."""
    register_env("small-wordle", make)
    return (
        PPOConfig()
        .environment("small-wordle")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=16)
        .learners(num_learners=0)
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=ActionMaskingTorchRLModule,
                model_config={"fcnet_hiddens": [256], "fcnet_activation": "relu"},
            )
        )
        .training(
            train_batch_size=BATCH,
            minibatch_size=500,
            num_epochs=4,
            lr=1e-3,
            entropy_coeff=0.01,
            gamma=0.9,
            lambda_=0.9,
            use_kl_loss=False,
            grad_clip=0.5,
        )
        .debugging(seed=seed, log_level="ERROR")
    )


def main(steps: int = STEPS, seed: int = 0) -> Progress:
    """Learn; returns the rates of games won, measured greedily on both splits."""
    torch.set_num_threads(1)  # the networks are small: a second thread costs more than it brings
    ray.init(include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    algorithm = configuration(seed).build_algo()
    progress = Progress("rllib_ppo", seed)
    measure(progress, algorithm, 0)
    iterations = max(1, steps // BATCH)
    for number in range(1, iterations + 1):
        algorithm.train()
        if number % MEASURED == 0 or number == iterations:
            measure(progress, algorithm, number * BATCH)
    algorithm.stop()
    ray.shutdown()
    return progress


@torch.no_grad()
def measure(progress: Progress, algorithm: PPO, steps: int) -> None:
    """Play every Task of both splits once."""
    module = algorithm.get_module()

    def player(known: Any, mask: Any) -> Any:
        seen = {"observations": known, "action_mask": mask.astype(np.float32)}
        batch = {Columns.OBS: {key: torch.as_tensor(value)[None] for key, value in seen.items()}}
        return module.forward_inference(batch)[Columns.ACTION_DIST_INPUTS].argmax().item()

    with progress.aside():
        rates = small_wordle.rates(player)
    progress.add(steps, **rates)


if __name__ == "__main__":
    run(main, STEPS, small_wordle.rates)
