"""How fast parties are stepped through PettingZoo, beside PettingZoo's own classic games.

    python tests/performance/bench_party.py [--repeats 7] [--seconds 0.4]

Every repeat times all cases one after another in processor time: random legal moves in `agent_iter`,
observations and infos read, resets included. Ours run with argument validation, hidden State, views for both
seats and a Verifier that rewards. Printed are medians of turns a second. PettingZoo's games need pygame; they
are left out without it.
"""

import argparse
import importlib.util
import random
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import plural_gym

Case = tuple[Any, Callable[[Any, str, Any, dict[str, Any]], Any]]
"""An environment, and what picks the next action."""


def turns_a_second(case: Case, seconds: float) -> float:
    """Play random legal moves for so long."""
    env, pick = case
    began, turns = time.process_time(), 0
    env.reset(seed=1)
    while time.process_time() - began < seconds:
        for agent in env.agent_iter():
            observation, _, terminated, truncated, info = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            env.step(pick(env, agent, observation, info))
            turns += 1
        env.reset()
    return turns / (time.process_time() - began)


def cases() -> dict[str, Case]:
    """Every game by name."""
    draw = random.Random(0)

    def masked(mask: Any) -> int:
        return draw.choice([number for number, mark in enumerate(mask) if mark])

    def named(env: Any, agent: str, observation: Any, info: dict[str, Any]) -> Any:
        return env.game.codec.names[masked(info["action_mask"])]

    def numbered(env: Any, agent: str, observation: Any, info: dict[str, Any]) -> Any:
        return masked(observation["action_mask"])

    def free(env: Any, agent: str, observation: Any, info: dict[str, Any]) -> Any:
        return draw.randrange(3)

    kuhn = plural_gym.make_aec("plural/KuhnPoker-v0", task="match")
    found: dict[str, Case] = {
        "Kuhn poker, 100 hands": (kuhn, named),
        "Leduc poker, 100 hands": (plural_gym.make_aec("plural/LeducPoker-v0", task="match"), named),
        "Kuhn poker in numbers": (
            plural_gym.NumericParty(plural_gym.make_aec("plural/KuhnPoker-v0", task="match")),
            numbered,
        ),
    }
    if importlib.util.find_spec("pygame") is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pettingzoo.classic import rps_v2, tictactoe_v3

            found["PettingZoo tictactoe"] = tictactoe_v3.env(), numbered
            found["PettingZoo rps"] = rps_v2.env(), free
    return found


def main() -> None:
    """Time everything and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4)
    asked = parser.parse_args()
    games = cases()
    rates: dict[str, list[float]] = {name: [] for name in games}
    for _ in range(asked.repeats):
        for name, case in games.items():
            rates[name].append(turns_a_second(case, asked.seconds))
    for name, values in rates.items():
        print(f"{name:<26} {statistics.median(values):>9,.0f} turns/s")


if __name__ == "__main__":
    main()
