"""Files that are whole or absent: written beside their place, synced, then renamed into it.

Used for everything that is no journal: `result.json`, `receipt.json`, `job.json`, manifests. A crash leaves
the old file, the new one, or a `*.tmp` that `clean` removes; never half a file under its own name.
"""

import errno
import os
import secrets
from pathlib import Path
from typing import Any

from plural_gym.errors import MachineError, RecordError
from plural_gym.records.strict_json import decode, encode

_REASONS = {
    errno.ENOSPC: "disk full",
    errno.EDQUOT: "disk full for this user (quota)",
    errno.EFBIG: "disk full for this file (file size limit)",
    errno.EIO: "disk full or broken (input/output error)",
}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""What a file system says that has no hard links. There the caller's lock alone keeps two writers apart."""


def write_json(path: str | Path, value: Any, mode: int = 0o600, *, new: bool = False) -> None:
    """Puts `value` at `path` in one step that survives a power cut once this returns.

    Raises RecordError if `value` is not JSON, or with `new` if something lies there already, and MachineError
    if the disk refuses; the file stays as it was.
    """
    write_bytes(path, encode(value, indent=2) + b"\n", mode, new=new)


def write_bytes(path: str | Path, content: bytes, mode: int = 0o600, *, new: bool = False) -> None:
    """Puts `content` at `path` as `write_json` puts JSON. MachineError if the disk refuses."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        _place_new(temporary, path) if new else os.replace(temporary, path)
        sync_folder(path.parent)
    except FileExistsError:
        temporary.unlink(missing_ok=True)
        raise RecordError(f"{path}: written already, and written only once.") from None
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_error(path, error) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _place_new(temporary: Path, path: Path) -> None:
    """Moves a file to a name that is free. FileExistsError if it is not: of two at once, one gets it."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(errno.EEXIST, "", str(path)) from None
        os.replace(temporary, path)
    else:
        os.unlink(temporary)


def read_json(path: str | Path) -> Any:
    """The value in a file that `write_json` wrote. Raises RecordError if it is absent or damaged."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise RecordError(
            f"{path}: there is no such record. Check the id, or whether the Trial has finished."
        ) from None
    except OSError as error:
        raise disk_error(path, error, "read") from error
    try:
        return decode(content)
    except ValueError as error:
        raise RecordError(
            f"{path}: damaged ({error}). Restore it from a copy, or remove it and run the Trial again."
        ) from error


def clean(folder: str | Path) -> list[Path]:
    """Removes what a killed `write_json` left in `folder` and returns the paths.

    Only for a folder nobody writes to at the moment: call it under the folder's lock.
    """
    leftovers = sorted(Path(folder).glob("*.tmp"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return leftovers


def write_all(handle: int, content: bytes) -> None:
    """Writes all of `content`, in one call unless the system takes it in parts."""
    written = os.write(handle, content)
    while written < len(content):
        written += os.write(handle, memoryview(content)[written:])


def sync_folder(folder: str | Path) -> None:
    """Makes names created in, renamed in or removed from `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def disk_error(path: str | Path, error: OSError, verb: str = "write") -> MachineError:
    """The MachineError that says why the disk refused `path` and what would help."""
    reason = _REASONS.get(error.errno or 0)
    if reason is None:
        return MachineError(
            f"{path}: cannot {verb} ({error.strerror or error}). Check that the folder exists and is yours."
        )
    return MachineError(f"{path}: {reason}. Free space or choose another directory, then resume the Job.")
