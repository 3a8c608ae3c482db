"""A Trial's folder: the one place that knows the names of its files and when they count as finished.

Whoever executes a Trial locks and fills it; replay, Reviews, leaderboards, exports and the pages only read.

    steps.jsonl  rewards.jsonl  exchanges.jsonl     journals, append-only
    result.json                                     written last; the only file ever rewritten
    receipt.json  trajectory.json                   written once
    artifacts/manifest.json  reviews/  logs/
    interrupted-N/                                  files of executions that did not finish
"""

import hashlib
import mimetypes
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from plural_gym.errors import RecordError
from plural_gym.records import lock
from plural_gym.records.atomic import clean, disk_error, read_json, sync_folder, write_json
from plural_gym.records.delta import apply, patch
from plural_gym.records.journal import prefix, read, verify_prefix
from plural_gym.records.reviewed import AWAITING, credit_due, with_reviews

JOURNALS = ("steps.jsonl", "rewards.jsonl", "exchanges.jsonl")
"""The files whose prefixes `result.json` pins."""
_LOCK = ".lock"
_INTERRUPTED = "interrupted-"


class TrialFolder:
    """One Trial on disk. Cheap to make: nothing is read or written before a method is called."""

    __slots__ = ("path",)

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"TrialFolder({str(self.path)!r})"

    @property
    def id(self) -> str:
        """The Trial's id: the folder's name."""
        return self.path.name

    @property
    def steps_path(self) -> Path:
        return self.path / JOURNALS[0]

    @property
    def rewards_path(self) -> Path:
        return self.path / JOURNALS[1]

    @property
    def exchanges_path(self) -> Path:
        return self.path / JOURNALS[2]

    @property
    def result_path(self) -> Path:
        return self.path / "result.json"

    @property
    def receipt_path(self) -> Path:
        return self.path / "receipt.json"

    @property
    def trajectory_path(self) -> Path:
        return self.path / "trajectory.json"

    @property
    def reviews_path(self) -> Path:
        return self.path / "reviews"

    def review_path(self, verifier: str) -> Path:
        """Where the review for a Verifier lies, whatever characters its name has."""
        name = quote(verifier, safe=" ")
        return self.reviews_path / f"{'%2E' + name[1:] if name[0] == '.' else name}.json"

    @property
    def artifacts_path(self) -> Path:
        return self.path / "artifacts"

    @property
    def artifact_manifest_path(self) -> Path:
        return self.artifacts_path / "manifest.json"

    @property
    def logs_path(self) -> Path:
        return self.path / "logs"

    # an execution's life

    def create(self) -> None:
        """Makes the folder (mode 0700) and its subfolders; what is there stays."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.path, self.reviews_path, self.artifacts_path, self.logs_path):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise disk_error(self.path, error, "create") from error

    def lock(self) -> AbstractContextManager[None]:
        """`with folder.lock():` for the execution, and for every change of a finished Trial.

        MachineError at once if another process, or another `with` of this one, is inside. The kernel frees it
        at `kill -9`. The folder must exist.
        """
        return lock.hold(self.path / _LOCK)

    def running(self) -> bool:
        """Whether somebody holds the lock right now."""
        return lock.held(self.path / _LOCK)

    def finished(self) -> bool:
        """Whether `result.json` is there and every journal still begins with what it pins.

        Longer journals are sound (late credit). Anything else is an execution that has to be repeated.
        """
        try:
            pins = read_json(self.result_path)["files"]
            return all(
                name in JOURNALS and verify_prefix(self.path / name, pin) for name, pin in pins.items()
            )
        except (RecordError, KeyError, TypeError, AttributeError):
            return False

    def set_aside(self, *, finished: bool = False) -> Path | None:
        """Moves an interrupted execution's files into the next `interrupted-N/` and returns that.

        None if there was nothing to move. For the holder of the lock. RecordError if the Trial is finished:
        that is displaced with `finished` alone, as where the machine failed it and it is played again.
        """
        if not finished and self.finished():
            raise RecordError(
                f"{self.path}: the Trial is finished; its files stay. Make a new Trial instead."
            )
        try:
            return self._set_aside()
        except OSError as error:
            raise disk_error(self.path, error, "move files") from error

    def _set_aside(self) -> Path | None:
        clean(self.path)
        entries = list(self.path.iterdir()) if self.path.is_dir() else []
        moved = [
            entry
            for entry in entries
            if entry.name != _LOCK
            and not entry.name.startswith(_INTERRUPTED)
            and (entry.is_symlink() or not entry.is_dir() or any(entry.iterdir()))
        ]
        if not moved:
            return None
        taken = [entry.name.removeprefix(_INTERRUPTED) for entry in entries if _INTERRUPTED in entry.name]
        number = max((int(name) for name in taken if name.isdecimal()), default=0) + 1
        place = self.path / f"{_INTERRUPTED}{number}"
        place.mkdir(mode=0o700)
        for entry in moved:
            entry.rename(place / entry.name)
        sync_folder(place)
        sync_folder(self.path)
        return place

    # result.json and the files written once

    def seal(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Finishes the Trial: pins the journals, which must be closed, and writes `result.json` last.

        Returns what was written: `result` with `revision` (1 unless given) and `files` added. Raises
        RecordError if the Trial is sealed already.
        """
        if self.result_path.exists():
            raise RecordError(f"{self.result_path}: the Trial is sealed already. Use update to change it.")
        pins = {name: prefix(self.path / name) for name in JOURNALS if (self.path / name).exists()}
        sealed = {"revision": 1, **result, "files": pins}
        write_json(self.result_path, sealed)
        return sealed

    def update(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Rewrites the summary with `changes`, as after a Review; for the holder of the lock.

        The pins stay. `revision` rises by one unless `changes` names it, so that the ledger sees the change.
        """
        if "files" in changes:
            raise RecordError(
                f"{self.result_path}: the pins of a sealed Trial never change. Leave out 'files'."
            )
        old = self.result()
        new = {**old, "revision": (old.get("revision") or 0) + 1, **changes}
        write_json(self.result_path, new)
        return new

    def result(self) -> dict[str, Any]:
        """The summary, with every review that is in, also one that `result.json` lacks after a kill.

        RecordError if the Trial has not finished, or a file is damaged.
        """
        result = _object(self.result_path)
        return with_reviews(result, self.reviews()) if result.get("status") == AWAITING else result

    def write_review(self, verifier: str, review: Mapping[str, Any]) -> None:
        """Records a review for a Verifier; for the holder of the lock. RecordError the second time."""
        try:
            self.reviews_path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise disk_error(self.reviews_path, error, "create") from error
        write_json(self.review_path(verifier), dict(review), new=True)

    def reviews(self) -> list[dict[str, Any]]:
        """The reviews that are recorded, by Verifier. RecordError if one is damaged."""
        try:
            names = sorted(os.listdir(self.reviews_path))
        except FileNotFoundError:
            return []
        return [
            _object(self.reviews_path / name)
            for name in names
            if name.endswith(".json") and not name.startswith(".")
        ]

    def settled(self) -> bool:
        """Whether `result.json` itself holds every review that is in, and the late credit was given."""
        result = self.result()
        return result == _object(self.result_path) and not credit_due(result)

    def write_receipt(self, receipt: Mapping[str, Any]) -> None:
        """Writes `receipt.json`. RecordError the second time: it says what was run."""
        self._write_once(self.receipt_path, receipt)

    def receipt(self) -> dict[str, Any]:
        return _object(self.receipt_path)

    def write_trajectory(self, trajectory: Mapping[str, Any]) -> None:
        """Writes `trajectory.json` (ATIF), once."""
        self._write_once(self.trajectory_path, trajectory)

    def trajectory(self) -> dict[str, Any]:
        return _object(self.trajectory_path)

    def _write_once(self, path: Path, value: Mapping[str, Any]) -> None:
        if path.exists():
            raise RecordError(f"{path}: written already, and written only once. Make a new Trial instead.")
        write_json(path, dict(value))

    def pin_artifacts(self) -> list[dict[str, Any]]:
        """Hashes the files under `artifacts/` into its manifest; links are left out.

        Returns the rows, by path: `path` (below `artifacts/`), `sha256`, `size` in bytes, `media_type`.
        """
        rows = [_artifact(path, self.artifacts_path) for path in self._artifact_files()]
        write_json(self.artifact_manifest_path, rows)
        return rows

    def artifacts(self) -> list[dict[str, Any]]:
        """The rows of the manifest; [] if the Trial left none."""
        return list(read_json(self.artifact_manifest_path)) if self.artifact_manifest_path.exists() else []

    def _artifact_files(self) -> Iterator[Path]:
        found = [Path(folder) / name for folder, _, names in os.walk(self.artifacts_path) for name in names]
        for path in sorted(found):
            if path != self.artifact_manifest_path and path.is_file() and not path.is_symlink():
                yield path

    # journals

    def timeline(self) -> Iterator[dict[str, Any]]:
        """Every line of `steps.jsonl`, resets included, with `states_before` and `states` put together.

        Both map an App to its whole State as a JSON value. An unchanged State is the same object in
        `states_before`, in `states` and in the neighbouring records; a changed one shares nothing with the
        one before it. So copy before you mutate. Apps whose State cannot be read are absent.
        """
        states: dict[str, Any] = {}
        private: dict[str, Any] = {}
        for number, record in enumerate(_lines(self.steps_path), 1):
            before, states = states, dict(states)
            try:
                for app, change in (record.get("state") or {}).items():
                    states[app] = apply(private.get(app), change)
                    private[app] = patch(private.get(app), change)
            except RecordError as error:
                raise RecordError(f"{self.steps_path}:{number}: {error}") from error
            yield {**record, "states_before": before, "states": dict(states)}

    def opening(self) -> dict[str, Any] | None:
        """The first line (kind `reset`): the opening observation and States. None before the first reset."""
        return next(self.timeline(), None)

    def steps(self) -> Iterator[dict[str, Any]]:
        """The Steps (kind `step`), rejected ones included, as `timeline` gives them; not the resets."""
        return (record for record in self.timeline() if record.get("kind") != "reset")

    def rewards(self, run_id: str | None = None) -> Iterator[dict[str, Any]]:
        """The lines of `rewards.jsonl` in order, of all runs or of `run_id`."""
        return (row for row in _lines(self.rewards_path) if run_id is None or row.get("run_id") == run_id)

    def exchanges(self) -> Iterator[dict[str, Any]]:
        """The lines of `exchanges.jsonl`: every model call, in the order in which they ended."""
        return _lines(self.exchanges_path)

    def current_rewards(self) -> list[dict[str, Any]]:
        """The rewards that count: for each seat, Verifier, version and kind, those of its newest run."""
        rows = list(self.rewards())
        newest = newest_runs((_credit_key(row), row.get("run_id")) for row in rows)
        return [row for row in rows if newest[_credit_key(row)] == row.get("run_id")]


def newest_runs(rows: Iterable[tuple[Hashable, Hashable]]) -> dict[Hashable, Hashable]:
    """Of (key, run) pairs in order of appearance: for each key, the run that began last.

    An `apply` after a fix thus replaces the run before it, whatever the two are called.
    """
    seen: set[tuple[Hashable, Hashable]] = set()
    newest: dict[Hashable, Hashable] = {}
    for key, run in rows:
        if (key, run) not in seen:
            seen.add((key, run))
            newest[key] = run
    return newest


def _credit_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row.get("seat"), row.get("verifier"), row.get("verifier_version"), row.get("kind")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return read(path) if path.exists() else iter(())


def _object(path: Path) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise RecordError(f"{path}: holds {type(value).__name__}, not an object. Restore it from a copy.")
    return value


def _artifact(path: Path, root: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "path": path.relative_to(root).as_posix(),
        "sha256": digest,
        "size": path.stat().st_size,
        "media_type": mimetypes.guess_type(path.name)[0] or "application/octet-stream",
    }
