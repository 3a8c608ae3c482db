"""Command: a check that is a program, such as a test suite; and what its end and its output mean.

A DeterministicVerifier holds one in place of a check function. `host/commands.py` runs it on a copy of the
evidence; here stands what it is and how it is read, which no place where it runs decides.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from pydantic import Field, field_validator
from pydantic_core import from_json

from plural_gym.app import MAX_TIMEOUT_S
from plural_gym.errors import DefinitionError, GradingFault
from plural_gym.identity import MADE_IN_PYTHON, folder_digest, sources
from plural_gym.plain_text import printable
from plural_gym.verifier import VerifierOutput
from plural_gym.word import Number, Word

_NO_PART = frozenset({"cases", "README.md", "verifier.yaml"})
"""What of a Verifier's own folder is no part of the program."""
COPIED_TO = "verifier"
"""The folder, in a place made for one run, that its files are copied to and that it runs in."""
PYTHON = ("python", "python3")
"""Programs that are the interpreter this package runs in, wherever others of that name lie."""
_LINES_SHOWN = 5
_WORDS_SHOWN = 80
_LINE_SHOWN = 300
_TRACEBACK = "Traceback (most recent call last):\n"
_UNREADABLE = re.compile(
    r'^  File ".*", line \d+\n(?:[ ].*\n)*(?P<wrong>(?:Syntax|Indentation|Tab)Error:.*)'
    r"|^\S*python\S*: (?P<missing>No module named \S+)",
    re.MULTILINE,
)
"""What Python says of a program that it cannot begin; `No module named pytest` is the most frequent."""
_EXCEPTION = re.compile(r"[\w.]+(:|$)")
_FRAME = re.compile(r'File "(.+)", line (\d+)')
_GOES_ON = ("Exception ignored", "Exception in thread", "exception calling callback")
"""How the line before a traceback begins where the program did not end by it."""


class Command(Word):
    """A check as a program: `Command(["pytest", "-q", "tests"])`.

    It runs in a copy of its folder, with the evidence copied to where PLURAL_EPISODE (a file of JSON) and
    PLURAL_ARTIFACTS (a folder) say, and with a clean environment. It prints a VerifierOutput as JSON and
    nothing else; or it prints whatever it likes, and exits with 0 for a score of 1, with 1 for a score of 0.
    """

    command: tuple[str, ...]
    """The program and its arguments. `python` is the interpreter that this package runs in."""
    timeout_s: Number | None = Field(default=None, gt=0, le=MAX_TIMEOUT_S, allow_inf_nan=False)
    """Seconds after which it is ended, with all that it started; None: the Verifier's `timeout_s`."""
    folder: Path | None = None
    """The files it needs; None: the Verifier's own folder."""

    def __init__(self, command: Sequence[str] = (), **data: Any) -> None:
        super().__init__(command=command, **data)

    @field_validator("command", mode="before")
    @classmethod
    def _is_a_list_of_words(cls, value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            raise ValueError(f"command {value!r} is one text; write its words as a list: {_split(value)}")
        if not isinstance(value, list | tuple):
            raise ValueError(f"command is a list of words such as ['python', 'grade.py'], not {value!r}")
        if not value:
            raise ValueError("command is empty; name a program, such as ['python', 'grade.py']")
        for index, word in enumerate(value):
            if not isinstance(word, str):
                raise ValueError(f"command[{index}] is {word!r}; a word is a text: {str(word)!r}")
            if "\0" in word or word != word.encode("utf-8", "replace").decode():
                raise ValueError(f"command[{index}] {word!r} holds what no program can be given")
        if not value[0].strip():
            raise ValueError("command[0] is empty; it names the program")
        return tuple(value)

    @field_validator("folder")
    @classmethod
    def _folder_is_there(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_dir():
            raise ValueError(f"folder {str(value)!r} is no folder; its files are copied beside the command")
        return None if value is None else value.absolute()

    def of(self, folder: Path | None, timeout_s: float) -> "Command":
        """The command with all that it needs: of a Verifier with this folder and time limit."""
        if folder is not None and (folder / MADE_IN_PYTHON).exists():
            folder = None  # a Job wrote it for a Verifier that has none
        return Command(self.command, timeout_s=self.timeout_s or timeout_s, folder=self.folder or folder)

    def files(self) -> Iterator[tuple[Path, Path]]:
        """The files that are copied beside it, each with its path from the folder."""
        for path in sources(self.folder) if self.folder is not None else ():
            inside = path.relative_to(self.folder or path)
            if inside.parts[0] not in _NO_PART:
                yield path, inside

    def identity(self) -> dict[str, Any]:
        """What a content hash covers: the words, and the files that are copied beside them."""
        digest = None if self.folder is None else folder_digest(self.folder, _NO_PART)
        return {"command": list(self.command), "files": digest}

    def __str__(self) -> str:
        words = shlex.join(self.command)
        return words if len(words) <= _WORDS_SHOWN else words[: _WORDS_SHOWN - 1] + "…"


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a Command: how it ended, and what it printed."""

    status: int | None
    """What it exited with; None where a signal, the time limit or the flood of its output ended it."""
    ended: str
    """How it ended, in words: `it exited with status 3`."""
    stdout: bytes
    """Its beginning and its end, where it was long."""
    stderr: bytes
    """As `stdout`."""
    cut: bool = False
    """Whether something of `stdout` was left out."""

    def output(self) -> VerifierOutput:
        """The score it stands for.

        Raises:
            GradingFault: it is no answer; the message ends with the last lines that were printed.
        """
        if self.status not in (0, 1):
            raise GradingFault(f"{self.ended}{self._last_words()}")
        if self.status == 1:
            _refuse_exceptions(self.stderr.decode("utf-8", "replace"))
        text = self.stdout.strip()
        if text.startswith(b"{") or _is_list_or_number(text):
            return self._printed(text)
        if _holds_an_output(text):
            raise GradingFault(
                "it printed a VerifierOutput as JSON and other lines before it; print nothing else to "
                f"stdout, where stderr is free{self._last_words()}"
            )
        evidence = (f"{self.ended}", *_last_lines(self.stdout if text else self.stderr))
        return VerifierOutput(score=float(self.status == 0), evidence=evidence)

    def _printed(self, text: bytes) -> VerifierOutput:
        wrong = "it printed what looks like a VerifierOutput as JSON and is none: "
        if self.cut:
            raise GradingFault(f"{wrong}it is too long; print less evidence")
        try:
            given = from_json(text)
        except ValueError as error:
            raise GradingFault(f"{wrong}{error}{self._last_words()}") from None
        if not isinstance(given, dict):
            raise GradingFault(f'{wrong}{text[:40].decode()}; print an object such as {{"score": 1.0}}')
        try:
            return VerifierOutput(**given)
        except (DefinitionError, TypeError) as error:
            raise GradingFault(f"{wrong}{error}") from None

    def _last_words(self) -> str:
        lines = _last_lines(self.stderr) or _last_lines(self.stdout)
        return "".join(f"\n    {line}" for line in lines)


def script_of(command: Sequence[str]) -> str | None:
    """The file of its own folder that a command runs; None where it names none."""
    program, *words = command or ("",)
    if program in PYTHON:
        program = next((word for word in words if not word.startswith("-")), "")
        options = words[: words.index(program)] if program in words else words
        if not program.endswith(".py") or any(one in ("-c", "-m") for one in options):
            return None
    elif "/" not in program:
        return None
    return None if program.startswith("/") else program


def _refuse_exceptions(stderr: str) -> None:
    """Raise GradingFault where a Python program ended by an exception, which says nothing of the Agent.

    An AssertionError does: a plain script of `assert` is a check.
    """
    ending, traced = None, stderr
    while ending is None:
        traced, mark, after = traced.rpartition(_TRACEBACK)
        if not mark:
            break
        if not traced.rstrip("\n").rpartition("\n")[2].startswith(_GOES_ON):
            ending = after
    if ending is None:
        unread = _UNREADABLE.search(stderr)
        if unread is not None:
            raise GradingFault(f"Python could not begin it: {unread['wrong'] or unread['missing']}")
        return
    lines = [line.lstrip(" |") for line in ending.splitlines() if line[:1] != " " or line[:3] == "  |"]
    raised = next((line for line in lines if _EXCEPTION.match(line)), "an exception")
    if raised.startswith("AssertionError"):
        return
    frames = _FRAME.findall(ending)
    own = [frame for frame in frames if f"/{COPIED_TO}/" in frame[0]] or frames
    place = f" (at {PurePath(own[-1][0]).name}:{own[-1][1]})" if own else ""
    raise GradingFault(
        f"it raised {raised[:_LINE_SHOWN]}{place}, for which Python exits with status 1 too; for a score of "
        "0, exit with 1 and print no traceback, or print a VerifierOutput as JSON"
    )


def _is_list_or_number(text: bytes) -> bool:
    """Whether a text is JSON that somebody may take for a score. `true` and `false` of jq are none."""
    try:
        value = from_json(text) if text else None
    except ValueError:
        return False
    return isinstance(value, list | int | float) and not isinstance(value, bool)


def _holds_an_output(text: bytes) -> bool:
    """Whether a text that begins otherwise ends with a JSON object that has a score."""
    for found in list(re.finditer(rb"^\{", text, re.MULTILINE))[-_LINES_SHOWN:]:
        try:
            ending = from_json(text[found.start() :])
        except ValueError:
            continue
        if isinstance(ending, dict) and "score" in ending:
            return True
    return False


def _last_lines(output: bytes) -> tuple[str, ...]:
    """The last lines for people to read, without what a terminal would take for orders."""
    lines = [line.rstrip() for line in output.decode("utf-8", "backslashreplace").splitlines()]
    shown = [line for line in lines if line.strip()][-_LINES_SHOWN:]
    return tuple(printable(line if len(line) <= _LINE_SHOWN else line[:_LINE_SHOWN] + "…") for line in shown)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
