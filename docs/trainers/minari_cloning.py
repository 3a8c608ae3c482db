"""Minari: games are recorded as text, read back, and a policy learns to play by imitating them.

`JsonAction` makes each action the text of a tool call, so that a data set holds what was read and written,
word for word. Here a script plays that guesses any word that fits all marks; a network learns its choices
from the data set alone, without another step in the world.

    python docs/trainers/minari_cloning.py --seed 1
"""

import json
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import minari
import numpy as np
import small_wordle
import torch
from progress import Progress, run
from word_logits import WordLogits

from plural_gym.rl.wrappers import JsonAction

STEPS = 6_000
"""Guesses that are recorded, at the least."""
DATA_SET = "plural/small-wordle-v0"
EPOCHS, MINIBATCH = 60, 256


def record(steps: int, seed: int) -> minari.MinariDataset:
    """Play training games until `steps` guesses are made, and write them as a data set."""
    env = minari.DataCollector(JsonAction(gym.make("plural_gym:plural/Wordle-v0")))
    games = [task.setup for task in small_wordle.tasks() if task.split == "train"]
    rng = np.random.default_rng(seed)
    made = 0
    while made < steps:
        env.reset(seed=seed + made, options={"setup": games[rng.integers(len(games))]})
        fitting, over = small_wordle.words(), False
        while not over:
            word = str(rng.choice(fitting))
            call = json.dumps({"action": "guess", "arguments": {"word": word}})
            observation, _, terminated, truncated, _ = env.step(call)
            fitting = [other for other in fitting if fits(other, observation["text"])]
            over, made = terminated or truncated, made + 1
    data = env.create_dataset(
        DATA_SET,
        author="plural_gym",
        algorithm_name="any word that fits",
        description="Games of Wordle with 200 words.",
    )
    env.close()
    return data


def fits(word: str, text: str) -> bool:
    """Whether a word, as the secret, could have given these marks; letters that repeat are not counted."""
    return all(
        (word[place] == letter) == (mark == "g") and (mark == "-" or letter in word)
        for place, (letter, mark) in enumerate(zip(text[::4], text[2::4], strict=True))
    )


def lessons(data: minari.MinariDataset) -> Iterator[tuple[Any, int]]:
    """Every guess of a data set: what was known before it, and the number of the word."""
    number = {word: index for index, word in enumerate(small_wordle.words())}
    for episode in data.iterate_episodes():
        known = np.zeros(small_wordle.FEATURES, np.float32)
        for text, call in zip(episode.observations["text"], episode.actions, strict=False):
            small_wordle.learn(known, text)
            yield known.copy(), number[json.loads(call)["arguments"]["word"]]


def main(steps: int = STEPS, seed: int = 0) -> Progress:
    """Record, read back and imitate; returns the rates of games won, measured greedily on both splits."""
    torch.set_num_threads(1)  # the network is small: a second thread costs more than it brings
    torch.manual_seed(seed)
    progress = Progress("minari_cloning", seed)
    policy = WordLogits(small_wordle.FEATURES)
    measure(progress, policy, 0)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MINARI_DATASETS_PATH"] = folder
        record(steps, seed)
        data = minari.load_dataset(DATA_SET)  # as anybody would who has only the files
        known, words = (np.array(part) for part in zip(*lessons(data), strict=True))
    seen, done = torch.as_tensor(known), torch.as_tensor(words)
    optimizer = torch.optim.Adam(policy.parameters(), 3e-3, weight_decay=1e-5)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(done)).split(MINIBATCH):
            loss = torch.nn.functional.cross_entropy(policy(seen[chosen]), done[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    measure(progress, policy, len(done))
    return progress


@torch.no_grad()
def measure(progress: Progress, policy: WordLogits, steps: int) -> None:
    """Play every Task of both splits once."""

    def player(known: Any, mask: Any) -> Any:
        return np.where(mask, policy(torch.as_tensor(known)).numpy(), -np.inf).argmax()

    with progress.aside():
        rates = small_wordle.rates(player)
    progress.add(steps, **rates)


if __name__ == "__main__":
    run(main, STEPS, small_wordle.rates)
