"""PPO in one file, in the manner of CleanRL, learns Wordle with 200 words in the native vector environment.

`VectorGymEnv` steps 64 games in one loop. The texts of all of them become one array here, without a wrapper,
and actions go in as tool calls: this is the shape of a training loop of your own.

    python docs/trainers/cleanrl_ppo.py --seed 1
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import small_wordle
import torch
from progress import Progress, run
from torch import nn
from word_logits import WordLogits

from plural_gym.rl.vector import VectorGymEnv

STEPS = 400_000
GAMES, LENGTH = 64, 32
"""Games played at a time, and the steps of each between two updates."""
EPOCHS, MINIBATCH = 4, 512
LEARNING_RATE, CLIP, ENTROPY, VALUE = 1e-3, 0.2, 0.03, 0.5
GAMMA, LAMBDA = 0.9, 0.9
MEASURED = 20
"""Updates between two measurements."""


class Agent(nn.Module):
    """An actor without hidden layers and a critic with one."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = WordLogits(small_wordle.FEATURES)
        self.critic = nn.Sequential(nn.Linear(small_wordle.FEATURES, 128), nn.Tanh(), nn.Linear(128, 1))

    def forward(self, known: torch.Tensor) -> tuple[torch.distributions.Categorical, torch.Tensor]:
        policy = torch.distributions.Categorical(logits=self.actor(known), validate_args=False)
        return policy, self.critic(known).squeeze(-1)


class Games:
    """The vector environment, with all that its texts have told so far as one array."""

    def __init__(self, seed: int) -> None:
        tasks = small_wordle.tasks()
        self.envs = VectorGymEnv(
            tasks[0].environment, GAMES, tasks=tasks, split="train", autoreset_mode="NextStep", infos="none"
        )
        self.envs.reset(seed=seed)
        self.calls = [{"action": name, "arguments": given} for name, given in small_wordle.calls()]
        self.known = np.zeros((GAMES, small_wordle.FEATURES), np.float32)
        self.over = np.zeros(GAMES, np.bool_)

    def step(self, actions: torch.Tensor) -> tuple[Any, Any]:
        """Take one action a game; returns rewards and which games were won or lost."""
        observations, rewards, terminated, truncated, _ = self.envs.step(
            [self.calls[action] for action in actions.tolist()]
        )
        self.known[self.over] = 0  # these steps only started the next game
        for known, text in zip(self.known, observations["text"], strict=True):
            small_wordle.learn(known, text)
        self.over = terminated | truncated
        return rewards, terminated


@dataclass
class Batch:
    """What `LENGTH` steps of all games gave; arrays of shape (LENGTH, GAMES)."""

    known: torch.Tensor
    actions: torch.Tensor
    logprobs: torch.Tensor
    values: torch.Tensor
    advantages: torch.Tensor
    real: torch.Tensor
    """False where a step only started the next game: no transition, left out of the update."""


def collect(games: Games, agent: Agent) -> Batch:
    """Play `LENGTH` steps, and estimate advantages (Schulman et al. 2016, https://arxiv.org/abs/1506.02438)."""
    shape = LENGTH, GAMES
    known = torch.zeros(LENGTH + 1, GAMES, small_wordle.FEATURES)
    actions, real = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.bool)
    logprobs, rewards, ends, overs = (torch.zeros(shape) for _ in range(4))
    values = torch.zeros(LENGTH + 1, GAMES)
    for t in range(LENGTH):
        known[t] = torch.as_tensor(games.known)
        real[t] = torch.as_tensor(~games.over)
        policy, values[t] = agent(known[t])
        actions[t] = policy.sample()
        logprobs[t] = policy.log_prob(actions[t])
        reward, terminated = games.step(actions[t])
        rewards[t], ends[t] = torch.as_tensor(reward), torch.as_tensor(terminated)
        overs[t] = torch.as_tensor(games.over)
    known[LENGTH] = torch.as_tensor(games.known)
    values[LENGTH] = agent(known[LENGTH])[1]
    # The step that ends a game still shows it: its value counts after a truncation, not after an end.
    surprise = rewards + GAMMA * (1 - ends) * values[1:] - values[:-1]
    advantages = torch.zeros(LENGTH + 1, GAMES)
    for t in reversed(range(LENGTH)):
        advantages[t] = surprise[t] + GAMMA * LAMBDA * (1 - overs[t]) * advantages[t + 1]
    return Batch(known[:-1], actions, logprobs, values[:-1], advantages[:-1], real)


def update(agent: Agent, optimizer: torch.optim.Optimizer, batch: Batch) -> None:
    """Improve the agent by the clipped objective (Schulman et al. 2017, https://arxiv.org/abs/1707.06347)."""
    known, actions, logprobs, values, advantages = (
        part[batch.real]
        for part in (batch.known, batch.actions, batch.logprobs, batch.values, batch.advantages)
    )
    returns = values + advantages
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(actions)).split(MINIBATCH):
            policy, value = agent(known[chosen])
            ratio = (policy.log_prob(actions[chosen]) - logprobs[chosen]).exp()
            gain = advantages[chosen]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            objective = torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            error = (value - returns[chosen]).square().mean()
            loss = -objective + VALUE * error - ENTROPY * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def main(steps: int = STEPS, seed: int = 0) -> Progress:
    """Learn; returns the rates of games won, measured greedily on both splits."""
    torch.set_num_threads(1)  # the networks are small: a second thread costs more than it brings
    torch.manual_seed(seed)
    agent, games = Agent(), Games(seed)
    optimizer = torch.optim.Adam(agent.parameters(), LEARNING_RATE, eps=1e-5)
    progress = Progress("cleanrl_ppo", seed)
    measure(progress, agent, 0)
    updates = max(1, steps // (LENGTH * GAMES))
    for number in range(1, updates + 1):
        with torch.no_grad():
            batch = collect(games, agent)
        update(agent, optimizer, batch)
        if number % MEASURED == 0 or number == updates:
            measure(progress, agent, number * LENGTH * GAMES)
    games.envs.close()
    return progress


@torch.no_grad()
def measure(progress: Progress, agent: Agent, steps: int) -> None:
    """Play every Task of both splits once."""

    def player(known: Any, mask: Any) -> Any:
        return np.where(mask, agent.actor(torch.as_tensor(known)).numpy(), -np.inf).argmax()

    with progress.aside():
        rates = small_wordle.rates(player)
    progress.add(steps, **rates)


if __name__ == "__main__":
    run(main, STEPS, small_wordle.rates)
