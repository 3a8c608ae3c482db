"""The reaper runs one program and leaves nothing of it behind.

    python -I -S reaper.py FD PLACE PROGRAM WORD ...

`program.py` starts it. When the program has ended, or descriptor FD is hung up, it kills whatever the program
started and has left running; on Linux also what has moved to another session, since the kernel hands orphans
to it. Where it was hung up it also removes the folder PLACE: who should do that may be dead. It is started as
a file, and so knows nothing but the standard library.
"""

import ctypes
import os
import shutil
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

STARTED, ENDED, FAILED = 1, 2, 3
"""What it tells on FD, each followed by a number: the program's process id; its wait status; the errno with
which it could not be started. Everything else is dead before ENDED is told."""
MESSAGE = struct.Struct("!Bi")

_PR_SET_CHILD_SUBREAPER = 36
_leaving = threading.Lock()
_SWEEP_S = 5.0
"""How long killing may take; a process that the kernel itself holds up cannot be waited for."""


def main(descriptor: int, place: str, words: list[str]) -> None:
    """Run the program to its end, then end the rest."""
    line = socket.socket(fileno=descriptor)
    line.set_inheritable(False)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    defaults = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT]
    try:
        child = os.posix_spawn(words[0], words, os.environ, setpgroup=0, setsigdef=defaults)
    except OSError as error:
        line.sendall(MESSAGE.pack(FAILED, error.errno or 0))
        return
    line.sendall(MESSAGE.pack(STARTED, child))
    threading.Thread(target=_end_when_hung_up, args=(line, child, place), daemon=True).start()
    try:
        _, status = os.waitpid(child, 0)
        sweep(child)
        line.sendall(MESSAGE.pack(ENDED, status))
    except OSError:  # hung up meanwhile, when the other thread may have reaped the program
        _leave(place)


def _end_when_hung_up(line: socket.socket, group: int, place: str) -> None:
    with suppress(OSError):
        line.recv(1)
    sweep(group)
    _leave(place)


def _leave(place: str) -> None:
    """Remove the place and end this process, whichever thread comes here first."""
    with _leaving:
        shutil.rmtree(place, ignore_errors=True)
        os._exit(0)


def sweep(group: int) -> None:
    """Kill a process group and every child of this process, until there is none."""
    deadline = time.monotonic() + _SWEEP_S
    while time.monotonic() < deadline:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
        for child in _children():
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _children() -> Iterator[int]:
    """The children of this process, as far as the system tells."""
    here = os.getpid()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{int(name)}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
            if parent == here:
                yield int(name)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
