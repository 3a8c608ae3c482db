"""Commands: runs a check that is a program, on this machine, on a copy of the evidence.

Grading comes here for each `Command`, in a Job, in GymEnv, for cases and in replay; what its end and output
mean says `plural_gym.command`. The program gets a place of its own, which is removed when it has ended:

    verifier/                   a copy of its folder; here it runs, and here Python looks for modules
    evidence/episode.json       the Episode, at PLURAL_EPISODE
    evidence/artifacts/         the files the Agent produced, at PLURAL_ARTIFACTS
    home/  tmp/  pytest.ini     empty

What an Agent left lies beside the current folder and on no search path, so that a file which it named
`conftest.py`, `sitecustomize.py`, `json.py` or `pytest.ini` is evidence and nothing else.
"""

import hashlib
import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from plural_gym.command import COPIED_TO, PYTHON, Command, Ran
from plural_gym.episode import Episode
from plural_gym.errors import GradingFault
from plural_gym.host.program import run_program
from plural_gym.records.atomic import disk_error
from plural_gym.records.strict_json import encode

_INI_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Where pytest looks for its options, in its order."""


def run_command(command: Command, episode: Episode, artifacts: Path | None, log: Path | None = None) -> Ran:
    """Run a command to its end, or to its time limit.

    Args:
        command: with its folder and time limit (`Command.of`).
        episode: the evidence.
        artifacts: the folder of the files that `episode.artifacts` names.
        log: where all that was kept of its output is added; None: nowhere.

    Raises:
        GradingFault: it cannot be started, or an artifact is not what was recorded.
        MachineError: this machine could not: no space, no process.
    """
    with _place() as place:
        try:
            _stage(command, episode, artifacts, place)
            environment = _environment(place)
            words = [_program(command, place, environment), *command.command[1:]]
        except OSError as error:
            raise disk_error(place, error, "write a command's evidence to") from error
        ran = run_program(words, place, place / COPIED_TO, environment, command.timeout_s)
    if log is not None:
        _note(log, command, ran)
    return ran


@contextmanager
def _place() -> Iterator[Path]:
    """A folder for one run, removed whatever was done to it."""
    try:
        place = Path(tempfile.mkdtemp(prefix="plural-check-")).resolve()
    except OSError as error:
        raise disk_error(tempfile.gettempdir(), error, "make a folder in") from error
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if place.exists():  # a folder in it was closed to its owner
            for folder, inner, _ in os.walk(place):
                for path in (os.path.join(folder, name) for name in inner):
                    if not os.path.islink(path):
                        os.chmod(path, 0o700)
            shutil.rmtree(place, ignore_errors=True)


# --- the evidence ---


def _stage(command: Command, episode: Episode, artifacts: Path | None, place: Path) -> None:
    for name in (COPIED_TO, "home", "tmp", "evidence", "evidence/artifacts"):
        (place / name).mkdir(mode=0o700)
    (place / "pytest.ini").touch()
    for path, inside in command.files():
        target = place / COPIED_TO / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (place / "evidence/episode.json").write_bytes(encode(episode.to_json()))
    for row in episode.artifacts:
        _copy_artifact(row, artifacts, place / "evidence/artifacts")


def _copy_artifact(row: Mapping[str, Any], source: Path | None, target: Path) -> None:
    """Copy one file, held to its hash. Links are not followed, and no way leads out of either folder."""
    name = str(row.get("path"))
    parts = PurePosixPath(name).parts
    if source is None or not parts or ".." in parts or parts[0] == "/":
        raise GradingFault(f"artifact {name!r} has no file here, so that no command can be shown it")
    folder = source
    for part in parts[:-1]:
        folder = folder / part
        if folder.is_symlink():
            raise GradingFault(f"artifact {name!r} leads through a link; it is not what was recorded")
    copy = target.joinpath(*parts)
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        opened = os.open(source / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise GradingFault(f"artifact {name!r} cannot be read: {error.strerror}") from None
    with open(opened, "rb") as file, copy.open("wb") as out:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise GradingFault(f"artifact {name!r} is no file any more")
        digest = hashlib.sha256()
        while content := file.read(1 << 20):
            digest.update(content)
            out.write(content)
    copy.chmod(0o600 | mode & 0o100)
    if digest.hexdigest() != row.get("sha256"):
        raise GradingFault(
            f"artifact {name!r} is not what was recorded: its sha256 is {digest.hexdigest()}, "
            f"not {row.get('sha256')}"
        )


# --- the program ---


def _environment(place: Path) -> dict[str, str]:
    """All that the program finds in its environment: nothing of this process but where programs lie."""
    own = os.path.dirname(os.path.abspath(sys.executable))
    others = os.environ.get("PATH", os.defpath).split(os.pathsep)
    verifier = place / COPIED_TO
    config = next((verifier / name for name in _INI_FILES if _is_for_pytest(verifier / name)), None)
    options = ["-c", str(config or place / "pytest.ini"), f"--rootdir={verifier}", "-p", "no:cacheprovider"]
    if not any(verifier.rglob("conftest.py")):
        options.append("--noconftest")
    return {
        "PATH": os.pathsep.join(dict.fromkeys([own, *(one for one in others if os.path.isabs(one))])),
        "HOME": str(place / "home"),
        "TMPDIR": str(place / "tmp"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PLURAL_EPISODE": str(place / "evidence/episode.json"),
        "PLURAL_ARTIFACTS": str(place / "evidence/artifacts"),
        # Modules come from the Verifier's folder and from what is installed: neither from the folder of a
        # script, which may be an artifact, nor from the current one, nor from a person's own.
        "PYTHONPATH": str(verifier),
        "PYTHONSAFEPATH": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "PYTEST_ADDOPTS": shlex.join(options),
    }


def _is_for_pytest(path: Path) -> bool:
    """Whether pytest has options there."""
    if not path.is_file():
        return False
    return path.name.endswith("pytest.ini") or b"pytest" in path.read_bytes()


def _program(command: Command, place: Path, environment: Mapping[str, str]) -> str:
    """The path of the program. Raises GradingFault with what would do, where there is none."""
    name = command.command[0]
    if name in PYTHON:
        return sys.executable
    if "/" in name:
        path = place / COPIED_TO / name
        if not path.is_file():
            where = "its folder" if command.folder is not None else "its place, for it has no folder"
            raise GradingFault(f"there is no program {name!r} in {where}")
        if not os.access(path, os.X_OK):
            raise GradingFault(
                f"program {name!r} may not be run; make it executable (chmod +x {name}), or name what runs "
                f"it: ['sh', {name!r}]"
            )
        return str(path)
    found = shutil.which(name, path=environment["PATH"])
    if found is None:
        beside = (place / COPIED_TO / name).is_file()
        remedy = f"write './{name}' for the file of its folder" if beside else "install it on this machine"
        raise GradingFault(f"there is no program {name!r} on the PATH; {remedy}")
    return found


def _note(log: Path, command: Command, ran: Ran) -> None:
    """Add what was kept of the output to a log, for people who look for what went wrong."""
    with suppress(OSError), log.open("ab") as file:
        file.write(f"$ {command}\n".encode() + ran.stdout + ran.stderr + f"\n{ran.ended}\n".encode())
