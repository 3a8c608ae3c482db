"""The Runtime kind `local`: processes on this computer, as the user who runs the Job. For trusted code.

A nursery, one fresh interpreter with the host's modules loaded, forks a process for every request in
milliseconds; it outlives the death of any of them, and dies with its Job.
"""

import os
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plural_gym.errors import MachineError
from plural_gym.runtime import Channel, ChannelLost, Process, Role, Runtime

_START_S = 60.0


class LocalRuntime(Runtime):
    """Worker processes forked from one nursery."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._lock = threading.Lock()
        self._nursery: subprocess.Popen[bytes] | None = None
        self._control: Channel | None = None
        self._connection: socket.socket | None = None
        self._closed = False

    def open(self, role: Role, log: Path) -> "LocalProcess":
        with self._lock:
            try:
                return self._open(role, log)
            except (ChannelLost, TimeoutError, OSError):
                # The nursery was lost, or is out of its mind: once more with a new one.
                self._drop()
            try:
                return self._open(role, log)
            except (ChannelLost, TimeoutError, OSError) as error:
                raise MachineError(f"no worker process could be started: {error or 'no answer'}.") from error

    def _open(self, role: Role, log: Path) -> "LocalProcess":
        control = self._start()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                control.send({"op": "fork", "role": role, "log": str(log)})
                assert self._connection is not None
                socket.send_fds(self._connection, [b"f"], [theirs.fileno()])
                answer = control.receive(_START_S)
                if "failed" in answer:
                    raise MachineError(f"no worker process could be started: {answer['failed']}.")
            except BaseException:
                ours.close()
                raise
        return LocalProcess(self, Channel(ours), ours, answer["pid"])

    def _drop(self) -> None:
        """Let go of the nursery, which then ends its workers and itself."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._nursery is not None:
            try:
                self._nursery.wait(5)
            except subprocess.TimeoutExpired:
                self._nursery.kill()
                self._nursery.wait()
            self._nursery = None

    def _start(self) -> Channel:
        if self._closed:
            raise MachineError("the local Runtime is closed.")
        if self._control is not None and self._nursery is not None and self._nursery.poll() is None:
            return self._control
        if not hasattr(os, "fork"):
            raise MachineError("runtime 'local' needs a system with fork(), such as Linux or macOS.")
        self._drop()
        _open_standard_descriptors()
        ours, theirs = socket.socketpair()
        with theirs:
            self._nursery = subprocess.Popen(
                [sys.executable, "-u", "-m", "plural_gym.host.nursery", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # A group of its own: Ctrl-C in the terminal stops the Job, which then ends its Trials.
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "PYTHONHASHSEED": "0",
                },
            )
        self._connection, self._control = ours, Channel(ours)
        self._control.receive(_START_S)
        return self._control

    def end(self, pid: int, lost: bool) -> str:
        """Kill one of the nursery's children and say how it ended. `lost`: it has hung up by itself."""
        with self._lock:
            if self._control is None:
                return "it was ended"
            try:
                self._control.send({"op": "kill", "pid": pid, "lost": lost})
                ended: str = self._control.receive(_START_S)["ended"]
                return ended
            except (ChannelLost, TimeoutError):
                return "its parent process is gone"

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop()

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "local",
            "isolation": "none",
            "python": platform.python_version(),
            "platform": platform.platform(),
        }


class LocalProcess(Process):
    """A worker on this computer."""

    def __init__(self, runtime: LocalRuntime, channel: Channel, connection: socket.socket, pid: int) -> None:
        self.channel = channel
        self._connection = connection
        self._runtime = runtime
        self._pid = pid
        self._ended: str | None = None

    def kill(self) -> str:
        if self._ended is None:
            self._ended = self._runtime.end(self._pid, self._hung_up())
            self.channel.close()
        return self._ended

    def _hung_up(self) -> bool:
        """Whether the worker closed its end, as a process does that ends."""
        try:
            self._connection.settimeout(0)
            return not self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


def _open_standard_descriptors() -> None:
    """Open /dev/null where this process was started without standard input, output or error.

    A socket that took their place would be lost on the way to the nursery.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
