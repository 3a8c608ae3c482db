"""PPO of Stable-Baselines3 learns to handle support tickets from their text.

`DiscreteActions` makes eight tool calls numbers, and `HashedTextObservation` makes what the Agent has read
one vector: the stock "MlpPolicy" needs no more. It learns all tickets that it plays. To file others it would
have to see more than sixteen, as the test rate says.

    python docs/trainers/sb3_ppo.py --seed 1
"""

from typing import Any

import desk
import torch
from progress import Progress, run
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

STEPS = 60_000
ROUNDS = 10
"""How often the player is measured on the way."""


def main(steps: int = STEPS, seed: int = 0) -> Progress:
    """Learn; returns the rates of tickets solved, measured greedily on both splits."""
    torch.set_num_threads(1)  # the networks are small: a second thread costs more than it brings
    envs = make_vec_env(desk.make, n_envs=16, seed=seed)
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=64,
        batch_size=256,
        learning_rate=3e-4,
        ent_coef=0.05,
        gamma=0.99,
        seed=seed,
        device="cpu",
    )
    progress = Progress("sb3_ppo", seed)
    measure(progress, model)
    while model.num_timesteps < steps:
        model.learn(max(1, steps // ROUNDS), reset_num_timesteps=False)
        measure(progress, model)
    envs.close()
    return progress


def measure(progress: Progress, model: PPO) -> None:
    """Play every ticket of both splits once."""

    def player(observation: Any, mask: Any) -> Any:
        return model.predict(observation, deterministic=True)[0]

    with progress.aside():
        rates = desk.rates(player)
    progress.add(model.num_timesteps, **rates)


if __name__ == "__main__":
    run(main, STEPS, desk.rates)
