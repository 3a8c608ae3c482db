"""Rehearsal: what is found where a Verifier is loaded and tried in a process that may loop, print or end.

`plural verifier validate` comes here. What the process does, `rehearsing.py`, it says first, so that one that
is lost can be blamed on the right function; the next process leaves that function out.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from plural_gym.errors import MachineError, Problem
from plural_gym.project_files import Layout

LOADING, PLAYING = "loading its code", "playing its first Task"
FUNCTIONS = ("reward", "check", "hindsight")
"""In the order in which they are tried."""
_STARTING_S = 30.0
"""For the process itself: the interpreter, and this package's modules."""
_FRAME = re.compile(r'File "(.+)", line (\d+) in ')


@dataclass(frozen=True, slots=True)
class Request:
    """What a rehearsal is asked for."""

    root: str
    name: str
    timeout_s: float
    """For loading, for playing, and for each function."""
    skip: tuple[str, ...] = ()
    """What an earlier process was lost in."""


@dataclass(slots=True)
class Found:
    """What came of a rehearsal."""

    problems: list[Problem] = field(default_factory=list)
    """What is wrong whatever the attempt."""
    warnings: list[Problem] = field(default_factory=list)
    """What failed on a made-up attempt, which may be the attempt's own doing."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Version and content hash; and `tried`, what was tried on which Task, or None."""


@dataclass(frozen=True, slots=True)
class _End:
    """How a process ended: what it said, what it did last, and where it was when its time was up."""

    said: dict[str, Any] | None
    doing: str
    how: str
    frames: tuple[tuple[str, int], ...]
    """From the inside out."""


def rehearse(root: Path, name: str, timeout_s: float) -> Found:
    """Load a Verifier and try it, in as many processes as it takes to try everything once.

    Raises:
        MachineError: no process could be started.
    """
    lost: list[Problem] = []
    skip: tuple[str, ...] = ()
    while True:
        end = _in_a_process(Request(str(root), name, timeout_s, skip))
        if end.said is not None:
            problems, warnings = (
                [Problem(**one) for one in end.said[key]] for key in ("problems", "warnings")
            )
            return Found(problems, [*lost, *warnings], end.said["facts"])
        problem = _loss(root, name, end)
        if end.doing == LOADING or end.doing in skip:
            return Found(problems=[problem])
        lost.append(problem)
        skip = (*skip, end.doing)


def _in_a_process(request: Request) -> _End:
    limit_s = _STARTING_S + request.timeout_s * (len(FUNCTIONS) + 3)
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as stuck:
        descriptors = [told.fileno(), stuck.fileno()]
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "plural_gym.cli.rehearsing", *map(str, descriptors)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=descriptors,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        except OSError as error:
            raise MachineError(f"no process could be started: {error}.") from error
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(json.dumps(asdict(request)).encode(), limit_s)
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        told.seek(0)
        stuck.seek(0)
        lines = [json.loads(line) for line in told.read().splitlines()]
        frames = _FRAME.findall(stuck.read().decode("utf-8", "replace"))
    code = process.returncode
    how = f"exits with status {code}" if code >= 0 else f"is killed by {signal.Signals(-code).name}"
    return _End(
        lines[-1] if lines and "facts" in lines[-1] else None,
        next((line["doing"] for line in reversed(lines) if "doing" in line), LOADING),
        f"takes longer than {request.timeout_s:g} s" if frames else how,
        tuple((file, int(line)) for file, line in frames),
    )


def _loss(root: Path, name: str, end: _End) -> Problem:
    """What is said of a process that was lost, with the innermost line of the project it was in."""
    top = os.path.realpath(root)
    places = [(os.path.relpath(os.path.realpath(file), top), line) for file, line in end.frames]
    own = [place for place in places if not place[0].startswith(os.pardir)]
    file, line = own[0] if own else (Layout(root).one("verifiers", name).file, None)
    remedy = {
        LOADING: "a module only defines what is called later.",
        PLAYING: "its functions were not tried.",
    }
    what = end.doing if end.doing in remedy else f"{end.doing}, on a made-up attempt of its first Task,"
    return Problem(
        file, line, f"{what} {end.how}; {remedy.get(end.doing, 'in a Job it would give nothing.')}"
    )
