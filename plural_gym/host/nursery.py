"""The nursery: a small process that forks workers on request, `python -m plural_gym.host.nursery FD`.

It loads the host's modules once and never author code, runs one thread, and speaks frames on descriptor FD:
`fork` (a socket follows as ancillary data) and `kill`. When its Job is gone, the descriptor closes; then it
ends every worker and itself.
"""

import contextlib
import ctypes
import fcntl
import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from plural_gym.host.serve import serve
from plural_gym.runtime import Channel, ChannelLost

MAX_FILE_BYTES = 1 << 30
"""The largest file that Verifiers' code may write; its log is one."""
_PR_SET_PDEATHSIG = 1
_DYING_S = 1.0
"""How long a worker whose socket is closed already may take to be gone, so that its own end is told."""


def main(descriptor: int) -> None:
    """Serve fork and kill requests until the other end closes."""
    connection = socket.socket(fileno=_open_standard(descriptor))
    channel = Channel(connection)
    children: dict[int, str | None] = {}
    try:
        channel.send({"ready": os.getpid()})
        while True:
            request = channel.receive()
            _reap(children)
            if request["op"] == "fork":
                channel.send(_fork(request, connection, children))
            else:
                channel.send({"ended": _end(children, request["pid"], request["lost"])})
    except ChannelLost:
        pass
    finally:
        for pid, ended in children.items():
            if ended is None:
                _kill(pid)


def _open_standard(descriptor: int) -> int:
    """Open /dev/null where standard input, output or error are closed; returns where `descriptor` is now.

    Otherwise the next file or socket would take their place, and what a worker prints would go into it.
    """
    if descriptor <= 2:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
        os.close(descriptor)
        descriptor = moved
    for standard in range(3):
        try:
            os.fstat(standard)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free one: this one
            os.set_inheritable(standard, True)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", buffering=1, closefd=False)
    return descriptor


def _fork(
    request: dict[str, Any], connection: socket.socket, children: dict[int, str | None]
) -> dict[str, Any]:
    """Start one worker; the answer for who asked."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    nursery = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        return {"failed": str(error)}
    else:
        if pid == 0:
            _end_with(nursery)
            _become_worker(request, socket.socket(fileno=descriptors[0]), connection)
        _lead(pid)
        children[pid] = None
        return {"pid": pid}
    finally:
        os.close(descriptors[0])


def _end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent dies, where it can (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _lead(pid: int) -> None:
    """Make a worker the head of a process group, so that what it started ends with it."""
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _become_worker(request: dict[str, Any], connection: socket.socket, control: socket.socket) -> None:
    """Run one worker in the forked child; never returns."""
    code = 1
    try:
        control.close()
        _lead(0)
        log = os.open(Path(request["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _hold_back(request["role"])
        serve(request["role"], Channel(connection))
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)  # never back into the nursery's own code, whatever a full disk says


def _hold_back(role: str) -> None:
    """See to it that author code which eats memory or floods its log costs its own process, not the Job."""
    if role == "hooks":
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        largest = MAX_FILE_BYTES if limit == resource.RLIM_INFINITY else min(limit, MAX_FILE_BYTES)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limit))
    with contextlib.suppress(OSError):
        # Linux: the first that the kernel ends where memory runs out.
        Path("/proc/self/oom_score_adj").write_text("1000")


def _reap(children: dict[int, str | None]) -> None:
    """Note how children have ended, so that none stays a zombie."""
    for pid in [pid for pid, ended in children.items() if ended is None]:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            _kill(pid)
            children[pid] = _in_words(status)
    for pid in [pid for pid, ended in children.items() if ended is not None][:-512]:
        del children[pid]


def _end(children: dict[int, str | None], pid: int, lost: bool) -> str:
    """Kill a worker and say how it ended. `lost`: it has hung up, so it is about to end by itself."""
    deadline = time.monotonic() + _DYING_S
    while lost and pid in children and children[pid] is None and time.monotonic() < deadline:
        _reap(children)
        time.sleep(0.001)
    ended = children.get(pid, "it had ended")
    if ended is None:
        # One that is dying already keeps the status it dies with.
        _kill(pid)
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        ended = "it was ended" if killed else _in_words(status)
    children.pop(pid, None)
    return ended


def _in_words(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"it was killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"it exited with status {os.WEXITSTATUS(status)}"


if __name__ == "__main__":
    main(int(sys.argv[1]))
