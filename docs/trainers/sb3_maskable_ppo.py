"""MaskablePPO of sb3-contrib learns Wordle with 200 words, also for secrets that it never played.

`DiscreteActions` makes guesses numbers, and MaskablePPO finds its `action_masks()` through all wrappers: a
word that was guessed before is not tried again. The policy scores letters in places, and a word by its five
letters, so that what one word teaches holds for every other.

    python docs/trainers/sb3_maskable_ppo.py --seed 1
"""

from typing import Any

import small_wordle
import torch
from progress import Progress, run
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.env_util import make_vec_env
from word_logits import WordLogits

STEPS = 300_000
ROUNDS = 10
"""How often the player is measured on the way."""


class WordPolicy(MaskableActorCriticPolicy):
    """The usual actor and critic, with `WordLogits` as the last layer of the actor."""

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        self.action_net = WordLogits(self.mlp_extractor.latent_dim_pi)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


def main(steps: int = STEPS, seed: int = 0) -> Progress:
    """Learn; returns the rates of games won, measured greedily on both splits."""
    torch.set_num_threads(1)  # the networks are small: a second thread costs more than it brings
    envs = make_vec_env(small_wordle.make, n_envs=32, seed=seed)
    model = MaskablePPO(
        WordPolicy,
        envs,
        n_steps=64,
        batch_size=512,
        n_epochs=4,
        learning_rate=1e-3,
        ent_coef=0.03,
        gamma=0.9,
        gae_lambda=0.9,
        policy_kwargs={"net_arch": {"pi": [], "vf": [128]}},
        seed=seed,
        device="cpu",
    )
    progress = Progress("sb3_maskable_ppo", seed)
    measure(progress, model)
    while model.num_timesteps < steps:
        model.learn(max(1, steps // ROUNDS), reset_num_timesteps=False)
        measure(progress, model)
    envs.close()
    return progress


def measure(progress: Progress, model: MaskablePPO) -> None:
    """Play every Task of both splits once."""

    def player(observation: Any, mask: Any) -> Any:
        return model.predict(observation, action_masks=mask, deterministic=True)[0]

    with progress.aside():
        rates = small_wordle.rates(player)
    progress.add(model.num_timesteps, **rates)


if __name__ == "__main__":
    run(main, STEPS, small_wordle.rates)
