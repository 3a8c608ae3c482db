"""How fast Wordle is stepped alone and in batches, beside a bare environment and other packages' Wordle.

    python tests/performance/bench_vector.py [--repeats 9] [--steps 6400] [--sizes 1 16 64 256] [--json]

All cases play the same guesses, resets included, one case after another in each repeat; printed are medians
of processor time, and the medians of each repeat's ratios. A step is one action of one member. By Gymnasium's
default a member's reset takes a step of its own (NextStep); GEM resets within a step, and so does the case
`native, SameStep`. Peers are left out where they are not installed (`pip install textarena gem-llm`); see
`peers.py` for how they play the same game offline. TextArena becomes slower with every episode of an object,
so each repeat gives it a new one, and a hundredth of the steps.

Then: whether the episodes of one object become slower, what recording a reward ledger costs, and how much
memory one member takes.
"""

import argparse
import gc
import json
import random
import resource
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import peers
from bare_wordle import WORDS, BareWordle
from bench_step import MADE, call, check_equal, task_set
from gymnasium.vector import SyncVectorEnv

from plural_gym.rl.vector import VectorGymEnv
from plural_gym.rl.wrappers import RecordLedger
from plural_gym.task import TaskSet

Runner = Callable[[Any, Sequence[Any]], float]
"""Steps an environment through all the actions; returns seconds of processor time."""


class Case(NamedTuple):
    """One thing that is timed."""

    name: str
    make: Callable[[], Any]
    action: Callable[[str], Any]
    """Makes an action of a word."""
    run: Runner


def run_alone(env: Any, actions: Sequence[Any]) -> float:
    """A loop over one environment, with a reset at every end."""
    env.reset(seed=1)
    step, reset = env.step, env.reset
    started = time.process_time()
    for action in actions:
        _, _, terminated, truncated, _ = step(action)
        if terminated or truncated:
            reset()
    return time.process_time() - started


def run_batches(envs: Any, batches: Sequence[Any]) -> float:
    """A loop over a vector environment, which resets its members itself."""
    envs.reset(seed=1)
    step = envs.step
    started = time.process_time()
    for batch in batches:
        step(batch)
    return time.process_time() - started


def single_cases(tasks: TaskSet, ledgers: Path) -> list[Case]:
    """One environment at a time. The first is what the others are measured by."""
    environment = tasks[0].environment
    cases = [
        Case("bare", lambda: BareWordle(tasks.names), str, run_alone),
        Case("GymEnv", lambda: environment.gym(tasks=tasks), call, run_alone),
        Case("gymnasium.make", lambda: gym.make(MADE), call, run_alone),
        Case(
            "GymEnv, RecordLedger",
            lambda: RecordLedger(environment.gym(tasks=tasks), ledgers),
            call,
            run_alone,
        ),
    ]
    if peers.is_installed(peers.TEXTARENA):
        case = Case("TextArena", peers.make_textarena, peers.textarena_action, peers.run_textarena)
        cases.append(case)
    if peers.is_installed(peers.GEM):
        cases.append(Case("GEM", peers.make_gem, peers.gem_action, run_alone))
    return cases


def vector_cases(tasks: TaskSet, number: int) -> list[Case]:
    """So many members. The first is what the others are measured by."""
    environment = tasks[0].environment

    def native(**options: Any) -> Callable[[], Any]:
        return lambda: VectorGymEnv(environment, number, tasks=tasks, **options)

    def sync(make: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: SyncVectorEnv([make] * number)

    cases = [
        Case("bare, Sync", sync(lambda: BareWordle(tasks.names)), str, run_batches),
        Case("GymEnv, Sync", sync(lambda: environment.gym(tasks=tasks)), call, run_batches),
        Case("native", native(), call, run_batches),
        Case("native, rewards", native(infos="rewards"), call, run_batches),
        Case("native, no infos", native(infos="none"), call, run_batches),
        Case("native, SameStep", native(autoreset_mode="SameStep"), call, run_batches),
        Case("gymnasium.make_vec", lambda: gym.make_vec(MADE, num_envs=number), call, run_batches),
    ]
    if peers.is_installed(peers.GEM):
        make = lambda: peers.make_gem_vector(number)  # noqa: E731
        cases.append(Case("GEM make_vec", make, peers.gem_action, run_batches))
    return cases


def measure(cases: Sequence[Case], repeats: int, steps: int, number: int | None) -> dict[str, list[float]]:
    """Seconds a step of every case in every repeat. `number`: of actions in a batch; None: one by one."""
    rnd = random.Random(2)
    size = number or 1
    count = max(steps // size, 1)
    batches = [[rnd.choice(WORDS) for _ in range(size)] for _ in range(count)]
    ready = []
    for case in cases:
        actions: list[Any] = [[case.action(word) for word in batch] for batch in batches]
        if number is None:
            actions = [action for (action,) in actions]
        ready.append((case, case.make(), actions))
    found: dict[str, list[float]] = {case.name: [] for case in cases}
    for case, env, actions in ready:
        if case.run is not peers.run_textarena:
            case.run(env, actions)  # warm: code is specialised, Tasks are read
    gc.collect()
    gc.freeze()  # no case pays for looking at what another holds
    for repeat in range(repeats):
        for case, env, actions in ready if repeat % 2 == 0 else reversed(ready):
            if case.run is peers.run_textarena:
                env, actions = case.make(), actions[: max(count // 100, 60)]
            gc.collect()
            found[case.name].append(case.run(env, actions) / (len(actions) * size))
    for case, env, _ in ready:
        if case.run is not peers.run_textarena and "GEM" not in case.name:  # theirs need no closing
            env.close()
    gc.unfreeze()
    return found


def rows_of(found: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Medians, and the median of each repeat's speed beside the first case and beside the peers."""
    yardstick = next(iter(found.values()))
    rows = []
    for name, seconds in found.items():
        row = {
            "case": name,
            "steps_per_s": round(1 / statistics.median(seconds)),
            "us_per_step": round(1e6 * statistics.median(seconds), 2),
            "of_bare": round(ratio(yardstick, seconds), 3),
        }
        for peer in ("TextArena", "GEM", "GEM make_vec"):
            if peer in found and peer != name:
                row[f"of_{peer}"] = round(ratio(found[peer], seconds), 2)
        rows.append(row)
    return rows


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """How many times as fast."""
    return statistics.median(one / other for one, other in zip(theirs, ours, strict=True))


def slowing(case: Case, episodes: int) -> list[tuple[int, float]]:
    """Microseconds an episode of one object takes, by its number: (the last, the median), in ten parts."""
    rnd = random.Random(3)
    env = case.make()
    actions = [case.action(rnd.choice(WORDS)) for _ in range(6000)]
    part = episodes // 10
    found = []
    for index in range(10):
        times = []
        for _ in range(part // 100):
            played, place, started = 0, 0, time.process_time()
            while played < 100:
                played += episode(case, env, actions, place)
                place += 6
            times.append((time.process_time() - started) / 100)
        found.append(((index + 1) * part, round(1e6 * statistics.median(times), 1)))
    return found


def episode(case: Case, env: Any, actions: Sequence[Any], place: int) -> int:
    """Play one episode to its end."""
    if case.run is peers.run_textarena:
        env.reset(num_players=1)
        done = False
        while not done:
            env.get_observation()
            done, _ = env.step(actions[place % len(actions)])
            place += 1
        env.close()
        return 1
    env.reset()
    ended = False
    while not ended:
        _, _, terminated, truncated, _ = env.step(actions[place % len(actions)])
        ended = terminated or truncated
        place += 1
    return 1


def memory(number: int) -> dict[str, float]:
    """Kilobytes a member of a vector environment holds in the midst of an episode."""

    def made() -> Any:
        envs = gym.make_vec(MADE, num_envs=number)
        envs.reset(seed=0)
        for _ in range(10):
            envs.step([call("fuzzy")] * number)
        gc.collect()
        return envs

    kept = [made()]  # what all share is there already
    before = resident()
    kept.append(made())
    grown = resident() - before
    tracemalloc.start()
    kept.append(made())
    traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"resident_kb": round(grown / number / 1000, 1), "traced_kb": round(traced / number / 1000, 1)}


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def table(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print rows under their keys."""
    print(f"\n{title}")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    widths = {key: 22 if key == "case" else max(len(key), 9) + 2 for key in keys}
    print("".join(f"{key:>{width}}" for key, width in widths.items()))
    for row in rows:
        print("".join(f"{row.get(key, ''):>{width}}" for key, width in widths.items()))


def main() -> None:
    """Measure and print."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, default=6400, help="in each repeat of each case")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 16, 64, 256], help="members; none: skip")
    parser.add_argument("--episodes", type=int, default=10_000, help="of one object; 0: skip")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    tasks = task_set()
    check_equal(tasks)
    report: dict[str, Any] = {"a member's memory": [{"case": "256 members"} | memory(256)]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        missing = [peer for peer in (peers.TEXTARENA, peers.GEM) if not peers.is_installed(peer)]
        report["not installed"] = missing
        if len(missing) < 2:
            peers.write_corpora(folder / "nltk")
        alone = single_cases(tasks, folder / "ledgers")
        report["alone"] = rows_of(measure(alone, options.repeats, options.steps, None))
        for number in options.sizes:
            found = measure(vector_cases(tasks, number), options.repeats, options.steps, number)
            report[f"{number} members"] = rows_of(found)
        if options.episodes >= 1000:
            for case in alone:
                if case.name in ("bare", "GymEnv", "GEM", "TextArena"):
                    number = 1000 if case.name == "TextArena" else options.episodes
                    title = f"microseconds an episode, {case.name}"
                    report[title] = [{f"to {last:,}": took for last, took in slowing(case, number)}]
    if options.json:
        print(json.dumps(report))
        return
    for title, content in report.items():
        if title == "not installed":
            print(f"not installed: {', '.join(content) or 'none'}")
        else:
            table(title, content)


if __name__ == "__main__":
    main()
