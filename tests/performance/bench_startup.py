"""How long imports and the command line take to start, each in fresh interpreters.

    python tests/performance/bench_startup.py [--repeats 11] [--json]

Every repeat starts all of them in turn; printed are medians of wall time in milliseconds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

CASES = {
    "python": ["-c", "pass"],
    "import gymnasium": ["-c", "import gymnasium"],
    "import gymnasium, plural_gym": ["-c", "import gymnasium, plural_gym"],
    "import plural_gym": ["-c", "import plural_gym"],
    "plural --help": ["-m", "plural_gym", "--help"],
    "gymnasium.make and first reset": [
        "-c",
        "import gymnasium as gym; gym.make('plural_gym:plural/Wordle-v0').reset(seed=0)",
    ],
}


def wall_ms(arguments: list[str]) -> float:
    """One fresh interpreter from start to end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(options.repeats):
        for name, arguments in CASES.items():
            times[name].append(wall_ms(arguments))
    medians = {name: round(statistics.median(found), 1) for name, found in times.items()}
    added = [
        ours - theirs
        for ours, theirs in zip(times["import gymnasium, plural_gym"], times["import gymnasium"], strict=True)
    ]
    medians["plural_gym on top of gymnasium"] = round(statistics.median(added), 1)
    if options.json:
        print(json.dumps(medians))
        return
    for name, median in medians.items():
        print(f"{name:32} {median:8.1f} ms")


if __name__ == "__main__":
    main()
