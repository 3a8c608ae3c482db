"""The Runtime `local`: workers forked from one nursery, which dies with its Job."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plural_gym.errors import MachineError
from plural_gym.runtime import FROM_OUTSIDE, ChannelLost
from plural_gym.runtimes.local import LocalRuntime


@pytest.fixture
def runtime() -> Iterator[LocalRuntime]:
    made = LocalRuntime({})
    yield made
    made.close()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 2
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_nothing_starts_before_it_is_needed(runtime: LocalRuntime) -> None:
    assert runtime._nursery is None
    assert runtime.identity()["kind"] == "local" and runtime.identity()["isolation"] == "none"


def test_a_worker_answers_until_it_is_killed(runtime: LocalRuntime, tmp_path: Path) -> None:
    worker = runtime.open("apps", tmp_path / "apps.log")
    worker.channel.send({"op": "snapshots"})
    assert worker.channel.receive(10) == {"states": {}}
    pid = worker._pid
    assert worker.kill() == worker.kill() == "it was ended" and not alive(pid)
    with pytest.raises(ChannelLost):
        worker.channel.send({})


def test_how_a_worker_ended_is_told(runtime: LocalRuntime, tmp_path: Path) -> None:
    for number, words in (
        (signal.SIGSEGV, "it was killed by SIGSEGV"),
        (signal.SIGTERM, "it was killed by SIGTERM"),
    ):
        worker = runtime.open("hooks", tmp_path / "log")
        os.kill(worker._pid, number)
        with pytest.raises(ChannelLost):
            worker.channel.receive(5)
        assert worker.kill() == words
    worker = runtime.open("hooks", tmp_path / "log")
    worker.channel.send({"op": "no such thing"})
    with pytest.raises(ChannelLost):
        worker.channel.receive(5)
    assert worker.kill() == "it exited with status 1"
    assert "no such thing" in (tmp_path / "log").read_text()


def test_workers_do_not_share_what_happens_to_one(runtime: LocalRuntime, tmp_path: Path) -> None:
    one, two = (runtime.open("apps", tmp_path / "log") for _ in range(2))
    one.kill()
    two.channel.send({"op": "snapshots"})
    assert two.channel.receive(5) == {"states": {}}
    two.kill()


def test_closing_ends_every_process(tmp_path: Path) -> None:
    runtime = LocalRuntime({})
    workers = [runtime.open("apps", tmp_path / "log") for _ in range(3)]
    assert runtime._nursery is not None
    nursery = runtime._nursery.pid
    runtime.close()
    runtime.close()
    assert all(gone(pid) for pid in [nursery, *(worker._pid for worker in workers)])
    assert workers[0].kill() == "it was ended"
    for worker in workers:
        worker.channel.close()
    with pytest.raises(MachineError, match="the local Runtime is closed"):
        runtime.open("apps", tmp_path / "log")


def test_a_nursery_that_is_lost_is_started_anew(runtime: LocalRuntime, tmp_path: Path) -> None:
    first = runtime.open("apps", tmp_path / "log")
    assert runtime._nursery is not None
    runtime._nursery.kill()
    runtime._nursery.wait()
    assert first.kill() == "its parent process is gone"
    second = runtime.open("apps", tmp_path / "log")
    second.channel.send({"op": "snapshots"})
    assert second.channel.receive(5) == {"states": {}}
    second.kill()


def test_options_are_refused() -> None:
    with pytest.raises(MachineError, match="LocalRuntime has no options, got: image"):
        LocalRuntime({"image": "x"})


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_killed_nursery_takes_looping_workers_along(runtime: LocalRuntime, tmp_path: Path) -> None:
    worker = runtime.open("apps", tmp_path / "log")
    worker.channel.send({"op": "snapshots"})
    worker.channel.receive(10)
    os.kill(worker._pid, signal.SIGSTOP)  # as deaf to its channel as one that loops
    assert runtime._nursery is not None
    runtime._nursery.kill()
    runtime._nursery.wait()
    assert gone(worker._pid)
    assert worker.kill() == "its parent process is gone"


def test_workers_run_where_standard_input_and_output_are_closed(tmp_path: Path) -> None:
    script = tmp_path / "closed.py"
    script.write_text(
        f"""
import os, sys
from pathlib import Path
from plural_gym.runtimes.local import LocalRuntime

runtime = LocalRuntime({{}})
worker = runtime.open("apps", Path({str(tmp_path / "log")!r}))
worker.channel.send({{"op": "snapshots", "id": 1}})
answer = worker.channel.receive(20)
Path({str(tmp_path / "answer")!r}).write_text(repr(answer["states"]) + worker.kill())
runtime.close()
"""
    )
    ended = subprocess.run(
        ["sh", "-c", 'exec "$0" "$1" <&- >&- 2>&-', sys.executable, str(script)], timeout=60, check=False
    )
    assert ended.returncode == 0
    assert (tmp_path / "answer").read_text() == "{}it was ended"


def test_a_worker_that_is_killed_from_outside_says_so(runtime: LocalRuntime, tmp_path: Path) -> None:
    worker = runtime.open("apps", tmp_path / "log")
    os.kill(worker._pid, signal.SIGKILL)
    with pytest.raises(ChannelLost):
        worker.channel.receive(5)
    assert worker.kill() in FROM_OUTSIDE
