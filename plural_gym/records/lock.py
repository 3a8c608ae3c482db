"""A lock that the kernel frees when its holder dies, however it dies.

Taken by whoever executes a Trial, seals a ledger or appends to a journal. There is no pid in it and nothing
to clean up after `kill -9`; the empty lock file stays. A child forked while the lock is held keeps it
until it ends, too: start workers by spawn or exec.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plural_gym.errors import MachineError
from plural_gym.records.atomic import disk_error


@contextmanager
def hold(path: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Holds the lock file `path` inside the `with` block.

    `wait`: until it is free; else MachineError at once if another process, or this one, holds it.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise disk_error(path, error, "lock") from error
    try:
        take(handle, path, wait=wait)
        yield
    finally:
        os.close(handle)


def held(path: str | Path) -> bool:
    """Whether somebody holds the lock at this moment. Creates nothing.

    False where the file may not be opened: who reads a copy on a read-only medium meets nobody at work.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return False
        raise
    try:
        return not _taken(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)


def take(handle: int, path: str | Path, *, wait: bool = False) -> None:
    """Locks an open file for as long as `handle` is open. `path` is for the message only."""
    try:
        taken = _taken(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise disk_error(path, error, "lock") from error
    if not taken:
        raise MachineError(f"{path}: another process is at work here. Wait until it has ended, or stop it.")


def _taken(handle: int, operation: int) -> bool:
    try:
        fcntl.flock(handle, operation)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True
