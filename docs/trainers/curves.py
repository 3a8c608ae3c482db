"""Draws the runs that the scripts saved: one picture a script, and a table of what was reached.

    python docs/trainers/curves.py docs/trainers/measured.jsonl docs/images

Bold lines are means over seeds, thin ones single runs; dotted is the player that takes any legal action.
"""

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

Run = dict[str, Any]
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 320, 56, 34, 96, 44
COLORS = {"train": "#1f6feb", "test": "#d1672b"}
NAMES = {"train": "training Tasks", "test": "held-out Tasks"}
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""The 97.5 % point of Student's t for so many runs."""


def read(file: Path) -> dict[str, list[Run]]:
    """The runs of a file by script, in the order of their seeds."""
    runs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    runs.sort(key=lambda run: (run["script"], run["seed"]))
    return {script: list(group) for script, group in groupby(runs, key=lambda run: run["script"])}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean over runs, and the ends of its 95 % interval by Student's t, kept within 0 to 1."""
    mean = statistics.fmean(values)
    if len(values) not in STUDENT:
        return mean, mean, mean
    half = STUDENT[len(values)] * statistics.stdev(values) / len(values) ** 0.5
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)


def table(scripts: dict[str, list[Run]]) -> str:
    """What every script reached at its end, in Markdown."""
    lines = [
        "| Script | Steps | CPU s | Training Tasks: mean, interval, each seed | Held-out | Random legal |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for script, runs in scripts.items():
        last = [run["points"][-1] for run in runs]
        cpu = statistics.fmean(point["cpu_s"] for point in last)
        told = [script, f"{last[0]['steps']:,}", f"{cpu:.0f}"]
        for split in ("train", "test"):
            values = [point[split] for point in last]
            mean, low, high = interval(values)
            each = ", ".join(f"{value:.1%}" for value in values)
            told.append(f"{mean:.1%} [{low:.1%}, {high:.1%}]: {each}")
        told.append(" / ".join(f"{rate:.1%}" for rate in runs[0]["baseline"].values()))
        lines.append(f"| {' | '.join(told)} |")
    return "\n".join(lines)


def picture(script: str, runs: list[Run]) -> str:
    """The curves of one script as SVG, rates over steps."""
    most = max(point["steps"] for run in runs for point in run["points"])
    seconds = statistics.fmean(run["points"][-1]["cpu_s"] for run in runs)
    parts = [*_axes(script, most, seconds, len(runs))]
    for split, color in COLORS.items():
        for run in runs:
            places = [(point["steps"], point[split]) for point in run["points"]]
            parts.append(_line(places, most, color, "1", "0.45"))
        means = [
            (points[0]["steps"], statistics.fmean(point[split] for point in points))
            for points in zip(*(run["points"] for run in runs), strict=True)
        ]
        parts.append(_line(means, most, color, "2.5", "1"))
        rate = runs[0]["baseline"].get(split)
        if rate is not None:
            parts.append(_line([(0, rate), (most, rate)], most, color, "1.5", "0.9", dashed=True))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12" fill="#555">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _x(steps: float, most: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * steps / most


def _y(rate: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - rate)


def _line(
    places: Iterable[tuple[float, float]],
    most: float,
    color: str,
    width: str,
    opacity: str,
    dashed: bool = False,
) -> str:
    points = " ".join(f"{_x(steps, most):.1f},{_y(rate):.1f}" for steps, rate in places)
    dash = ' stroke-dasharray="2 4"' if dashed else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}" '
        f'stroke-opacity="{opacity}"{dash}/>'
    )


def _axes(script: str, most: float, seconds: float, runs: int) -> Iterable[str]:
    """The title, a grid of five lines each way, and what the colours mean."""
    yield f'<text x="{LEFT}" y="20" font-size="14" fill="#222">{script}: Tasks solved, greedily</text>'
    for quarter in range(5):
        share = quarter / 4
        y, x = _y(share), _x(share * most, most)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - 26}" text-anchor="middle">{share * most / 1000:,.3g}k</text>'
    yield (
        f'<text x="{_x(most / 2, most):.1f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"steps; {seconds:.0f} CPU seconds in all; {runs} seeds</text>"
    )
    for place, (split, color) in enumerate(COLORS.items()):
        y = TOP + 14 + 34 * place
        first, second = NAMES[split].split(" ")
        yield f'<text x="{WIDTH - RIGHT + 10}" y="{y}" fill="{color}">{first}</text>'
        yield f'<text x="{WIDTH - RIGHT + 10}" y="{y + 14}" fill="{color}">{second}</text>'
    yield f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 88}">dotted:</text>'
    yield f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 102}">random legal</text>'


def main(file: Path, folder: Path) -> None:
    """Draw every script of a file into a folder, and print the table."""
    scripts = read(file)
    for script, runs in scripts.items():
        (folder / f"{script.replace('_', '-')}.svg").write_text(picture(script, runs), encoding="utf-8")
    print(table(scripts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
