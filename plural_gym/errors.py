"""Everything that can go wrong, by whose fault it is.

    PluralError
    ├── DefinitionError    a word built in Python contradicts itself            (also ValueError)
    ├── ProjectError       files of a project are wrong; holds every Problem    (also ValueError)
    ├── UsageError         a call or a command was used wrongly                 (also ValueError)
    │   └── UnknownName    no such Task, action, kind, …; says what is near     (also KeyError)
    ├── ActionRejected     an Agent's input did not fit; the episode goes on
    ├── EpisodeOver        an action after the end of the episode
    ├── QueryRefused       `query` of an action that can change State           (also PermissionError)
    ├── AppFault           an App's own code failed; ends the Trial             (also RuntimeError)
    ├── GradingFault       a Verifier's own code failed                         (also RuntimeError)
    ├── RecordError        a record on disk is damaged or of another version
    ├── CheckpointError    a live Environment cannot be saved or restored
    ├── CredentialMissing  a key or credential is not set
    └── MachineError       the machine could not: no Docker, no space, a lost worker

Author code raises plain Python errors; the boundary it crosses attributes them. Only our own bugs
reach a user as a traceback. Each class carries the exit code that the command line ends with.
"""

import difflib
import os
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


class PluralError(Exception):
    """Root of every error this package raises on purpose."""

    exit_code = 1


class DefinitionError(PluralError, ValueError):
    """A word built in Python contradicts itself, such as a Task without a Verifier that scores."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a project's files, with the place and what would fix it."""

    file: str
    """Path from the project's root, as shown to people."""
    line: int | None
    """Counted from 1; None where the whole file is meant."""
    message: str
    """What is wrong, with its value, and the remedy; ends with a full stop."""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Author code that failed: what it raised, where, and whose it is. A record, not an exception."""

    where: str
    """`app desk`, `verifier progress reward`, `harness keyword`."""
    type: str
    message: str
    at: str
    """File and line of author code, such as `verify.py:14`."""
    trace: str = ""
    """The full traceback, for the Trial's logs; never shown to an Agent."""

    @classmethod
    def of(cls, error: BaseException, where: str, within: str | None = None, author: Any = None) -> "Fault":
        """The record of an exception that crossed a boundary.

        `author`: the function that was called, named where none of its own lines raised.
        """
        trace = "".join(traceback.format_exception(error))
        try:
            message = str(error)
        except Exception:
            message = "its message cannot be shown"
        # A lone surrogate could not be written down.
        parts = (text.encode("utf-8", "backslashreplace").decode() for text in (message, trace))
        at = raised_at(error, within, begins_at(author))
        return cls(where, type(error).__name__, next(parts), at, next(parts))

    def __str__(self) -> str:
        return f"{self.where}: {self.type}: {self.message} (at {self.at})"


class ProjectError(PluralError, ValueError):
    """A project's files are wrong. Holds all problems found, not the first one."""

    exit_code = 3

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class UsageError(PluralError, ValueError):
    """A call or command was used wrongly; the message says what would work."""

    exit_code = 2


class UnknownName(UsageError, KeyError):
    """A name that nothing has. The message lists what there is and the nearest name."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ActionRejected(PluralError):
    """An action did not accept its input. The Agent reads the message; the episode goes on.

    Raise it, or a plain ``ValueError``, in an action to reject what the Agent sent.
    """


class EpisodeOver(PluralError):
    """An action was taken after the episode had ended."""


class QueryRefused(PluralError, PermissionError):
    """`query` named an action that can change State."""


class AppFault(PluralError, RuntimeError):
    """An App's own code failed. The Agent hears only that the action failed."""

    def __init__(self, message: str, fault: Fault | None = None) -> None:
        super().__init__(message, fault)
        self.fault = fault
        """What the code raised and where, if that is known."""

    def __str__(self) -> str:
        return str(self.args[0])


class GradingFault(PluralError, RuntimeError):
    """A check, reward or hindsight function failed. Never a score of 0."""


class RecordError(PluralError):
    """A record on disk is damaged, or written by a version this one cannot read."""


class CheckpointError(PluralError):
    """A live Environment cannot be saved or restored; the message names the Apps."""


class CredentialMissing(PluralError):
    """A key or credential that the run needs is not set."""

    exit_code = 4


class MachineError(PluralError):
    """The machine could not: no Docker, no network, no space, or a worker process was lost."""

    exit_code = 5


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of an "unknown name" message: `did you mean 'x'?`, or what there is.

    Returns a clause without a leading space; "" where nothing is known.
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    if not names:
        return "there are none."
    shown = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
    return f"it has: {shown}."


_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARIES = tuple(
    sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def begins_at(function: Any) -> str | None:
    """`file.py:14`, where a function begins; None for anything else."""
    code = getattr(function, "__code__", None)
    return None if code is None else f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def raised_at(error: BaseException, within: str | None = None, otherwise: str | None = None) -> str:
    """`file.py:14`, the innermost line of author code that raised `error`.

    `within`: a folder whose files count as author code; the innermost frame below it wins, else the
    innermost frame outside this package and installed libraries, else `otherwise`, else the innermost frame
    outside this package, else the innermost of all.
    """
    frames: list[tuple[str, int]] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno or 0))
    if not frames:
        return otherwise or "unknown"
    outside = [frame for frame in frames if not os.path.abspath(frame[0]).startswith(_OURS)]
    own = [frame for frame in outside if not os.path.abspath(frame[0]).startswith(_LIBRARIES)]
    if within is not None:
        own = [frame for frame in outside if os.path.abspath(frame[0]).startswith(within)] or own
    if not own and otherwise is not None:
        return otherwise
    file, line = (own or outside or frames)[-1]
    return f"{os.path.basename(file)}:{line}"
