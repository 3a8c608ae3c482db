"""The ledger of a training run: rewards and episodes as they happen, in the tables of a Job's ledger.

    <directory>/<writer>/ledger/<table>/part-N.parquet     rewards, episodes
    <directory>/<writer>/ledger/manifest.json              which parts count

One writer a process, shared by all environments of that process which record one run into one directory; its
folder reads like a Job's (`ledger.read`). Rows are kept as they come and written as a part when enough have
come together: there is no journal beside it. `rl.wrappers.RecordLedger` says what the rows are.
"""

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

import pyarrow as pa

from plural_gym.records import lock
from plural_gym.records.atomic import disk_error, write_json
from plural_gym.records.ledger import TABLES, Part
from plural_gym.records.ledger_manifest import Manifest
from plural_gym.records.run_tables import Error, RewardRow, VerifierKey, episode_table, reward_table

_COMPRESSION_LEVEL = 3
"""The training loop waits while a part is written; higher levels take longer and make it hardly smaller."""


@dataclass(slots=True)
class RunEpisode:
    """An episode that is being recorded."""

    writer: str
    """The writer's id; another one where this process was forked since."""
    number: int
    """Counts the episodes of the writer, from 1."""
    seed: int
    started: float
    returned: float = 0.0
    """Sum of the rewards so far."""
    steps: int = 0
    """Actions so far, rejected ones included."""


class RunLedger:
    """What one process writes of a run. Environments may share it, threads too."""

    def __init__(self, directory: Path, run: str | None, rows: int, seconds: float) -> None:
        """Nothing is written before `begin`.

        Args:
            directory: where the run's writers have their folders.
            run: the run's id; None: one is made.
            rows: a part is written when so many rows have come together,
            seconds: or at the end of an episode, when the part before is so old.
        """
        self._directory = directory
        self._named = run
        self._limit = rows
        self._seconds = seconds
        self._verifiers: dict[VerifierKey, int] = {}
        self.users = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Start over under a new name, as a forked process must: what came so far is its parent's to tell."""
        # Reentrant: an environment may be collected, and so tell its end, in the midst of a flush.
        self.guard = threading.RLock()
        self._flushing = False
        token = secrets.token_hex(4)
        self.run = self._named or f"run_{datetime.now(UTC):%Y%m%d_%H%M%S}_{token}"
        self.id = f"{self._named}-{token}" if self._named else self.run
        self._manifest: Manifest | None = None
        self._rewards: list[RewardRow] = []
        self._episodes: list[dict[str, Any]] = []
        self._keys: dict[int, dict[str, str | None]] = {}
        self._count = 0
        self._flushed = time()

    @property
    def folder(self) -> Path:
        """The folder of this writer, which reads like a Job's."""
        return self._directory / self.id

    def verifier(self, name: str, version: str | None, code: str | None) -> int:
        """The number that a Verifier's rewards are added under. `code`: its content hash."""
        with self.guard:
            return self._verifiers.setdefault((name, version, code), len(self._verifiers))

    def begin(self, agent: str, task: str | None, task_version: str | None, seed: int) -> RunEpisode:
        """Begin an episode. Raises MachineError if the directory cannot be written to."""
        with self.guard:
            if self._manifest is None:
                self._open()
            self._count += 1
            self._keys[self._count] = {
                "job_id": self.run,
                "trial_id": f"{self.id}-e{self._count}",
                "group_id": f"{self.run}/{agent}/{task or ''}",
                "task": task,
                "task_version": task_version,
                "agent": agent,
            }
            return RunEpisode(self.id, self._count, seed, time())

    def _open(self) -> None:
        root = self.folder / "ledger"
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._manifest = Manifest.settle(root, {name: table.version for name, table in TABLES.items()})
        except OSError as error:
            raise disk_error(root, error) from error
        write_json(root / "manifest.json", self._manifest.content)
        # pyarrow loads pandas, where it is installed, with the first list that it is given; at the end of the
        # process that would be too late.
        pa.array([0])

    def add(
        self,
        episode: RunEpisode,
        verifier: int,
        turn: int,
        app: str | None,
        action: str,
        value: float | None,
        error: Error | None,
    ) -> None:
        """Take what one Verifier gave for the last step of an episode.

        What belongs to an episode that began before this process was forked is the other process' to tell.
        """
        with self.guard:
            if episode.writer == self.id:
                row = episode.number, verifier, time(), episode.steps, turn, app, action, value, error
                self._rewards.append(row)
                if len(self._rewards) >= self._limit:
                    self._flush()

    def end(self, episode: RunEpisode, outcome: Mapping[str, Any]) -> None:
        """Take what an episode came to: the columns of `episodes` that the episode does not know itself."""
        with self.guard:
            if episode.writer != self.id:
                return
            now = time()
            self._episodes.append(
                {
                    "number": episode.number,
                    **self._keys[episode.number],
                    "revision": 1,
                    "return": episode.returned,
                    "n_steps": episode.steps,
                    "seed": episode.seed,
                    "started": episode.started,
                    "ended": now,
                    **outcome,
                }
            )
            full = len(self._rewards) + len(self._episodes) >= self._limit
            if full or now - self._flushed >= self._seconds:
                self._flush()

    def flush(self) -> None:
        """Write what has come so far as a part. Raises MachineError if the disk refuses."""
        with self.guard:
            self._flush()

    def _flush(self) -> None:
        if self._flushing or self._manifest is None:
            return
        rewards, self._rewards = self._rewards, []
        episodes, self._episodes = self._episodes, []
        self._flushed = time()
        self._flushing = True
        try:
            self._write(self._manifest, rewards, episodes)
        except BaseException:
            # A disk that is full now may not be later; until then every call that fills the part tells of it.
            self._rewards[:0], self._episodes[:0] = rewards, episodes
            raise
        finally:
            self._flushing = False

    def _write(
        self, manifest: Manifest, rewards: Sequence[RewardRow], episodes: Sequence[dict[str, Any]]
    ) -> None:
        """Write one part a table, and count them at once."""
        tables: dict[str, tuple[Any, float, float]] = {}
        if rewards:
            table = reward_table(rewards, self._keys, tuple(self._verifiers))
            tables["rewards"] = table, rewards[0][2], rewards[-1][2]
        if episodes:
            tables["episodes"] = episode_table(episodes), episodes[0]["ended"], episodes[-1]["ended"]
        root = manifest.root
        parts = {name: Part(root, name, manifest.next_part, _COMPRESSION_LEVEL) for name in tables}
        try:
            with lock.hold(root / ".lock", wait=True):
                for name, (table, first, last) in tables.items():
                    parts[name].add_table(
                        table, datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
                    )
                lines = {name: part.finish() for name, part in parts.items()}
                _commit(manifest, {name: line for name, line in lines.items() if line})
        except OSError as error:
            raise disk_error(root, error) from error
        finally:
            for part in parts.values():
                part.drop()
        for row in episodes:
            del self._keys[row["number"]]


def _commit(manifest: Manifest, lines: Mapping[str, dict[str, Any]]) -> None:
    """Count parts, or leave the manifest as it was: the same rows are then written again as the same part."""
    number, counts = manifest.next_part, {name: len(list(manifest.parts(name))) for name in lines}
    try:
        manifest.commit({}, lines)
    except BaseException:
        manifest.content["next_part"] = number
        for name, count in counts.items():
            del manifest.content["tables"][name]["parts"][count:]
        raise


# one writer a process

_writers: dict[tuple[Any, ...], RunLedger] = {}
_writers_guard = threading.RLock()


def join(directory: str | os.PathLike[str], run: str | None, rows: int, seconds: float) -> RunLedger:
    """The writer of a run in this process, made for the first who asks. Give it back with `leave`."""
    path = Path(directory).expanduser().resolve()
    key = (path, run, rows, seconds)
    with _writers_guard:
        writer = _writers.get(key)
        if writer is None:
            writer = _writers[key] = RunLedger(path, run, rows, seconds)
        writer.users += 1
        return writer


def leave(writer: RunLedger) -> None:
    """Give a writer back; the last who does so flushes it, and whoever comes next gets a new one."""
    with _writers_guard:
        writer.users -= 1
        last = writer.users <= 0
        if last:
            for key in [key for key, known in _writers.items() if known is writer]:
                del _writers[key]
    if last:
        writer.flush()


def _before_fork() -> None:
    """Nobody may be writing: the child would keep the locks of a thread that it does not have."""
    _writers_guard.acquire()
    for writer in _writers.values():
        writer.guard.acquire()


def _after_fork_in_parent() -> None:
    for writer in _writers.values():
        writer.guard.release()
    _writers_guard.release()


def _after_fork_in_child() -> None:
    global _writers_guard
    _writers_guard = threading.RLock()
    for writer in _writers.values():
        writer.begin_anew()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
