"""The rows of a Task's data file: JSONL, CSV or Parquet, as plain mappings.

`project.py` reads `rows: words.jsonl` of a `task.yaml` through here; what may stand in a row says `TaskRow`.
JSONL is taken as it is. CSV and Parquet are tables: a dotted column (`setup.game.secret`) builds nested
values, and an empty cell leaves its key out. A CSV cell of `setup`, `info` or `expected` is JSON where it
parses as such, else text; in Parquet, whose cells have types, only a `setup` that is text is JSON.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from plural_gym.errors import Problem, ProjectError

MAX_SHOWN = 50
"""Problems of one file that are told one by one."""
MAX_DEPTH = 64

_JSON_COLUMNS = frozenset({"setup", "info", "expected"})

Row = tuple[int, dict[str, Any]]


def read_rows(path: Path | str, *, root: Path | str | None = None) -> Iterator[Row]:
    """The rows of the file at `path`, each with its line (JSONL, CSV) or its number from 1 (Parquet).

    The whole file is read before the first row is handed out. `root`: problems show the path from there.

    Raises:
        ProjectError: with every problem: unknown suffix, unreadable or empty file, a row that is not JSON or
            not a mapping, a key or name that stands twice, cells that do not fit the header.
    """
    rows, problems = scan_rows(path, root=root)
    if problems:
        raise ProjectError(shortened(problems))
    return iter(rows)


def scan_rows(path: Path | str, *, root: Path | str | None = None) -> tuple[list[Row], list[Problem]]:
    """The rows that can be read, and every problem of the file, as `read_rows` would raise it."""
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    faults = _Faults(_shown_path(path, root))
    rows: list[Row] = []
    if reader is None:
        near = ", ".join(_READERS)
        faults.add(None, f"suffix {path.suffix!r} is not one that rows can have; use one of {near}.")
        return rows, faults.problems
    try:
        rows = list(reader(path, faults))
    except OSError as error:
        faults.add(None, f"cannot be read: {error.strerror or error}.")
        return rows, faults.problems
    if not rows and not faults.count:
        faults.add(None, "is empty; write at least one row with a 'name'.")
    _check_names(rows, faults)
    return rows, faults.problems


def shortened(problems: Iterable[Problem]) -> list[Problem]:
    """Problems of one file in the order of lines; of many, the first ones and how many more."""
    ordered = sorted(problems, key=lambda problem: problem.line or 0)
    if len(ordered) > MAX_SHOWN:
        left = f"has {len(ordered) - MAX_SHOWN} more problems."
        return [*ordered[:MAX_SHOWN], Problem(ordered[0].file, None, left)]
    return ordered


class _Faults:
    """Problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    @property
    def count(self) -> int:
        return len(self.problems)

    def add(self, line: int | None, message: str) -> None:
        self.problems.append(Problem(self.file, line, message))


def _shown_path(path: Path, root: Path | str | None) -> str:
    if root is None:
        return path.name
    try:
        return path.absolute().relative_to(Path(root).absolute()).as_posix()
    except ValueError:
        return str(path)


def _check_names(rows: Iterable[Row], faults: _Faults) -> None:
    first: dict[str, int] = {}
    for line, row in rows:
        name = row.get("name")
        if isinstance(name, str) and first.setdefault(name, line) != line:
            faults.add(line, f"name {_short(name)} stands twice, first on line {first[name]}; rename one.")


# --- JSON ---


class _Refused(ValueError):
    """A value that a row cannot hold; the message is a clause without a full stop."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise _Refused(f"key {_short(repeated)} stands twice; keep one")
    return row


def _no_constant(word: str) -> Any:
    raise _Refused(f"{word} is a number that JSON cannot hold; use null")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Refused(f"number {_short(text)} is too large; put it in quotes to mean text")
    return number


_decode = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite).decode


def _json(text: str) -> Any:
    """`text` as JSON. Raises ValueError where it is not, _Refused where it holds what a row cannot."""
    nested = text.count("{") + text.count("[") > MAX_DEPTH
    try:
        value = _decode(text)
    except RecursionError:
        raise _Refused(f"is nested more than {MAX_DEPTH} levels deep; flatten it") from None
    if nested and not _depth_fits(value, MAX_DEPTH):
        raise _Refused(f"is nested more than {MAX_DEPTH} levels deep; flatten it")
    if "\\u" in text and not _encodable(json.dumps(value, ensure_ascii=False)):
        raise _Refused("holds half of a surrogate pair, which no file can; write the whole character")
    return value


def _depth_fits(value: Any, levels: int) -> bool:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return below is None or (levels > 0 and all(_depth_fits(entry, levels - 1) for entry in below))


def _encodable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _read_jsonl(path: Path, faults: _Faults) -> Iterator[Row]:
    for line, raw in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8").strip()
            if not text:
                continue
            row = _json(text)
        except UnicodeDecodeError as error:
            faults.add(line, f"is not UTF-8 text (byte 0x{raw[error.start]:02x}); save it as UTF-8.")
        except json.JSONDecodeError as error:
            faults.add(line, f"is not JSON: {error.msg} at column {error.colno}; write one object a line.")
        except ValueError as error:
            faults.add(
                line, f"{error if isinstance(error, _Refused) else 'holds a number that is too large'}."
            )
        else:
            if isinstance(row, dict):
                yield line, row
            else:
                faults.add(line, f'must be an object such as {{"name": ...}}, not {_short(row)}.')


# --- tables ---


def _read_csv(path: Path, faults: _Faults) -> Iterator[Row]:
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        faults.add(line, f"is not UTF-8 text (byte 0x{raw[error.start]:02x}); save it as UTF-8.")
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        header = next(reader, [])
        columns = _columns(header, faults)
        line = reader.line_num + 1
        for cells in reader:
            if cells and not columns:
                break
            if len(cells) == len(header):
                yield line, _nested(zip(columns, map(_csv_cell, columns, cells), strict=True))
            elif cells:
                faults.add(line, f"has {len(cells)} cells, and the header {len(header)}; make them equal.")
            line = reader.line_num + 1
    except csv.Error as error:
        faults.add(line, f"is not CSV: {error}; put quotes around cells that hold commas or quotes.")


def _csv_cell(column: tuple[str, ...], cell: str) -> Any:
    if not cell:
        return None
    if column[0] in _JSON_COLUMNS:
        try:
            return _json(cell)
        except ValueError:
            return cell
    return cell


def _columns(header: list[str], faults: _Faults) -> list[tuple[str, ...]]:
    """The header's cells as paths; none where they contradict each other."""
    before = faults.count
    columns = [tuple(cell.strip().split(".")) for cell in header]
    known = set(columns)
    for position, column in enumerate(columns):
        name = ".".join(column)
        if "" in column:
            faults.add(1, f"column {position + 1} has no name, or an empty part: {_short(name)}; name it.")
        elif columns.index(column) < position:
            faults.add(1, f"column {_short(name)} stands twice; keep one.")
        for length in range(1, len(column)):
            if column[:length] in known:
                above = ".".join(column[:length])
                faults.add(1, f"columns {_short(above)} and {_short(name)} overlap; keep one.")
    return columns if faults.count == before else []


def _nested(cells: Iterable[tuple[tuple[str, ...], Any]]) -> dict[str, Any]:
    """A row from its columns' paths and values; None leaves the key out."""
    row: dict[str, Any] = {}
    for column, value in cells:
        if value is None:
            continue
        place = row
        for part in column[:-1]:
            place = place.setdefault(part, {})
        place[column[-1]] = value
    return row


def _read_parquet(path: Path, faults: _Faults) -> Iterator[Row]:
    import pyarrow
    from pyarrow import parquet

    data = path.read_bytes()
    try:
        table = parquet.read_table(pyarrow.BufferReader(data))
    except (pyarrow.ArrowException, OSError):
        faults.add(None, "is not Parquet, or damaged; write it again.")
        return
    columns = _columns(table.column_names, faults)
    if not columns:
        return
    for number, cells in enumerate(zip(*(column.to_pylist() for column in table.columns), strict=True), 1):
        row = {}
        try:
            row = _nested(
                (column, _parquet_cell(column, cell)) for column, cell in zip(columns, cells, strict=True)
            )
        except ValueError as error:
            faults.add(number, f"(row {number}) {error}.")
        else:
            yield number, row


def _parquet_cell(column: tuple[str, ...], cell: Any) -> Any:
    if column == ("setup",) and isinstance(cell, str):
        try:
            return _json(cell)
        except json.JSONDecodeError as error:
            raise _Refused(f"'setup' is text that is not JSON: {error.msg} at column {error.colno}") from None
    return _plain(cell, ".".join(column), drop=column[0] == "setup")


def _plain(value: Any, column: str, *, drop: bool) -> Any:
    """`value` as JSON has it. `drop`: absent fields, which Parquet pads with nulls, are left out."""
    if isinstance(value, float) and not math.isfinite(value):
        raise _Refused(f"column {column!r} holds {value}, a number that JSON cannot hold; use null")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_plain(entry, column, drop=drop) for entry in value]
    if isinstance(value, Mapping):
        fields = {str(key): _plain(entry, column, drop=drop) for key, entry in value.items()}
        return {key: entry for key, entry in fields.items() if not (drop and entry is None)}
    raise _Refused(f"column {column!r} holds a {type(value).__name__}, which JSON has not; store it as text")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


_READERS = {".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}
