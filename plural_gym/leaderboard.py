"""Leaderboard and Comparison: what finished Trials say about Agents, as values, text, HTML and JSON.

`ranking.py` fills them. Where the numbers cannot give a quantity it is None, never 0.
"""

from dataclasses import asdict, dataclass
from typing import Any

from plural_gym import notebook
from plural_gym.statistics import Interval

_DIGITS = 12
"""Decimals of a spread in JSON: what lies behind them is the noise of a square root."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One Agent's line of a leaderboard."""

    rank: int | None
    """From 1, equal scores sharing a rank. None: some Task has no score, so the place is unknown."""
    agent: str
    score: float | None
    """Weighted mean over the Tasks that have a score. None: none has."""
    interval: Interval | None
    """95 % bootstrap over Tasks; None below five scored Tasks."""
    spread: float | None
    """Pooled standard deviation of attempts within a Task; None where no Task was attempted twice."""
    success_rate: float | None
    coverage: float
    """Share of the Tasks that have a score."""
    trials: int
    waiting: int
    """Trials without a score and without a failure: not finished, cancelled, or awaiting a review."""
    failures: dict[str, int]
    """Failed Trials by whose failure it was. Only the Agent's own count in the score."""
    cost_usd: float | None
    """Mean over the Trials that reported one; None: none did."""
    cost_count: int
    seconds: float | None
    """Median (p50) over the Trials that reported it."""
    tied_with_first: bool | None
    """Whether the Tasks both have a score for cannot tell it from the first. None: nothing to compare."""
    p_value: float | None
    """Of "it is the same as the first": paired sign-flip permutation, Holm-adjusted over the lines."""

    @property
    def complete(self) -> bool:
        """Whether every Task has a score."""
        return self.coverage == 1.0


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Agents by score; those whose score is incomplete stand below all complete ones, without a rank."""

    benchmark: str
    """The Benchmark's name and version."""
    rows: tuple[Standing, ...]
    tasks: int

    def to_json(self) -> dict[str, Any]:
        """The leaderboard as JSON values."""
        rows = [
            {
                **asdict(row),
                "interval": row.interval and list(row.interval),
                "spread": None if row.spread is None else round(row.spread, _DIGITS),
            }
            for row in self.rows
        ]
        return {"benchmark": self.benchmark, "tasks": self.tasks, "rows": rows}

    def __str__(self) -> str:
        lines = [_HEADER, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(map(_aligned, line, widths, range(len(line)))).rstrip() for line in lines]
        return "\n".join([f"{self.benchmark} ({_counted(self.tasks)})", *table, *self._notes()])

    def _repr_html_(self) -> str:
        caption = f"{self.benchmark} ({_counted(self.tasks)})"
        return notebook.table(_HEADER, map(_cells, self.rows), caption, self._notes())

    def _notes(self) -> list[str]:
        notes = []
        if any(row.tied_with_first and row.rank != 1 for row in self.rows):
            notes.append("≈ cannot be told from the first on these Tasks (p >= 0.05).")
        if not all(row.complete for row in self.rows):
            notes.append("? some Tasks have no score; the place is unknown.")
        return notes


@dataclass(frozen=True, slots=True)
class TaskDifference:
    """Two Agents on one Task: means over counted attempts."""

    task: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        """Positive: A is better."""
        return self.a - self.b


@dataclass(frozen=True, slots=True)
class Comparison:
    """A against B, paired by Task, over the Tasks for which both have a score."""

    a: str
    b: str
    tasks: tuple[TaskDifference, ...]
    difference: float | None
    """Weighted mean over `tasks`; positive: A is better. None: no Task in common."""
    interval: Interval | None
    """95 % bootstrap over Tasks; None below five."""
    p_value: float | None
    """Two-sided sign-flip permutation test; None: no Task in common."""
    wins: int
    ties: int
    losses: int
    only_in_a: tuple[str, ...]
    """Tasks for which B has no score."""
    only_in_b: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        values = asdict(self)
        values["tasks"] = [{**asdict(task), "difference": task.difference} for task in self.tasks]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    def __str__(self) -> str:
        return "\n".join([self._title(), *self._notes()])

    def _repr_html_(self) -> str:
        rows = [[one.task, _number(one.a), _number(one.b), f"{one.difference:+.3f}"] for one in self.tasks]
        header = ["task", self.a, self.b, "difference"]
        return notebook.table(header, rows, self._title(), self._notes())

    def _title(self) -> str:
        return f"{self.a} against {self.b}, {_counted(len(self.tasks))} in common"

    def _notes(self) -> list[str]:
        lines = []
        if self.difference is not None:
            within = "" if self.interval is None else " [{:+.3f}, {:+.3f}]".format(*self.interval)
            lines.append(f"difference {self.difference:+.3f}{within}, p = {self.p_value:.3g}")
            lines.append(f"wins {self.wins}, ties {self.ties}, losses {self.losses}")
        for who, names in ((self.a, self.only_in_a), (self.b, self.only_in_b)):
            if names:
                lines.append(f"only {who} has a score for: {', '.join(names)}")
        return lines


# --- as text ---

_HEADER = ["", "agent", "score", "95 %", "spread", "success", "coverage", "trials", "failed", "cost", "p50"]


def _counted(tasks: int) -> str:
    return f"{tasks:,} Task" + "s" * (tasks != 1)


def _cells(row: Standing) -> list[str]:
    tie = "≈" if row.tied_with_first and row.rank not in (1, None) else ""
    failed = ", ".join(f"{count} {kind}" for kind, count in row.failures.items())
    cost = "" if row.cost_usd is None else f"${row.cost_usd:.4f}"
    if row.cost_usd is not None and row.cost_count < row.trials:
        cost += f" ({row.cost_count} of {row.trials})"
    return [
        "?" if row.rank is None else f"{row.rank}{tie}",
        row.agent,
        _number(row.score),
        "" if row.interval is None else f"{row.interval[0]:.3f}..{row.interval[1]:.3f}",
        _number(row.spread),
        "" if row.success_rate is None else f"{row.success_rate:.0%}",
        f"{row.coverage:.0%}",
        str(row.trials) + (f" ({row.waiting} waiting)" if row.waiting else ""),
        failed,
        cost,
        "" if row.seconds is None else f"{row.seconds:.1f} s",
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column in (0, 1, 8) else cell.rjust(width)
