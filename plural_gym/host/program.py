"""A program run to its end on this machine: timed, and with no more of its output kept than a record can use.

`commands.py` runs checks through here. `reaper.py` stands between: what a program starts ends with it.
"""

import math
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from plural_gym.command import Ran
from plural_gym.errors import GradingFault, MachineError
from plural_gym.host import reaper

KEPT_BYTES = 1024 * 1024
"""Of the end of each stream that are kept, beside its beginning."""
KEPT_FIRST_BYTES = 64 * 1024
"""Of the beginning of each stream."""
MAX_PRINTED_BYTES = 64 * 1024 * 1024
"""Of both: a program that prints more is ended."""
_ENDING_S = 10.0
"""How long the reaper may take to kill everything."""
_DRAIN_S = 1.0
"""How long output is awaited from what nobody could kill."""
_TOLD = 0
"""What the reaper tells, among the streams: 1 and 2 are the program's own."""


def run_program(
    words: Sequence[str], place: Path, folder: Path, environment: Mapping[str, str], timeout_s: float | None
) -> Ran:
    """Run a program, its standard input empty, in a process group of its own.

    Args:
        words: the path of the program, and what it is given.
        place: the folder that was made for this run, and is removed even if this process dies meanwhile.
        folder: where in it the program runs.
        environment: all of its environment.
        timeout_s: seconds after which it is ended; None: never.

    Raises:
        GradingFault: the system refuses to run it.
        MachineError: no process could be started.
    """
    return _Run(words, place, folder, environment).to_its_end(timeout_s)


class _Run:
    """One process under the reaper, and what is kept of its output."""

    def __init__(
        self, words: Sequence[str], place: Path, folder: Path, environment: Mapping[str, str]
    ) -> None:
        self._words = words
        self._line, theirs = socket.socketpair()
        with theirs:
            try:
                self._reaper = subprocess.Popen(
                    [sys.executable, "-I", "-S", reaper.__file__, str(theirs.fileno()), str(place), *words],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    umask=0o077,
                )
            except OSError as error:
                self._line.close()
                raise MachineError(f"no process could be started: {error}.") from error
        self._open = selectors.DefaultSelector()
        self._open.register(self._line, selectors.EVENT_READ, _TOLD)
        for stream, number in ((self._reaper.stdout, 1), (self._reaper.stderr, 2)):
            assert stream is not None
            self._open.register(stream, selectors.EVENT_READ, number)
        self._kept = {1: _Kept(), 2: _Kept()}
        self._told: dict[int, int] = {}
        self._heard = b""
        self._over = False

    def to_its_end(self, timeout_s: float | None) -> Ran:
        """Wait for its end, or make one."""
        with self._reaper, self._open:
            try:
                why = self._listen(timeout_s)
            finally:
                self._end()
            self._drain()
        return self._ran(why)

    def _listen(self, timeout_s: float | None) -> str | None:
        """Read until it has ended; why it has to be ended, where it does not."""
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while not self._over:
            left = deadline - time.monotonic()
            if left <= 0:
                return f"it took longer than {timeout_s:g} s and was ended"
            if sum(kept.printed for kept in self._kept.values()) > MAX_PRINTED_BYTES:
                return f"it printed more than {MAX_PRINTED_BYTES} bytes and was ended"
            for key, _ in self._open.select(None if left == math.inf else left):
                self._read(key)
        return None

    def _read(self, key: selectors.SelectorKey) -> None:
        """Take what there is of one stream; forget a stream that has ended."""
        part = os.read(key.fd, 1 << 16)
        if not part:
            self._open.unregister(key.fileobj)
            self._over |= key.data == _TOLD
        elif key.data == _TOLD:
            self._heard += part
            while len(self._heard) >= reaper.MESSAGE.size:
                kind, number = reaper.MESSAGE.unpack_from(self._heard)
                self._told[kind] = number
                self._heard = self._heard[reaper.MESSAGE.size :]
        else:
            self._kept[key.data].add(part)

    def _drain(self) -> None:
        """Take what it had printed last."""
        deadline = time.monotonic() + _DRAIN_S
        while self._open.get_map() and time.monotonic() < deadline:
            for key, _ in self._open.select(_DRAIN_S):
                self._read(key)

    def _end(self) -> None:
        """Let the reaper kill what is left, and go; kill it where it does not."""
        if not self._over:
            self._open.unregister(self._line)
        self._line.close()
        try:
            self._reaper.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self._reaper.kill()
        if reaper.ENDED not in self._told and reaper.STARTED in self._told:
            with suppress(OSError):  # the reaper itself may have been killed
                os.killpg(self._told[reaper.STARTED], signal.SIGKILL)

    def _ran(self, why: str | None) -> Ran:
        if reaper.FAILED in self._told:
            reason = os.strerror(self._told[reaper.FAILED])
            name = os.path.basename(self._words[0])
            raise GradingFault(
                f"program {name!r} cannot be run: {reason}; let a script begin with a line such as "
                f"'#!/bin/sh', or name what runs it: ['sh', {name!r}]"
            )
        status: int | None = None
        if why is None and reaper.ENDED in self._told:
            code = os.waitstatus_to_exitcode(self._told[reaper.ENDED])
            status = code if code >= 0 else None
            why = f"it exited with status {code}" if code >= 0 else f"it was killed by {_signal(-code)}"
        why = why or "the process that watched over it was killed"
        stdout, stderr = self._kept[1], self._kept[2]
        return Ran(status, why, stdout.text(), stderr.text(), stdout.left_out > 0)


class _Kept:
    """What is kept of a stream."""

    def __init__(self) -> None:
        self.printed = 0
        self._first, self._last = bytearray(), bytearray()

    def add(self, part: bytes) -> None:
        self.printed += len(part)
        room = KEPT_FIRST_BYTES - len(self._first)
        self._first += part[:room]
        self._last += part[room:]
        del self._last[:-KEPT_BYTES]

    @property
    def left_out(self) -> int:
        """Bytes between the beginning and the end."""
        return self.printed - len(self._first) - len(self._last)

    def text(self) -> bytes:
        gap = b"\n[%d bytes left out]\n" % self.left_out if self.left_out else b""
        return bytes(self._first) + gap + bytes(self._last)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
