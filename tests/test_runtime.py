"""Channel: messages between a Job and its processes."""

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plural_gym.errors import MachineError
from plural_gym.runtime import MAX_FRAME_BYTES, Channel, ChannelLost, Runtime


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    channel.close()
    theirs.close()


def test_messages_arrive_whole_and_in_order(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    messages: list[Any] = [{"a": 1}, {"text": "é" * 500_000}, {"n": 10**30, "inf": float("inf")}]

    def send() -> None:
        far = Channel(other)
        for message in messages:
            far.send(message)

    sender = threading.Thread(target=send)
    sender.start()
    received = [channel.receive(10.0) for _ in messages]
    sender.join()
    assert received == [*messages[:2], {"n": 10**30, "inf": "Infinity"}]


def test_a_message_that_does_not_come_in_time(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    with pytest.raises(TimeoutError):
        channel.receive(0.02)
    other.sendall(b"\0\0\0\5{")
    with pytest.raises(TimeoutError):
        channel.receive(0.02)
    with pytest.raises(TimeoutError):
        channel.receive(0.0)


def test_an_end_that_has_gone_is_told(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    other.sendall(b"\0\0")
    other.close()
    with pytest.raises(ChannelLost, match="the process has ended"):
        channel.receive()
    with pytest.raises(ChannelLost, match="cannot be reached"):
        channel.send({})


@pytest.mark.parametrize("sent", [struct.pack("!I", MAX_FRAME_BYTES + 1), b"\0\0\0\2{{", b"\0\0\0\1\xff"])
def test_what_is_no_message_counts_as_a_lost_process(
    sent: bytes, ends: tuple[Channel, socket.socket]
) -> None:
    channel, other = ends
    other.sendall(sent)
    with pytest.raises(ChannelLost, match=r"limit is|no message"):
        channel.receive(1.0)


class Nowhere(Runtime):
    def open(self, role: Any, log: Path) -> Any:
        raise MachineError("there is none.")

    def close(self) -> None:
        pass


def test_a_runtime_without_options_refuses_them() -> None:
    assert Nowhere({}).identity() == {}
    with pytest.raises(MachineError, match="Runtime Nowhere has no options, got: image"):
        Nowhere({"image": "x"})
