"""A Job's folder, and the store of Jobs that commands and pages look things up in.

job.json        what was asked for, pinned; written once
result.json     the Job's summary; rewritten as Trials finish
trials/<id>/    one `TrialFolder` each
inputs/         copies of what the Job was made from
ledger/         Parquet, made by `ledger.seal`; safe to delete and rebuild
"""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from plural_gym.errors import RecordError, UnknownName, suggest
from plural_gym.records import lock
from plural_gym.records.atomic import clean, disk_error, read_json, sync_folder, write_json
from plural_gym.records.trial_folder import TrialFolder

JOBS = Path(".plural") / "jobs"
"""Where Jobs are kept, in a project or the current folder, unless somebody says another place."""
_UNSETTLED = ".unsettled-"


class JobFolder:
    """One Job on disk. Cheap to make: nothing is read or written before a method is called."""

    __slots__ = ("path",)

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"JobFolder({str(self.path)!r})"

    @property
    def id(self) -> str:
        """The Job's id: the folder's name."""
        return self.path.name

    @property
    def pins_path(self) -> Path:
        return self.path / "job.json"

    @property
    def result_path(self) -> Path:
        return self.path / "result.json"

    @property
    def trials_path(self) -> Path:
        return self.path / "trials"

    @property
    def inputs_path(self) -> Path:
        return self.path / "inputs"

    @property
    def ledger_path(self) -> Path:
        return self.path / "ledger"

    def create(self, pins: Mapping[str, Any]) -> None:
        """Makes the folder and writes `job.json`. RecordError if the Job exists: pins never change."""
        if self.pins_path.exists():
            raise RecordError(f"{self.pins_path}: the Job exists already. Resume it, or choose another id.")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.path, self.trials_path, self.inputs_path):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise disk_error(self.path, error, "create") from error
        write_json(self.pins_path, dict(pins))

    def pins(self) -> dict[str, Any]:
        """What `create` pinned. RecordError if absent or damaged."""
        return dict(read_json(self.pins_path))

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Writes the Job's summary in place of the one before."""
        write_json(self.result_path, dict(result))

    def summarise(self, make: Callable[[], Mapping[str, Any]]) -> None:
        """Writes what `make` gives as the summary; one process at a time, so that the last to look wins."""
        with lock.hold(self.path / ".summary.lock", wait=True):
            clean(self.path)
            self.write_result(make())

    def result(self) -> dict[str, Any]:
        """The summary. RecordError if none was written yet."""
        return dict(read_json(self.result_path))

    def note_unsettled(self, trial_id: str) -> None:
        """Notes, before a Trial's summary changes late, that this Job's ledger and summary will lack that.

        For the holder of the Trial's lock. The note stays until `settle_notes`, through any kill.
        """
        note = self.path / f"{_UNSETTLED}{_plain_name('Trial', trial_id)}.{secrets.token_hex(4)}"
        try:
            os.close(os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            sync_folder(self.path)
        except OSError as error:
            raise disk_error(note, error) from error

    def unsettled(self) -> dict[str, str]:
        """Notes that stand -> the Trial that each is about."""
        names = [name for name in _names(self.path) if name.startswith(_UNSETTLED)]
        return {name: name.removeprefix(_UNSETTLED).rpartition(".")[0] for name in names}

    def settle_notes(self, notes: Sequence[str]) -> None:
        """Removes notes whose change has reached the ledger and the summary."""
        for note in notes:
            (self.path / note).unlink(missing_ok=True)

    def lock(self) -> AbstractContextManager[None]:
        """`with job.lock():` while the Job runs; MachineError if another process runs it."""
        return lock.hold(self.path / ".lock")

    def running(self) -> bool:
        """Whether a process runs the Job right now."""
        return lock.held(self.path / ".lock")

    def trial(self, trial_id: str) -> TrialFolder:
        """The folder of one Trial, which need not exist yet."""
        return TrialFolder(self.trials_path / _plain_name("Trial", trial_id))

    def trial_ids(self) -> list[str]:
        """The ids of the Trials that have a folder, sorted."""
        return _folders(self.trials_path)

    def trials(self) -> Iterator[TrialFolder]:
        """The Trials that have a folder, by id."""
        return (TrialFolder(self.trials_path / name) for name in self.trial_ids())


class JobStore:
    """The folder that holds Jobs, `.plural/jobs` by default; it need not exist."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def job(self, job_id: str) -> JobFolder:
        """The folder of a Job by its whole id; it need not exist yet."""
        return JobFolder(self.root / _plain_name("Job", job_id))

    def jobs(self) -> list[JobFolder]:
        """All Jobs, newest first, by the time their pins were written."""
        dated = [(job.pins_path.stat().st_mtime_ns, job.id, job) for job in self._all()]
        return [job for _, _, job in sorted(dated, key=lambda entry: entry[:2], reverse=True)]

    def find(self, job_id: str) -> JobFolder:
        """The Job of this id, or the only one whose id begins so. UnknownName says what is near."""
        known = [(job.id, job.id) for job in self._all()]
        return JobFolder(self.root / _pick("Job", job_id, known, self.root))

    def find_trial(self, trial_id: str) -> TrialFolder:
        """The Trial of this id, or the only one in all Jobs whose id begins so; also `JOB/TRIAL`."""
        job_id, _, wanted = trial_id.rpartition("/")
        jobs = [self.find(job_id)] if job_id else self._all()
        known = [(name, f"{job.id}/{name}") for job in jobs for name in job.trial_ids()]
        job_id, _, name = _pick("Trial", wanted, known, self.root).partition("/")
        return JobFolder(self.root / job_id).trial(name)

    def _all(self) -> list[JobFolder]:
        jobs = [JobFolder(self.root / name) for name in _folders(self.root)]
        return [job for job in jobs if job.pins_path.exists()]


def _pick(word: str, wanted: str, known: Sequence[tuple[str, str]], root: Path) -> str:
    """Of (id, full name) pairs, the full name that `wanted` means: an id, or the start of only one."""
    found = [full for name, full in known if name == wanted]
    if not found and wanted:
        found = [full for name, full in known if name.startswith(wanted)]
    if not found:
        names = [name for name, _ in known]
        raise UnknownName(f"there is no {word} {wanted!r} in {root}; {suggest(wanted, names)}")
    if len(found) > 1:
        shown = ", ".join(sorted(found)[:5]) + (", …" if len(found) > 5 else "")
        raise UnknownName(f"{wanted!r} could be {len(found)} {word}s in {root}: {shown}. Write more of it.")
    return found[0]


def _plain_name(word: str, name: str) -> str:
    """`name` if it is the name of one folder; ids never lead out of the place they are kept in."""
    if name in ("", ".", "..") or "/" in name or os.sep in name or "\0" in name:
        raise UnknownName(f"{name!r} is no {word} id: it must be the name of one folder.")
    return name


def _names(path: Path) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _folders(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and entry.name[0] != ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
