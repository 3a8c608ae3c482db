"""What the Agent did in a Trial, as a table: turn by turn, with what came back and what each Verifier gave.

`plural trial show` prints it. A line that is not a turn holds credit for a model call or the whole Trial.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from plural_gym.cli.records import number
from plural_gym.cli.terminal import print_table, stdout

if TYPE_CHECKING:
    from plural_gym.trial import Trial

Row = Mapping[str, Any]
_PIPED = 120
"""How wide a line is where there is no terminal; `--full` and `--json` leave nothing out."""
_NARROW = 16
"""What is left of an action or an observation however little room there is."""
_GAP = 2
"""Columns between two cells, as `print_table` sets them."""
_CUT = "…"


def show_steps(trial: "Trial", full: bool) -> None:
    """The table of a Trial's steps and rewards, and where the rewards come from an `apply` run.

    Args:
        full: nothing is shortened.
    """
    rewards = trial.rewards
    steps = trial.steps
    columns = list(dict.fromkeys(_column(row, rewards) for row in rewards))
    seats = any(step["seat"] is not None for step in (*steps, *rewards))
    lines = [*_opening(trial), *map(_Line, steps)]
    if lines and trial.result["failure"] == "environment":
        lines[-1].failed = True
    lines += _place(rewards, lines)
    if not lines:
        return
    table = [
        [line.turn, *([line.seat] if seats else []), line.action, line.observation]
        + [_given(line.rewards, rewards, column) for column in columns]
        for line in lines
    ]
    if columns:
        sums = [number(_total([row for row in rewards if _column(row, rewards) == one])) for one in columns]
        table.append(["", *([""] if seats else []), "sum", "", *sums])
    headings = ["turn", *(["seat"] if seats else []), "action", "observation", *columns]
    first = 2 if seats else 1
    typer.echo()
    print_table(headings, table if full else _fitted(headings, table, first))
    for column, runs in _runs(rewards).items():
        typer.echo(f"{column}: given by plural verifier apply, {', '.join(runs)}")


class _Line:
    """One line of the table, as text but for its rewards."""

    def __init__(self, step: Row) -> None:
        self.event_id: str | None = step.get("event_id")
        self.turn = str(step["turn"])
        self.seat: str = step["seat"] or ""
        self.action = _call(step)
        self.error: str | None = step["error"]
        self.failed = False
        """Whether the App failed, rather than reject the input."""
        self.seen = step["observation"]
        self.rewards: list[Row] = []

    @property
    def observation(self) -> str:
        """What the Agent saw, or why it saw nothing."""
        if self.error is not None:
            return f"{'fault' if self.failed else 'rejected'}: {self.error}"
        return "" if self.seen is None else _text(self.seen)


def _opening(trial: "Trial") -> Iterator[_Line]:
    """The line of what the Agent saw before its first action, where it saw something."""
    opening = trial.folder.opening()
    if opening is not None and opening["observation"] is not None:
        yield _Line({**opening, "action": None})


def _call(step: Row) -> str:
    """`guess(number=50)`; of a reset nothing."""
    if step["action"] is None:
        return ""
    arguments = step["arguments"] or {}
    return f"{step['action']}({', '.join(f'{key}={_json(value)}' for key, value in arguments.items())})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


# --- rewards ---


def _place(rewards: Sequence[Row], lines: Sequence[_Line]) -> list[_Line]:
    """Give every reward to the line of its step; returns lines for those that belong to none."""
    steps = {line.event_id: line for line in lines if line.event_id is not None}
    further: dict[str, _Line] = {}
    for row in rewards:
        line = steps.get(row["event_id"])
        if line is None:
            what = f"call {row['event_id']}" if row["target"] == "model_call" else "whole Trial"
            empty = {"turn": "", "seat": row["seat"], "action": None, "error": None, "observation": None}
            line = further.setdefault(what, _Line(empty))
            line.action = what
        line.rewards.append(row)
    return list(further.values())


def _column(row: Row, rows: Sequence[Row]) -> str:
    """`progress`, `solved (hindsight)`; with the version where several stand in the ledger."""
    versions = {one["verifier_version"] for one in rows if one["verifier"] == row["verifier"]}
    name = row["verifier"] + (f"@{row['verifier_version']}" if len(versions) > 1 else "")
    return name if row["kind"] == "step" else f"{name} ({row['kind']})"


def _given(rows: Sequence[Row], all_rows: Sequence[Row], column: str) -> str:
    """One cell: a sum, `-` for no signal, `fault`, or nothing where the Verifier was not asked."""
    own = [row for row in rows if _column(row, all_rows) == column]
    if any(row["status"] == "error" for row in own):
        return "fault"
    return number(_total(own)) if own else ""


def _total(rows: Sequence[Row]) -> float | None:
    values = [row["value"] for row in rows if row["value"] is not None]
    return sum(values) if values else None


def _runs(rewards: Sequence[Row]) -> dict[str, list[str]]:
    """Column -> the `apply` runs that its rewards come from; only columns that have one."""
    found: dict[str, dict[str, None]] = {}
    for row in rewards:
        if row["source"] == "apply":
            found.setdefault(_column(row, rewards), {})[f"run {row['run_id']}"] = None
    return {column: list(runs) for column, runs in found.items()}


# --- room ---


def _fitted(headings: Sequence[str], table: Sequence[Sequence[str]], first: int) -> list[list[str]]:
    """The table with action and observation shortened, so that a line has room in the terminal.

    Args:
        first: index of the column `action`; `observation` follows it.
    """
    rows = [[_one_line(cell) for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    others = sum(width for index, width in enumerate(widths) if index not in (first, first + 1))
    room = min(stdout().width, _PIPED) - others - _GAP * (len(widths) - 1)
    action = min(widths[first], max(room // 2, room - widths[first + 1], _NARROW))
    observation = max(room - action, _NARROW)
    for row in rows:
        row[first], row[first + 1] = _cut(row[first], action), _cut(row[first + 1], observation)
    return rows


def _one_line(text: str) -> str:
    return " ".join(text.split()) if "\n" in text else text


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - len(_CUT)].rstrip() + _CUT
