import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from plural_gym.errors import MachineError
from plural_gym.records import lock

HOLDER = """
import sys, time
from plural_gym.records import lock
with lock.hold(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_freed_when_its_holder_is_killed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert not lock.held(path)
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert lock.held(path)
        with pytest.raises(MachineError, match="another process is at work here"), lock.hold(path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert not lock.held(path)
    with lock.hold(path):
        assert lock.held(path)


def test_a_lock_can_be_waited_for(tmp_path: Path) -> None:
    path, order = tmp_path / ".lock", []

    def second() -> None:
        with lock.hold(path, wait=True):
            order.append("second")

    with lock.hold(path):
        waiter = threading.Thread(target=second)
        waiter.start()
        waiter.join(0.1)
        order.append("first")
    waiter.join()
    assert order == ["first", "second"]


def test_a_lock_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot lock"), lock.hold(tmp_path / "none" / ".lock"):
        pass


def test_what_may_not_be_opened_is_held_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    path.touch()
    opened = os.open

    def refused(name: Any, flags: int, *mode: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(name, flags, *mode)

    with lock.hold(path):
        monkeypatch.setattr(os, "open", refused)
        assert lock.held(path)
    assert not lock.held(path)

    def closed(name: Any, flags: int, *mode: Any) -> int:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", closed)
    assert not lock.held(path)
