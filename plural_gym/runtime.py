"""Runtime: where a Trial's world runs; and Channel, the frames its processes speak.

A Runtime starts processes of two roles: `apps` holds the Apps, `hooks` the Verifiers' code. They are apart so
that a reward function which loops or exits costs its reward, never the world. Kinds lie in `runtimes/`.
"""

import socket
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic_core import from_json, to_json

from plural_gym.errors import MachineError
from plural_gym.records.strict_json import legible

Role = Literal["apps", "hooks"]

MAX_FRAME_BYTES = 256 * 1024 * 1024
FROM_OUTSIDE = frozenset(
    ("it was killed by SIGKILL", "it was killed by SIGTERM", "its parent process is gone")
)
"""How a process ends, in `Process.kill`'s words, where the machine or somebody else ended it: no fault of the
code that it ran."""


class ChannelLost(MachineError):
    """The process at the other end is gone."""


class Channel:
    """JSON messages over a stream socket, each led by its length in four bytes. One thread at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. A lone surrogate, which JSON cannot hold, goes as its escape.

        Raises:
            ChannelLost: nobody listens any more.
            MachineError: the message is too long; nothing was sent.
            ValueError: a value has no JSON form; nothing was sent.
        """
        try:
            payload = to_json(message, inf_nan_mode="strings")
        except ValueError:
            payload = to_json(legible(message), inf_nan_mode="strings")
        if len(payload) > MAX_FRAME_BYTES:
            raise MachineError(f"a message has {len(payload)} bytes; the limit is {MAX_FRAME_BYTES}.")
        try:
            self._socket.settimeout(None)
            self._socket.sendall(struct.pack("!I", len(payload)) + payload)
        except OSError as error:
            raise ChannelLost(f"the process cannot be reached: {error}.") from error

    def receive(self, timeout_s: float | None = None) -> Any:
        """The next message.

        Raises:
            TimeoutError: none came in time; the channel is of no more use.
            ChannelLost: the other end has closed.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        (length,) = struct.unpack("!I", self._read(4, deadline))
        if length > MAX_FRAME_BYTES:
            raise ChannelLost(f"a message of {length} bytes came; the limit is {MAX_FRAME_BYTES}.")
        try:
            return from_json(self._read(length, deadline))
        except ValueError as error:
            raise ChannelLost(f"what came is no message: {error}.") from error

    def _read(self, length: int, deadline: float | None) -> bytes:
        data = bytearray()
        while len(data) < length:
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                self._socket.settimeout(left)
            else:
                self._socket.settimeout(None)
            try:
                part = self._socket.recv(min(length - len(data), 1 << 20))
            except TimeoutError:
                raise
            except OSError as error:
                raise ChannelLost(f"the process cannot be reached: {error}.") from error
            if not part:
                raise ChannelLost("the process has ended.")
            data += part
        return bytes(data)

    def close(self) -> None:
        """Close this end. Safe to call twice."""
        self._socket.close()


class Process(ABC):
    """One process that a Runtime started: a channel to it, and the means to end it."""

    channel: Channel

    @abstractmethod
    def kill(self) -> str:
        """End the process at once, whatever it does; returns how it had ended, in words.

        Those of `FROM_OUTSIDE` say that somebody else had killed it.

        Safe to call twice, and when it has ended already.
        """


class Runtime(ABC):
    """Where worlds run. One Runtime serves all Trials of a Job; its methods may be called from any thread."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        if options:
            raise MachineError(f"Runtime {type(self).__name__} has no options, got: {', '.join(options)}.")

    @abstractmethod
    def open(self, role: Role, log: Path) -> Process:
        """Start a process of one role, its output going to `log`.

        Raises:
            MachineError: the machine could not.
        """

    @abstractmethod
    def close(self) -> None:
        """End every process and let go of all that was started. Safe to call twice."""

    def identity(self) -> dict[str, Any]:
        """What a Receipt says of it."""
        return {}
