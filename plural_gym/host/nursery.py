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
            children[pid] = None
            channel.send({"pid": pid})
        else:
            channel.send({"ended": _end(children, request["pid"])})
    for pid, ended in children.items():
        if ended is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _become_worker(request: dict[str, Any], connection: socket.socket, control: socket.socket) -> None:
    """Run one worker in the forked child; never returns."""
    code = 1
    try:
        control.close()
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
            children[pid] = _in_words(status)
    for pid in [pid for pid, ended in children.items() if ended is not None][:-512]:
        del children[pid]


def _end(children: dict[int, str | None], pid: int) -> str:
    ended = children.get(pid, "it had ended")
    if ended is None:
        found, status = os.waitpid(pid, os.WNOHANG)
        if not found:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            ended = "it was ended"
        else:
            ended = _in_words(status)
    children.pop(pid, None)
    return ended


def _in_words(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"it was killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"it exited with status {os.WEXITSTATUS(status)}"


if __name__ == "__main__":
    main(int(sys.argv[1]))
