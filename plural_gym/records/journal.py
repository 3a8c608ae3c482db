"""An append-only file of JSON records, one a line: a Trial's steps, rewards and model calls.

The truth while a Trial runs and afterwards. Whatever was appended before a `kill -9` is there; a power cut
may cost the last second. Callers append and read; where the files lie is `trial_folder`'s business.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Any, BinaryIO, Self

from pydantic_core import to_json

from plural_gym.errors import RecordError
from plural_gym.records import lock
from plural_gym.records.atomic import disk_error, sync_folder, write_all
from plural_gym.records.strict_json import decode, encode

SYNC_EVERY_S = 1.0
"""An append later than this after the last sync syncs."""
SYNC_EVERY_RECORDS = 256
"""As many unsynced records are synced even within that time."""
_CHUNK = 1 << 20

_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Journal:
    """An open journal: one writer, held by a lock on the file; any number of readers.

    Each record is one `write` and nothing waits in a buffer of ours. Threads may share a journal. Close it,
    or use it in a `with` block: the lock lives as long as it is open.
    """

    __slots__ = ("_created", "_guard", "_handle", "_synced", "_unsynced", "path")

    def __init__(self, path: Path, handle: int, created: bool) -> None:
        """For `open` alone: `handle` is locked and stands after a whole record."""
        self.path = path
        self._handle = handle
        self._created = created
        self._guard = Lock()
        self._unsynced = 0
        self._synced = monotonic()

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Opens `path` for appending, creates it (mode 0600) if need be, and repairs it.

        A last line that was torn (no newline, NULs, bad JSON) is cut off and kept in `NAME.torn`. A bad line
        before good ones is damage, not a crash: RecordError. MachineError if another writer has it open.
        """
        path = Path(path)
        created = not path.exists()
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise disk_error(path, error) from error
        try:
            lock.take(handle, path)
            _repair(path, handle)
        except OSError as error:
            os.close(handle)
            raise disk_error(path, error) from error
        except BaseException:
            os.close(handle)
            raise
        return cls(path, handle, created)

    def append(self, record: dict[str, Any]) -> None:
        """Writes one record. On return the kernel has it.

        Raises RecordError if it is not JSON and MachineError if the disk refuses; the journal then ends with
        the record before, whole.
        """
        try:
            line = to_json(record, inf_nan_mode="strings")
        except ValueError:
            line = encode(record)
        self.append_line(line + b"\n")

    def append_bytes(self, line: bytes) -> None:
        """Writes a record that is JSON already, with or without its newline. Only newlines are checked."""
        line = line.removesuffix(b"\n")
        if not line or b"\n" in line:
            raise RecordError(
                f"{self.path}: a record is one line of JSON, got {line[:40]!r}. Join its lines."
            )
        self.append_line(line + b"\n")

    def append_line(self, line: bytes) -> None:
        """Writes a record that its maker vouches for: JSON without a newline but the one at its end."""
        with self._guard:
            try:
                if os.write(self._handle, line) != len(line):
                    self._write_rest(line)
            except OSError as error:
                raise self._undone(error) from error
            except BaseException:
                self._cut()
                raise
            self._unsynced += 1
            if self._unsynced >= SYNC_EVERY_RECORDS or monotonic() - self._synced >= SYNC_EVERY_S:
                self._sync()

    def sync(self) -> None:
        """Makes all records so far survive a power cut, instead of within a second."""
        with self._guard:
            self._sync()

    def close(self) -> None:
        """Syncs and frees the lock. Closing twice is fine."""
        with self._guard:
            if self._handle < 0:
                return
            try:
                self._sync()
                if self._created:
                    sync_folder(self.path.parent)
            except OSError as error:
                raise disk_error(self.path, error) from error
            finally:
                os.close(self._handle)
                self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_rest(self, line: bytes) -> None:
        """The system took a part: cut it off and write the line again, so that no other reason hides."""
        _cut_to_newline(self._handle)
        write_all(self._handle, line)

    def _undone(self, error: OSError) -> Exception:
        """Cuts half a record off and returns what to raise."""
        if self._handle < 0:
            return RecordError(f"{self.path}: this journal is closed. Open it again to append.")
        return disk_error(self.path, self._cut() or error)

    def _cut(self) -> OSError | None:
        """Back to the last whole record; a file that refuses even that is given up."""
        try:
            _cut_to_newline(self._handle)
        except OSError as error:
            os.close(self._handle)
            self._handle = -1
            return error
        return None

    def _sync(self) -> None:
        if self._handle >= 0 and self._unsynced:
            try:
                _sync(self._handle)
            except OSError as error:
                raise disk_error(self.path, error) from error
            self._unsynced = 0
            self._synced = monotonic()


def read(path: str | Path) -> Iterator[dict[str, Any]]:
    """The records of a journal, one at a time, also while a writer is alive.

    A torn tail is left out. Raises RecordError, with file and line, for a bad line before good ones.
    """
    path = Path(path)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise RecordError(f"{path}: there is no such journal. Check the id, or run the Trial.") from None
    except OSError as error:
        raise disk_error(path, error, "read") from error
    with file:
        for _, record in _whole_records(path, file):
            yield record


def prefix(path: str | Path) -> dict[str, Any]:
    """Pins what a journal holds now: `records`, `bytes` and `sha256` of its whole lines."""
    records, size, seen = 0, 0, 0
    running = hashlib.sha256()
    whole = running.copy()
    try:
        with Path(path).open("rb") as file:
            while chunk := file.read(_CHUNK):
                cut = chunk.rfind(b"\n") + 1
                running.update(chunk[:cut])
                if cut:
                    whole, size = running.copy(), seen + cut
                    records += chunk.count(b"\n")
                running.update(chunk[cut:])
                seen += len(chunk)
    except OSError as error:
        raise disk_error(path, error, "read") from error
    return {"records": records, "bytes": size, "sha256": whole.hexdigest()}


def verify_prefix(path: str | Path, pinned: Mapping[str, Any]) -> bool:
    """Whether the journal still begins with what `prefix` pinned. A longer one is sound: late credit."""
    left, records = pinned.get("bytes"), 0
    if type(left) is not int or left < 0:
        return False
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while left and (chunk := file.read(min(_CHUNK, left))):
                digest.update(chunk)
                records += chunk.count(b"\n")
                left -= len(chunk)
    except OSError:
        return False
    return left == 0 and digest.hexdigest() == pinned.get("sha256") and records == pinned.get("records")


def _whole_records(path: Path, file: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    """(offset after the line, record) up to a torn tail. RecordError for damage before the last line."""
    end = 0
    for number, line in enumerate(file, 1):
        record = _record(line)
        if record is None:
            if next(file, None) is not None:
                raise RecordError(
                    f"{path}:{number}: not a JSON record, and there are lines after it: the file was damaged"
                    " or edited. Restore it from a copy, or run the Trial again."
                )
            return
        end += len(line)
        yield end, record


def _record(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = decode(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _repair(path: Path, handle: int) -> None:
    """Cuts a torn last line off, after a synced copy of it lies in `NAME.torn`."""
    end = 0
    with path.open("rb") as file:
        for offset, _ in _whole_records(path, file):
            end = offset
        file.seek(end)
        torn = file.read()
    if not torn:
        return
    keep = os.open(path.with_name(path.name + ".torn"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        write_all(keep, torn if torn.endswith(b"\n") else torn + b"\n")
        os.fsync(keep)
    finally:
        os.close(keep)
    os.ftruncate(handle, end)
    os.fsync(handle)


def _cut_to_newline(handle: int) -> None:
    """Truncates an open file to the end of its last whole line."""
    end = os.fstat(handle).st_size
    while end:
        start = max(0, end - _CHUNK)
        found = os.pread(handle, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    os.ftruncate(handle, end)
