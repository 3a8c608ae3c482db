"""The nursery: a small process that forks workers on request, `python -m plural_gym.host.nursery FD`.

It loads the host's modules once and never author code, runs one thread, and speaks frames on descriptor FD:
`fork` (a socket follows as ancillary data) and `kill`. When its Job is gone, the descriptor closes; then it
ends every worker and itself.
"""

import contextlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from plural_gym.host.serve import serve
from plural_gym.runtime import Channel, ChannelLost


def main(descriptor: int) -> None:
    """Serve fork and kill requests until the other end closes."""
    connection = socket.socket(fileno=descriptor)
    channel = Channel(connection)
    children: dict[int, str | None] = {}
    channel.send({"ready": os.getpid()})
    while True:
        try:
            request = channel.receive()
        except ChannelLost:
            break
        _reap(children)
        if request["op"] == "fork":
            _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
            pid = os.fork()
            if pid == 0:
                _become_worker(request, socket.socket(fileno=descriptors[0]), connection)
            os.close(descriptors[0])
            _lead(pid)
            children[pid] = None
            channel.send({"pid": pid})
        else:
            channel.send({"ended": _end(children, request["pid"])})
    for pid, ended in children.items():
        if ended is None:
            _kill(pid)


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
        serve(request["role"], Channel(connection))
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _reap(children: dict[int, str | None]) -> None:
    """Note how children have ended, so that none stays a zombie."""
    for pid in [pid for pid, ended in children.items() if ended is None]:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            _kill(pid)
            children[pid] = _in_words(status)
    for pid in [pid for pid, ended in children.items() if ended is not None][:-512]:
        del children[pid]


def _end(children: dict[int, str | None], pid: int) -> str:
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
