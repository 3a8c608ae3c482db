"""How fast Wordle is stepped, beside a hand-written environment of the same game.

    python tests/performance/bench_step.py [--repeats 15] [--steps 6000] [--folder DIR] [--json]

Every repeat times all cases one after another, each on the same guesses, resets included, so that what else
the machine does hits all of them. Printed are medians, and the median of each repeat's ratio to `bare`.
`recorded` writes every step and its reward into the two journals of a Trial, in a temporary folder under DIR;
each line is a write of its own, and the disk is waited for (fdatasync) once in 256 lines or a second.
Before anything is timed, rewards, texts, turns and ends of both are held against each other, game by game.

Where the time goes: `python -m cProfile -s tottime tests/performance/bench_step.py --only "one Verifier"`
counts calls rightly but blows up small functions; `perf record` or `py-spy record --native` show true shares.
"""

import argparse
import gc
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from bare_wordle import INSTRUCTIONS, SECRETS, WORDS, BareWordle

from plural_gym import DeterministicVerifier, Environment, Limits, Task, refs, total_reward
from plural_gym.host.direct import DirectSession
from plural_gym.host.hooks import LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.recorder import TrialRecorder
from plural_gym.rl.env import GymEnv
from plural_gym.task import TaskSet

ROOT = Path(__file__).parents[2]
TASKS = 500
MADE = "plural_gym:plural/Wordle-v0"
"""The shipped world's id; its case is left out where it is not registered."""


def task_set(size: int = TASKS, instructions: str = INSTRUCTIONS) -> TaskSet:
    """Tasks with a secret each, graded by `progress` alone."""
    environment = Environment(
        name="wordle",
        apps={"game": refs.load("app.py:Wordle", ROOT / "envs/wordle")},
        limits=Limits(turns=12),
    )
    verifier = DeterministicVerifier(
        name="progress",
        check=total_reward,
        reward=refs.load("verify.py:progress", ROOT / "verifiers/progress"),
    )
    return TaskSet.of(
        [
            Task(
                name=secret,
                instructions=instructions,
                environment=environment,
                setup={"game": {"secret": secret}},
                expected=secret,
                verifiers=(verifier,),
            )
            for secret in random.Random(0).sample(SECRETS, size)
        ]
    )


class Recorded(GymEnv):
    """Records all its episodes, one after another, as one Trial."""

    folder: Path

    def _new_session(self, host: AppHost, hooks: LocalHooks, limits: Limits) -> DirectSession:
        versions = {one.name: one.version for one in hooks.sets}
        code = dict.fromkeys(versions, "sha256:" + "0" * 64)
        steps, rewards = self.folder / "steps.jsonl", self.folder / "rewards.jsonl"
        self.recorder = TrialRecorder(steps, rewards, "trl_0123456789abcdef", versions, code)
        return DirectSession(host, hooks, limits, self.recorder)

    def close(self) -> None:
        super().close()
        self.recorder.close()


def recorded(tasks: TaskSet, folder: Path) -> Recorded:
    """An environment with one Verifier that records into `folder`."""
    env = Recorded(tasks[0].environment, tasks=tasks)
    env.folder = folder
    return env


def call(word: str) -> dict[str, Any]:
    """A guess as an Agent sends it."""
    return {"action": "guess", "arguments": {"word": word}}


Case = tuple[str, Callable[[], Any], Callable[[str], Any]]
"""Name; makes the environment; makes an action of a word."""


def cases(tasks: TaskSet, folder: Path) -> list[Case]:
    """What is timed. The first is what the others are measured by; `recorded` writes into `folder`."""
    environment = tasks[0].environment
    found: list[Case] = [
        ("bare", lambda: BareWordle(tasks.names), str),
        ("one Verifier", lambda: environment.gym(tasks=tasks), call),
        ("no Verifier", lambda: environment.gym(tasks=tasks, verifiers=[]), call),
        ("recorded", lambda: recorded(tasks, folder), call),
    ]
    try:
        gym.make(MADE).close()
    except (gym.error.Error, ImportError):
        return found
    return [*found, ("gymnasium.make", lambda: gym.make(MADE), call)]


def check_equal(tasks: TaskSet, games: int = 400) -> None:
    """Hold every reward, text, turn and end of the one against the other's, rejected words included.

    Raises:
        AssertionError: they differ; says in which game and at which guess.
    """
    rnd = random.Random(1)
    ours, bare = tasks[0].environment.gym(tasks=tasks), BareWordle(tasks.names)
    for _ in range(games):
        secret = rnd.choice(tasks.names)
        first, _ = ours.reset(options={"task": secret})
        assert first == bare.reset(options={"secret": secret})[0], secret
        ended = False
        while not ended:
            word = rnd.choice([*rnd.sample(WORDS, 12), secret, secret.upper(), "zzzzz", " cran ", "Čšžéñ"])
            seen, reward, terminated, truncated, _ = ours.step(call(word))
            also, *rest, _ = bare.step(word)
            assert [reward, terminated, truncated] == rest, (secret, word, reward, rest)
            assert seen == also, (secret, word, seen, also)
            ended = terminated or truncated


def steps_per_second(env: Any, actions: Sequence[Any]) -> float:
    """One run over all the actions, a reset at every end included."""
    env.reset(seed=1)
    step, reset = env.step, env.reset
    gc.collect()
    started = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = step(action)
        if terminated or truncated:
            reset()
    return len(actions) / (time.perf_counter() - started)


def measure(chosen: Sequence[Case], repeats: int, steps: int) -> dict[str, list[float]]:
    """Steps per second of every case in every repeat."""
    rnd = random.Random(2)
    words = [rnd.choice(WORDS) for _ in range(steps)]
    ready = [(name, make(), [action(word) for word in words]) for name, make, action in chosen]
    for _, env, actions in ready:
        steps_per_second(env, actions)  # warm: code is specialised, Tasks and their States are read
    rates: dict[str, list[float]] = {name: [] for name, _, _ in ready}
    for repeat in range(repeats):
        for name, env, actions in ready if repeat % 2 == 0 else reversed(ready):
            rates[name].append(steps_per_second(env, actions))
    for _, env, _ in ready:
        env.close()
    return rates


def main() -> None:
    """Measure and print."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--steps", type=int, default=6000, help="in each repeat of each case")
    parser.add_argument("--only", help="the one case to run, for a profile")
    parser.add_argument("--folder", help="where `recorded` writes; default: the system's temporary folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    tasks = task_set()
    check_equal(tasks)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        chosen = [case for case in cases(tasks, Path(folder)) if options.only in (None, case[0])]
        rates = measure(chosen, options.repeats, options.steps)
    yardstick = rates[chosen[0][0]]
    rows = [
        {
            "case": name,
            "steps_per_s": round(statistics.median(found)),
            "us_per_step": round(1e6 / statistics.median(found), 2),
            "ratio": round(
                statistics.median(one / limit for one, limit in zip(found, yardstick, strict=True)), 3
            ),
        }
        for name, found in rates.items()
    ]
    if options.json:
        print(json.dumps({"repeats": options.repeats, "steps": options.steps, "cases": rows}))
        return
    print(f"{'case':20}{'steps/s':>10}{'us/step':>10}{'of ' + chosen[0][0]:>10}")
    for row in rows:
        print(f"{row['case']:20}{row['steps_per_s']:>10,}{row['us_per_step']:>10.2f}{row['ratio']:>10.3f}")


if __name__ == "__main__":
    main()
