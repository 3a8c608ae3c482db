"""What a training run reached: its points, printed as it goes, and curves of several runs as a picture.

Every script beside this file keeps one `Progress`. `python curves.py` draws them.
"""

import argparse
import inspect
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from players import random_legal


@dataclass
class Progress:
    """The points of one run: steps taken, processor seconds spent on learning, and rates of success."""

    script: str
    seed: int
    points: list[dict[str, float]] = field(default_factory=list)
    baseline: dict[str, float] = field(default_factory=dict)
    """The rates of a player that takes any legal action, where they were measured."""
    _started: float = field(default_factory=time.process_time, repr=False)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Measure something on the way: its time does not count as learning."""
        before = time.process_time()
        yield
        self._started += time.process_time() - before

    def add(self, steps: int, **rates: float) -> None:
        """Note and print where the run stands after `steps` steps of the environment."""
        spent = time.process_time() - self._started
        self.points.append({"steps": steps, "cpu_s": round(spent, 1), **rates})
        told = "  ".join(f"{name} {rate:6.1%}" for name, rate in rates.items())
        print(f"{self.script}  seed {self.seed}  {steps:>9,} steps  {spent:6.1f} CPU s  {told}", flush=True)

    @property
    def first(self) -> dict[str, float]:
        """The point before any learning."""
        return self.points[0]

    @property
    def last(self) -> dict[str, float]:
        """The point at the end."""
        return self.points[-1]

    def save(self, file: Path) -> None:
        """Add the run to a file as one line of JSON."""
        run = {name: getattr(self, name) for name in ("script", "seed", "baseline", "points")}
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(run) + "\n")


def run(main: Callable[[int, int], Progress], steps: int, rates: Callable[..., dict[str, float]]) -> None:
    """Run a script by its command line, after the random legal player that it has to beat."""
    description = (inspect.getdoc(inspect.getmodule(main)) or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps, help=f"steps to learn from; {steps:,} by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="a JSONL file that the run is added to, for curves.py")
    given = parser.parse_args()
    baseline = rates(random_legal(), games=20)
    print("random legal player  " + "  ".join(f"{name} {rate:.1%}" for name, rate in baseline.items()))
    progress = main(given.steps, given.seed)
    progress.baseline = baseline
    if given.save:
        progress.save(given.save)
