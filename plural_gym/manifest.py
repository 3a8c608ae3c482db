"""Manifests as they lie on disk: YAML read safely, with lines, and every problem told at once.

`project.py` reads each `<word>.yaml` through `load` and `Document.parse`; what may
stand in one says `manifest_models.py`. `inside` is how every path that a manifest names is followed.
"""

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from plural_gym.errors import Problem, ProjectError, suggest
from plural_gym.manifest_errors import explain, shown
from plural_gym.manifest_yaml import Composer, Node, Stop, node_of, pruned

MAX_BYTES = 16 * 1024 * 1024

Loc = tuple[int | str, ...]
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Document:
    """One manifest that could be read; `faults` says what in its YAML was wrong without stopping that."""

    file: str
    """Path from the project's root, as problems show it."""
    path: Path
    data: dict[str, Any]
    """JSON values only; of a key that stands twice, the first."""
    faults: tuple[Problem, ...]
    """Duplicate keys, tags, numbers that JSON cannot hold, and the like."""
    _root: "Node" = field(repr=False)

    def line(self, loc: Loc) -> int:
        """The line of the deepest part of `loc` that stands in the file, counted from 1.

        `loc` as pydantic gives it; parts that name nothing here (a missing key, a union's label) are passed
        over.
        """
        node, line = self._root, self._root.line
        for part in loc:
            if part in node.children:
                line, node = node.children[part]
        return line

    @classmethod
    def of(cls, file: str, path: Path, data: dict[str, Any], line: int) -> "Document":
        """A Document of values that stand in one line, such as a row."""
        return cls(file, path, data, (), node_of(data, line))

    def place(self, loc: Loc) -> Loc:
        """The parts of `loc` that stand in the file, as `line` takes them."""
        node, found = self._root, []
        for part in loc:
            if part in node.children:
                found.append(part)
                node = node.children[part][1]
        return tuple(found)

    def without(self, locs: Collection[Loc]) -> "Document":
        """The same file with the values at `locs` left out; entries of a list move up, with their lines."""
        root = pruned(self._root, locs)
        return replace(self, data=root.value, _root=root)

    def problem(self, loc: Loc, message: str) -> Problem:
        """A Problem of this file at `loc`."""
        return Problem(self.file, self.line(loc), message)

    def problems(self, error: ValidationError | None, model: type[BaseModel]) -> list[Problem]:
        """`faults` and what `error` says, one readable sentence each, in the order of lines."""
        told = [self.problem(loc, sentence) for loc, sentence in explain(error, model)] if error else []
        return sorted([*self.faults, *told], key=lambda problem: problem.line or 0)

    def parse(self, model: type[M]) -> M:
        """The manifest as `model`.

        Raises:
            ProjectError: with every problem, `faults` included.
        """
        try:
            manifest = model.model_validate(self.data)
        except ValidationError as error:
            raise ProjectError(self.problems(error, model)) from None
        if self.faults:
            raise ProjectError(self.problems(None, model))
        return manifest


def load(path: Path | str, *, root: Path | str) -> Document:
    """Read the manifest at `path` of the project at `root`.

    Lesser faults, such as a key that stands twice, come back with the Document.

    Raises:
        ProjectError: nothing can be read: no such file, outside the project, over 16 MiB, not UTF-8, not
            YAML, empty, no mapping, over 200,000 nodes or 64 levels.
    """
    path = Path(path)
    file = _shown_path(path, Path(root))
    text = _read(path, Path(root), file)
    composer = Composer(text)
    try:
        node = composer.document()
    except Stop as stop:
        found = [*composer.faults, (stop.line, stop.message)]
        raise ProjectError([Problem(file, line, message) for line, message in found]) from None
    faults = tuple(Problem(file, line, message) for line, message in composer.faults)
    return Document(file=file, path=path, data=node.value, faults=faults, _root=node)


def inside(
    root: Path | str,
    folder: Path | str,
    relative: str,
    *,
    file: str | None = None,
    line: int | None = None,
) -> Path:
    """The file or folder that a manifest in `folder` names as `relative`, links followed.

    `folder` may be given from the root. `file` and `line` say where the path is written; by default the
    folder.

    Raises:
        ProjectError: the path is absolute, leaves the project by `..` or by a link at any of its parts, leads
            nowhere, or to a device or pipe.
    """
    top = os.path.realpath(root)
    place = _shown_path(Path(root, folder), Path(root)) if file is None else file

    def refused(message: str) -> ProjectError:
        return ProjectError([Problem(place, line, message)])

    said = shown(relative)
    if not relative.strip() or "\0" in relative or "\\" in relative or relative[1:2] == ":":
        raise refused(f"path {said} cannot be followed; write a relative path with '/' between its parts.")
    if relative.startswith("/"):
        raise refused(
            f"path {said} is absolute; write it relative to {_shown_path(Path(root, folder), Path(root))}."
        )
    here = os.path.realpath(os.path.join(top, folder))
    if not _within(top, here):
        raise refused(f"folder {shown(str(folder))} lies outside the project.")
    for part in relative.split("/"):
        joined = os.path.join(here, part) if part != ".." else os.path.dirname(here)
        real = os.path.realpath(joined)
        if not _within(top, real):
            how = f"follows the link {part!r} out of" if os.path.islink(joined) else "leaves"
            raise refused(f"path {said} {how} the project; copy what it needs into the project.")
        if not os.path.lexists(real) or os.path.islink(real):
            known = sorted(os.listdir(here)) if os.path.isdir(here) else []
            raise refused(f"{said} not found: {_from(top, here)} has no {part!r}; {suggest(part, known)}")
        here = real
    if not stat.S_ISREG(os.stat(here).st_mode) and not os.path.isdir(here):
        raise refused(f"{said} is neither a file nor a folder.")
    return Path(here)


def text_or_file(
    root: Path | str,
    folder: Path | str,
    text: str,
    *,
    file: str | None = None,
    line: int | None = None,
) -> str:
    """`text`, or what the Markdown file of that name in `folder` holds: `instructions` are either.

    Raises:
        ProjectError: `text` is one word that ends in `.md` and no such file is inside the project, or it
            cannot be read.
    """
    if not text.endswith(".md") or "\n" in text:
        return text
    if any(map(str.isspace, text)) and not Path(root, folder, text).is_file():
        return text
    found = inside(root, folder, text, file=file, line=line)
    return _read(found, Path(root), _shown_path(found, Path(os.path.realpath(root))))


def _within(top: str, path: str) -> bool:
    return path == top or path.startswith(top.rstrip(os.sep) + os.sep)


def _from(top: str, path: str) -> str:
    return "the project" if path == top else Path(path).relative_to(top).as_posix()


def _shown_path(path: Path, root: Path) -> str:
    """`path` from `root`, links not followed; unchanged where it is elsewhere."""
    try:
        return Path(os.path.abspath(path)).relative_to(os.path.abspath(root)).as_posix()
    except ValueError:
        return str(path)


def _read(path: Path, root: Path, file: str) -> str:
    def refused(message: str, line: int | None = None) -> ProjectError:
        return ProjectError([Problem(file, line, message)])

    if not _within(os.path.realpath(root), os.path.realpath(path)):
        raise refused("lies outside the project, itself or by a link; copy it into the project.")
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise refused("is not a file.")
        if facts.st_size > MAX_BYTES:
            raise refused(
                f"is too large ({facts.st_size:,} bytes, at most {MAX_BYTES:,}); move data to rows."
            )
        raw = path.read_bytes()
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror or error}.") from None
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise refused(f"is not UTF-8 text (byte 0x{raw[error.start]:02x}); save it as UTF-8.", line) from None
