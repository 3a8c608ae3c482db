"""A Job's ledger: its finished Trials as Parquet, one folder a table, for data frames and trainers.

    ledger/<table>/part-N.parquet     episodes, rewards, steps
    ledger/manifest.json              which parts count, their hashes, and how far each Trial is in

`seal` copies what the Trials' folders say; they stay the truth, so a ledger may be deleted and sealed again.
What a row holds is `ledger_rows`' business, and crash safety `ledger_manifest`'s. Loads pyarrow, as of the
records only `run_ledger` and `run_tables` do beside it: the same tables, told by a training loop.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from plural_gym.errors import RecordError, UnknownName, UsageError, suggest
from plural_gym.records import ledger_values as values
from plural_gym.records import lock
from plural_gym.records.atomic import disk_error
from plural_gym.records.job_folder import JobFolder
from plural_gym.records.ledger_manifest import Manifest, unplaced
from plural_gym.records.ledger_rows import Mark, Row, SealedTrial, episode_rows, reward_rows, step_rows
from plural_gym.records.trial_folder import TrialFolder, newest_runs

ROW_GROUP_ROWS = 4096
ROW_GROUP_CHARS = 64 << 20
"""A row group is closed at this many rows or characters: memory does not grow with the Job."""
_COMPRESSION_LEVEL = 6

_TEXT = pa.string()
_TIME = pa.timestamp("us", tz="UTC")
_SCORE = pa.struct(
    [("verifier", _TEXT), ("version", _TEXT), ("score", pa.float64()), ("weight", pa.float64())]
)
_KEYS = [
    *((name, _TEXT) for name in ("job_id", "trial_id", "group_id")),
    ("attempt", pa.int16()),
    *((name, _TEXT) for name in ("benchmark", "task", "task_version", "agent", "seat")),
]


@dataclass(frozen=True)
class Table:
    """A table of the ledger: add one by adding its schema and where its rows come from to `TABLES`."""

    schema: Any
    """A pyarrow schema; its metadata `plural.schema` carries the version."""
    rows: Callable[[SealedTrial], Iterator[Row]]
    """The rows that a Trial gives and the ledger lacks, in order."""
    repetitive: tuple[str, ...]
    """Columns with few distinct values, beside the keys: dictionary-encoded."""

    @property
    def version(self) -> str:
        return str(self.schema.metadata[b"plural.schema"].decode())


def _schema(version: str, columns: Sequence[tuple[str, Any]]) -> Any:
    return pa.schema([*_KEYS, *columns], metadata={"plural.schema": version})


TABLES = {
    "episodes": Table(
        _schema(
            "episodes/1",
            [
                ("revision", pa.int16()),
                *((name, _TEXT) for name in ("status", "failure")),
                ("score", pa.float64()),
                ("scores", pa.list_(_SCORE)),
                ("return", pa.float64()),
                *((n, pa.int32()) for n in ("n_steps", "n_exchanges", "prompt_tokens", "completion_tokens")),
                ("cost_usd", pa.float64()),
                *((name, _TIME) for name in ("started", "ended")),
                ("stop_reason", _TEXT),
                *((name, pa.bool_()) for name in ("terminated", "truncated", "trainable")),
                *((name, _TEXT) for name in ("drop_reason", "policy_version_min", "policy_version_max")),
                ("seed", pa.int64()),
                *((name, _TEXT) for name in ("answer", "capture_level", "faults")),
            ],
        ),
        episode_rows,
        ("status", "failure", "stop_reason", "drop_reason", "capture_level"),
    ),
    "rewards": Table(
        _schema(
            "rewards/1",
            [
                ("reward_id", _TEXT),
                ("ts", _TIME),
                *((n, _TEXT) for n in ("verifier", "verifier_version", "kind", "target", "event_id")),
                ("exchange_id", _TEXT),
                ("turn", pa.int32()),
                *((name, _TEXT) for name in ("app", "action")),
                ("value", pa.float64()),
                *((name, _TEXT) for name in ("status", "error_type", "error_message", "error_at")),
                *((name, _TEXT) for name in ("source", "run_id", "code_sha256")),
            ],
        ),
        reward_rows,
        (
            *("verifier", "verifier_version", "kind", "target", "app", "action", "status", "error_type"),
            *("error_message", "error_at", "source", "run_id", "code_sha256"),
        ),
    ),
    "steps": Table(
        _schema(
            "steps/1",
            [
                ("event_id", _TEXT),
                ("seq", pa.int32()),
                ("kind", _TEXT),
                ("turn", pa.int32()),
                ("ts", _TIME),
                ("duration_ms", pa.float32()),
                *((name, _TEXT) for name in ("app", "action", "arguments", "observation", "error")),
                *((name, _TEXT) for name in ("state_before", "state_after")),
                *((name, pa.bool_()) for name in ("terminated", "truncated")),
                ("reward", pa.float64()),
                *((name, _TEXT) for name in ("exchange_id", "tool_call_id")),
            ],
        ),
        step_rows,
        ("kind", "app", "action"),
    ),
}


def seal(job_folder: JobFolder | str | Path, *, batch: int = 256) -> dict[str, Any]:
    """Copies what finished Trials have and the ledger lacks into new parts; returns the manifest.

    One part a table for each `batch` Trials. Sealing the same again writes nothing; rewards that came late
    and newer revisions of an episode give rows for what is new. Killed at any moment it leaves dot files, and
    the next seal gives the same rows. Trials that are not finished are passed over; damaged ones are named
    under `refused`, each with its reason. Waits for another seal of this Job that is under way.
    """
    job = _job(job_folder)
    root = job.ledger_path
    if not job.path.is_dir():
        raise RecordError(f"{job.path}: there is no such Job. Check the id.")
    try:
        root.mkdir(mode=0o700, exist_ok=True)
        with lock.hold(root / ".lock", wait=True):
            manifest = Manifest.settle(root, {name: table.version for name, table in TABLES.items()})
            refused = _seal(job, manifest, max(batch, 1))
    except OSError as error:
        raise disk_error(root, error) from error
    return {**manifest.content, "refused": refused}


def read(job_folder: JobFolder | str | Path, table: str, *, current: bool = True) -> Any:
    """A table of the ledger as a `pyarrow.Table`; empty if nothing was sealed.

    `current`: of an episode its newest revision; of rewards, for each Trial, seat, Verifier, version and
    kind, the rows of the newest run only. False gives every row that was ever sealed.
    """
    if table not in TABLES:
        raise UnknownName(f"the ledger has no table {table!r}; {suggest(table, TABLES)}")
    job = _job(job_folder)
    root = job.ledger_path
    if not root.exists() and not job.pins_path.exists():
        raise UsageError(f"{job.path} has no ledger; name a Job's folder, or the folder of one training run.")
    manifest = Manifest.load(root)
    parts = [_read_part(root, part) for part in manifest.parts(table)] if manifest else []
    found = pa.concat_tables([TABLES[table].schema.empty_table(), *parts], promote_options="default")
    if not current or table not in _CURRENT:
        return found
    return found.filter(pa.array(_CURRENT[table](found), pa.bool_()))


def _job(job_folder: JobFolder | str | Path) -> JobFolder:
    return job_folder if isinstance(job_folder, JobFolder) else JobFolder(job_folder)


def _read_part(root: Path, part: dict[str, Any]) -> Any:
    path = root / part["file"]
    failed: Exception = FileNotFoundError(path)
    # A writer may put the part into its place between two looks.
    for place in (path, unplaced(path), path):
        try:
            return pq.read_table(place, partitioning=None)
        except FileNotFoundError as error:
            failed = error
        except (OSError, pa.ArrowException) as error:
            failed = error
            break
    raise RecordError(f"{path}: cannot be read ({failed}). Remove {root} and seal the Job again.") from failed


def _newest_revisions(table: Any) -> list[bool]:
    keys = list(zip(table["trial_id"].to_pylist(), table["seat"].to_pylist(), strict=True))
    revisions = table["revision"].to_pylist()
    newest: dict[Any, int] = {}
    for key, revision in zip(keys, revisions, strict=True):
        newest[key] = max(newest.get(key, -1), revision or 0)
    return [newest[key] == (revision or 0) for key, revision in zip(keys, revisions, strict=True)]


def _newest_runs(table: Any) -> list[bool]:
    columns = ("trial_id", "seat", "verifier", "verifier_version", "kind")
    keys = list(zip(*(table[column].to_pylist() for column in columns), strict=True))
    runs = table["run_id"].to_pylist()
    newest = newest_runs(zip(keys, runs, strict=True))
    return [newest[key] == run for key, run in zip(keys, runs, strict=True)]


_CURRENT = {"episodes": _newest_revisions, "rewards": _newest_runs}


# sealing


def _seal(job: JobFolder, manifest: Manifest, batch: int) -> dict[str, str]:
    """Seals what is new, batch by batch; returns the damaged Trials with their reasons."""
    refused: dict[str, str] = {}
    waiting = _waiting(job, manifest, refused)
    for start in range(0, len(waiting), batch):
        chosen = waiting[start : start + batch]
        while chosen and not _seal_batch(job, manifest, chosen, refused):
            chosen = [trial_id for trial_id in chosen if trial_id not in refused]
    return refused


def _waiting(job: JobFolder, manifest: Manifest, refused: dict[str, str]) -> list[str]:
    """Ids of finished Trials with something new, in the ledger's order: by group, then by Trial."""
    found: list[tuple[str, str]] = []
    for folder in job.trials():
        if not folder.result_path.exists():
            continue
        known = manifest.mark(folder.id)
        try:
            result = folder.result()
            if (known is None or _grown(folder, result, known)) and folder.finished():
                found.append((str(result.get("group_id") or ""), folder.id))
        except (RecordError, TypeError) as error:
            refused[folder.id] = str(error)
    return [trial_id for _, trial_id in sorted(found)]


def _grown(folder: TrialFolder, result: Row, known: Mark) -> bool:
    size = folder.rewards_path.stat().st_size if folder.rewards_path.exists() else 0
    return bool(size > known.rewards_bytes or (result.get("revision") or 0) > known.revision)


def _seal_batch(
    job: JobFolder, manifest: Manifest, trial_ids: Sequence[str], refused: dict[str, str]
) -> bool:
    """Writes and counts one part a table; or names a damaged Trial in `refused` and leaves nothing behind."""
    writers = {name: Part(manifest.root, name, manifest.next_part) for name in TABLES}
    marks: dict[str, Mark] = {}
    try:
        for trial_id in trial_ids:
            try:
                trial = SealedTrial(job.trial(trial_id), job.id, manifest.mark(trial_id))
                for name, table in TABLES.items():
                    for row in table.rows(trial):
                        writers[name].add(row, trial_id)
            except (RecordError, TypeError, AttributeError) as error:
                refused[trial_id] = str(error)
                return False
            marks[trial_id] = trial.mark
        manifest.commit(marks, {name: part for name, writer in writers.items() if (part := writer.finish())})
    finally:
        for writer in writers.values():
            writer.drop()
    return True


class Part:
    """One part being written, under its dot name; the file is made with its first row group."""

    def __init__(self, root: Path, table: str, number: int, level: int = _COMPRESSION_LEVEL) -> None:
        self._level = level
        self._file = f"{table}/part-{number}.parquet"
        self._path = unplaced(root / self._file)
        self._table = TABLES[table]
        self._fits = [(field.name, _fit(field.type), field.type) for field in self._table.schema]
        self._writer: Any = None
        self._rows: list[Row] = []
        self._chars = 0
        self._count = 0
        self._trials: dict[str, None] = {}
        self._times: list[datetime] = []

    def add(self, row: Row, trial_id: str) -> None:
        """Takes one row. Raises RecordError, naming the field, if a value does not fit its column."""
        fitted: Row = {}
        for name, fit, kind in self._fits:
            value = row.get(name)
            try:
                fitted[name] = None if value is None else fit(value)
            except (TypeError, ValueError, OverflowError):
                raise RecordError(f"{name!r} is {repr(value)[:80]}, which does not fit {kind}") from None
        self._rows.append(fitted)
        self._chars += sum(len(value) for value in fitted.values() if isinstance(value, str))
        self._trials[trial_id] = None
        if (moment := fitted.get("ts") or fitted.get("ended")) is not None:
            self._times = [min([moment, *self._times]), max([moment, *self._times])]
        if len(self._rows) >= ROW_GROUP_ROWS or self._chars >= ROW_GROUP_CHARS:
            self._flush()

    def add_table(self, rows: Any, first: datetime, last: datetime) -> None:
        """Takes a `pyarrow.Table` of the schema, as one row group: for rows known to fit, without Trials."""
        self._times = [min([first, *self._times]), max([last, *self._times])]
        self._write(rows)

    def finish(self) -> dict[str, Any] | None:
        """Closes and syncs the file; returns its line of the manifest, or None if there were no rows."""
        if self._rows:
            self._flush()
        if self._writer is None:
            return None
        self._writer.close()
        self._writer = None
        with self._path.open("rb+") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fchmod(file.fileno(), 0o600)
            os.fsync(file.fileno())
        first, last = (moment.isoformat() for moment in self._times) if self._times else (None, None)
        return {
            "file": self._file,
            "rows": self._count,
            "bytes": self._path.stat().st_size,
            "sha256": digest,
            "trials": list(self._trials),
            "first": first,
            "last": last,
        }

    def drop(self) -> None:
        """Gives an unfinished file up; does nothing after `finish`."""
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()
            self._writer = None
            self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        self._write(pa.Table.from_pylist(self._rows, schema=self._table.schema))
        self._rows, self._chars = [], 0

    def _write(self, rows: Any) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._path,
                self._table.schema,
                compression="zstd",
                compression_level=self._level,
                use_dictionary=[name for name, _ in _KEYS] + list(self._table.repetitive),
                write_page_checksum=True,
            )
        self._writer.write_table(rows)
        self._count += len(rows)


# values into columns


def _fit(kind: Any) -> Callable[[Any], Any]:
    """What turns a JSON value (not null) into one for a column of this type; raises what `add` catches."""
    if pa.types.is_list(kind):
        item = _fit(kind.value_type)
        return lambda value: [None if entry is None else item(entry) for entry in value]
    if pa.types.is_struct(kind):
        fits = [(field.name, _fit(field.type)) for field in kind]
        return lambda value: {n: None if value.get(n) is None else fit(value[n]) for n, fit in fits}
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return lambda value: values.integer(value, limit)
    if pa.types.is_floating(kind):
        return values.number
    if pa.types.is_boolean(kind):
        return values.flag
    return values.moment if pa.types.is_timestamp(kind) else values.words
