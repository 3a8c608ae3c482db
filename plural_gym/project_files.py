"""Where a project's resources lie: the folder that holds project.yaml, and a manifest for each resource.

`project.py` opens a project through here and builds words from what it finds. Names come from folders alone;
a manifest is read when something of it is needed.
"""

import fnmatch
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from plural_gym import manifest_partial
from plural_gym.errors import DefinitionError, Problem, ProjectError, UsageError
from plural_gym.manifest import Document, Loc, load
from plural_gym.manifest_models import (
    AgentManifest,
    AppManifest,
    BenchmarkManifest,
    EnvironmentManifest,
    HarnessManifest,
    ProjectManifest,
    ResourceManifest,
    TaskManifest,
    VerifierManifest,
    check_name,
)

M = TypeVar("M", bound=ResourceManifest)

FILE: Final = "project.yaml"
MARKER: Final = "PLURAL-TODO"
"""What a new project's files hold wherever the author has to write something."""

WORDS: Final[dict[str, tuple[str, type[ResourceManifest]]]] = {
    "apps": ("app", AppManifest),
    "environments": ("environment", EnvironmentManifest),
    "verifiers": ("verifier", VerifierManifest),
    "harnesses": ("harness", HarnessManifest),
    "agents": ("agent", AgentManifest),
    "tasks": ("task", TaskManifest),
    "benchmarks": ("benchmark", BenchmarkManifest),
}
"""Folder of a word -> its singular, which names the manifest, and what may stand in one."""

_TEXT = frozenset({".yaml", ".yml", ".md", ".py", ".txt", ".json", ".jsonl", ".csv", ".toml", ""})


class Found:
    """One resource on disk: a folder with its manifest, which is read once, when first needed."""

    def __init__(self, root: Path, word: str, folder: Path) -> None:
        self.root = root
        self.word = word
        self.folder = folder
        self.name = folder.name
        self.path = folder / f"{WORDS[word][0]}.yaml"
        self.file = Path(os.path.relpath(self.path, root)).as_posix()

    @functools.cached_property
    def document(self) -> Document:
        """Raises ProjectError where the manifest cannot be read."""
        return load(self.path, root=self.root)

    @functools.cached_property
    def _manifest(self) -> ResourceManifest:
        return self.document.parse(WORDS[self.word][1])

    def manifest(self, model: type[M]) -> M:
        """The manifest. Raises ProjectError with all that is wrong in it."""
        found = self._manifest
        assert isinstance(found, model)
        return found

    @functools.cached_property
    def _partial(self) -> manifest_partial.Partial[ResourceManifest]:
        return manifest_partial.read(self.document, WORDS[self.word][1])

    def partial(self, model: type[M]) -> manifest_partial.Partial[M]:
        """What of the manifest can be read. Raises ProjectError where nothing can."""
        found: Any = self._partial
        assert isinstance(found.manifest, model)
        return found  # type: ignore[no-any-return]

    def mentions(self, *keys: str) -> bool:
        """Whether the manifest's text holds one of `keys` at all: cheaper than reading it."""
        try:
            text = self.path.read_bytes()
        except OSError:
            return True
        return any(key.encode() in text for key in keys)

    def problem(self, loc: Loc, message: str) -> Problem:
        """A Problem of the manifest at `loc`."""
        return self.document.problem(loc, message)


class Findings(Generic[M]):
    """Gathers what is wrong with one resource, so that all of it is told at once.

    Raises:
        ProjectError: nothing of the manifest can be read.
    """

    def __init__(self, found: Found, model: type[M]) -> None:
        partial = found.partial(model)
        self.found = found
        self.manifest = partial.manifest
        """As far as it could be read: None where a needed key is wrong or missing, else its default."""
        self.document = partial.document
        """What `manifest` was read from."""
        self.dropped = partial.dropped
        """Keys of which something could not be read."""
        self.problems = list(partial.problems)
        misnamed = None if self.manifest.name is None else check_name(found.name, self.manifest)
        if misnamed is not None:
            self.add(("name",), misnamed)

    def at(self, *loc: int | str, label: str = "") -> "_Place":
        """A block whose errors become Problems at `loc` instead of leaving it.

        `label` goes before a message that opens with the quoted value.
        """
        return _Place(self, loc, label)

    def line(self, loc: Loc) -> int:
        """The line of `loc` in the file."""
        return self.document.line(loc)

    def add(self, loc: Loc, message: str) -> None:
        """One more Problem of the manifest."""
        self.problems.append(self.document.problem(loc, message))

    def settle(self) -> None:
        """Raise ProjectError with everything found; nothing where all is well."""
        if self.problems:
            raise ProjectError(list(dict.fromkeys(self.problems)))


class _Place:
    def __init__(self, findings: "Findings[Any]", loc: Loc, label: str) -> None:
        self._findings, self._loc, self._label = findings, loc, label

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, ProjectError):
            self._findings.problems.extend(error.problems)
            return True
        if isinstance(error, DefinitionError | UsageError):
            message = str(error)
            if self._label and message.startswith(("'", '"')):
                message = f"{self._label} {message}"
            self._findings.add(self._loc, message)
            return True
        return False


def find_root(path: Path | str) -> Path:
    """The nearest folder at or above `path` that holds project.yaml.

    Raises:
        ProjectError: there is none.
    """
    start = Path(path).absolute()
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder
    message = f"no {FILE} here or in a folder above; run `plural init`, or name the project's folder."
    raise ProjectError([Problem(str(path), None, message)])


class Layout:
    """A project's folders: every resource by word and name, without reading its manifest.

    Raises:
        ProjectError: project.yaml is wrong, with every problem in it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.document = load(root / FILE, root=root)
        self.manifest = self.document.parse(ProjectManifest)
        self.problems: list[Problem] = []
        """What is wrong with the folders themselves."""
        self._twice: dict[tuple[str, str], list[Found]] = {}
        self._found: dict[str, dict[str, Found]] = {}

    def resources(self, word: str) -> dict[str, Found]:
        """The resources of a word by name, in the order of their paths."""
        if word not in self._found:
            found: dict[str, Found] = {}
            for folder in self._folders(word):
                resource = Found(self.root, word, folder)
                if not resource.path.is_file():
                    self._tell_missing(resource)
                elif resource.name in found:
                    self._tell_twice(found[resource.name], resource)
                else:
                    found[resource.name] = resource
            self._found[word] = found
        return self._found[word]

    def one(self, word: str, name: str) -> Found:
        """One resource. Raises ProjectError where two have this name, KeyError where none has."""
        found = self.resources(word)[name]
        if (word, name) in self._twice:
            raise ProjectError([self._doubled(one) for one in self._twice[word, name]])
        return found

    def _folders(self, word: str) -> Iterator[Path]:
        """Every folder that may hold a resource of this word."""
        declared: Any = self.manifest.folders
        pattern = declared.get(word)
        parents = _expand(self.root, pattern or word)
        if pattern is not None and not parents:
            message = f"folder {pattern!r} of {word} does not exist; create it or remove the line."
            self.problems.append(self.document.problem(("folders", word), message))
        for parent in parents:
            if self._leads_out(parent):
                continue
            for folder in sorted(parent.iterdir()):
                if folder.name.startswith((".", "_")):
                    continue
                # Of a folder with a manifest the manifest tells it, when that is read.
                manifest = folder / f"{WORDS[word][0]}.yaml"
                if not manifest.is_file() and self._leads_out(folder):
                    continue
                if folder.is_dir():
                    yield folder

    def _leads_out(self, path: Path) -> bool:
        """Whether a folder or file lies outside the project by a link, which is told."""
        if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            return False
        shown = Path(os.path.relpath(path, self.root)).as_posix()
        message = "is a link out of the project; copy what it needs into the project, or remove it."
        self.problems.append(Problem(shown, None, message))
        return True

    def _tell_missing(self, resource: Found) -> None:
        """A folder without its manifest is a mistake where it holds another YAML file."""
        others = sorted(path.name for path in resource.folder.glob("*.y*ml"))
        if others:
            shown = Path(os.path.relpath(resource.folder, self.root)).as_posix()
            message = f"holds no {resource.path.name}; rename {others[0]!r} or add it."
            self.problems.append(Problem(shown, None, message))

    def _tell_twice(self, first: Found, second: Found) -> None:
        self._twice.setdefault((first.word, first.name), [first]).append(second)
        self.problems.append(self._doubled(second))

    def _doubled(self, resource: Found) -> Problem:
        others = [one.file for one in self._twice[resource.word, resource.name] if one is not resource]
        word = WORDS[resource.word][0]
        message = f"{word} name {resource.name!r} is also used by {others[0]}; rename one of them."
        return Problem(resource.file, None, message)

    def markers(self) -> list[Problem]:
        """Every marker that `plural init` left for the author, in project.yaml and the resources' folders."""
        files = {self.root / FILE}
        for word in WORDS:
            for resource in self.resources(word).values():
                files.update(_texts(resource.folder))
        problems = []
        for path in sorted(files):
            raw = path.read_bytes()
            if MARKER.encode() not in raw:
                continue
            shown = Path(os.path.relpath(path, self.root)).as_posix()
            for line, text in enumerate(raw.decode("utf-8", "replace").splitlines(), 1):
                if MARKER in text:
                    left = text.partition(MARKER)[2].strip(" :-\"'") or "here"
                    message = f"{MARKER} is left ({left[:80]}); write what belongs there and remove it."
                    problems.append(Problem(shown, line, message))
        return problems


def _expand(root: Path, pattern: str) -> list[Path]:
    """The folders of a project that `envs/*/tasks` names; hidden ones never match a `*`."""
    here = [root]
    for part in pattern.rstrip("/").split("/"):
        if part in ("", "."):
            continue
        if any(mark in part for mark in "*?["):
            inner = [child for folder in here for child in sorted(folder.iterdir()) if child.is_dir()]
            here = [
                child
                for child in inner
                if fnmatch.fnmatchcase(child.name, part) and not child.name.startswith(".")
            ]
        else:
            here = [folder / part for folder in here if (folder / part).is_dir()]
    return here


def _texts(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part == "__pycache__" for part in inside)
        if path.suffix.lower() in _TEXT and not hidden and path.is_file():
            yield path
