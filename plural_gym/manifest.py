"""Manifests as they lie on disk: YAML read safely, with lines, and every problem told at once.

The one module that touches ruamel.yaml, and only its event stream: data are built here, so that no tag can
make an object and no alias can grow without bound. Scalars follow YAML 1.2's core schema (`no` and
`2024-01-01` stay text). `project.py` reads each `<word>.yaml` through `load` and `Document.parse`; what may
stand in one says `manifest_models.py`. `inside` is how every path that a manifest names is followed.
"""

import math
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from plural_gym.errors import Problem, ProjectError, suggest
from plural_gym.manifest_models import FIELD_RULE, MODEL_RULE

MAX_BYTES = 16 * 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 64

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
    _root: "_Node" = field(repr=False)

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
    composer = _Composer(text)
    try:
        node = composer.document()
    except _Stop as stop:
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

    shown = _shown(relative)
    if not relative.strip() or "\0" in relative or "\\" in relative or relative[1:2] == ":":
        raise refused(f"path {shown} cannot be followed; write a relative path with '/' between its parts.")
    if relative.startswith("/"):
        raise refused(
            f"path {shown} is absolute; write it relative to {_shown_path(Path(root, folder), Path(root))}."
        )
    here = os.path.realpath(os.path.join(top, folder))
    if not _within(top, here):
        raise refused(f"folder {_shown(str(folder))} lies outside the project.")
    for part in relative.split("/"):
        joined = os.path.join(here, part) if part != ".." else os.path.dirname(here)
        real = os.path.realpath(joined)
        if not _within(top, real):
            how = f"follows the link {part!r} out of" if os.path.islink(joined) else "leaves"
            raise refused(f"path {shown} {how} the project; copy what it needs into the project.")
        if not os.path.lexists(real) or os.path.islink(real):
            known = sorted(os.listdir(here)) if os.path.isdir(here) else []
            raise refused(f"{shown} not found: {_from(top, here)} has no {part!r}; {suggest(part, known)}")
        here = real
    if not stat.S_ISREG(os.stat(here).st_mode) and not os.path.isdir(here):
        raise refused(f"{shown} is neither a file nor a folder.")
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


# --- YAML events to JSON values ---


@dataclass(slots=True)
class _Node:
    """A value with its lines. `children`: by key or index, the line of the key or entry and its node."""

    value: Any
    line: int
    size: int = 1
    height: int = 0
    children: dict[int | str, tuple[int, "_Node"]] = field(default_factory=dict)


class _Stop(Exception):
    """Reading cannot go on."""

    def __init__(self, line: int | None, message: str) -> None:
        super().__init__(message)
        self.line, self.message = line, message


_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_HINTS = {
    "mapping values are not allowed here": "put quotes around a text that holds ': '",
    "'\\t'": "indent with spaces",
    "unexpected end of stream": "close what was opened",
    "expected <block end>": "align it with the lines above",
    "cannot start any token": "put quotes around the text",
}


class _Composer:
    """Builds one document from events; `faults` gathers (line, message) of what does not stop it."""

    def __init__(self, text: str) -> None:
        self.faults: list[tuple[int | None, str]] = []
        self._events = _events(text)
        self._anchors: dict[str, _Node | None] = {}
        self._count = 0

    def document(self) -> _Node:
        next(self._events)
        if type(next(self._events)).__name__ == "StreamEndEvent":
            raise _Stop(None, "is empty; write at least 'name:'.")
        node = self._node(next(self._events), 1)
        next(self._events)
        following = next(self._events)
        if type(following).__name__ != "StreamEndEvent":
            self._fault(following, "starts a second YAML document; keep one in each file.")
        if not isinstance(node.value, dict):
            raise _Stop(node.line, f"must hold 'key: value' lines at its top, not {_shown(node.value)}.")
        return node

    def _fault(self, event: Any, message: str) -> None:
        self.faults.append((event.start_mark.line + 1, message))

    def _node(self, event: Any, depth: int) -> _Node:
        kind, line = type(event).__name__, event.start_mark.line + 1
        if kind == "AliasEvent":
            return self._alias(event, line, depth)
        self._spend(1, line)
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._fault(event, f"tag {_shown(tag)} is not allowed; write plain values, and text in quotes.")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if kind == "ScalarEvent":
            node = _Node(self._scalar(event), line)
        else:
            self._descend(depth, line)
            build = self._sequence if kind == "SequenceStartEvent" else self._mapping
            node = build(line, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _spend(self, nodes: int, line: int) -> None:
        self._count += nodes
        if self._count > MAX_NODES:
            raise _Stop(line, f"holds more than {MAX_NODES:,} values, aliases counted; move data to rows.")

    def _descend(self, depth: int, line: int) -> None:
        if depth > MAX_DEPTH:
            raise _Stop(line, f"is nested more than {MAX_DEPTH} levels deep; flatten it.")

    def _alias(self, event: Any, line: int, depth: int) -> _Node:
        if event.anchor not in self._anchors:
            self._fault(event, f"alias '*{event.anchor}' has no anchor '&{event.anchor}' above it; add one.")
            return _Node(None, line)
        known = self._anchors[event.anchor]
        if known is None:
            self._fault(event, f"alias '*{event.anchor}' stands inside its own anchor; write the value out.")
            return _Node(None, line)
        self._spend(known.size, line)
        self._descend(depth + known.height - 1, line)
        return _Node(_copy(known.value), line, known.size, known.height, known.children)

    def _sequence(self, line: int, depth: int) -> _Node:
        node = _Node([], line, height=1)
        while type(event := next(self._events)).__name__ != "SequenceEndEvent":
            child = self._node(event, depth + 1)
            node.children[len(node.value)] = (child.line, child)
            node.value.append(child.value)
            node.size, node.height = node.size + child.size, max(node.height, child.height + 1)
        return node

    def _mapping(self, line: int, depth: int) -> _Node:
        node = _Node({}, line, height=1)
        seen: dict[str, int] = {}
        merged: list[tuple[Any, _Node]] = []
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            key = self._node(event, depth + 1)
            child = self._node(next(self._events), depth + 1)
            node.size, node.height = node.size + key.size + child.size, max(node.height, child.height + 1)
            if not isinstance(key.value, str):
                self._fault(event, f"a key must be text, not {_shown(key.value)}; put it in quotes.")
            elif key.value in seen:
                first = seen[key.value]
                self._fault(event, f"key {_shown(key.value)} stands twice, first on line {first}; keep one.")
            else:
                seen[key.value] = key.line
                if key.value == "<<" and getattr(event, "style", "") is None:
                    merged.append((event, child))
                else:
                    node.value[key.value] = child.value
                    node.children[key.value] = (key.line, child)
        for event, source in merged:
            self._merge(node, event, source)
        return node

    def _merge(self, node: _Node, event: Any, source: _Node) -> None:
        """`<<: *anchor`, or a list of them: keys that `node` lacks, the earlier source first."""
        sources = [(source.value, source)]
        if isinstance(source.value, list):
            sources = [(value, source.children[index][1]) for index, value in enumerate(source.value)]
        for value, origin in sources:
            if not isinstance(value, dict):
                self._fault(event, f"'<<' merges mappings, not {_shown(value)}; name an anchored mapping.")
                continue
            for key in value.keys() - node.value.keys():
                node.value[key] = value[key]
                node.children[key] = origin.children[key]

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.style is not None:
            return self._quoted(event, text)
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text) and len(text) <= 4000:
            return int(text, 8 if text[:2] == "0o" else 16 if text[:2] == "0x" else 10)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if math.isfinite(number) and len(text) <= 4000:
                return number
            self._fault(
                event, f"number {_shown(text, quoted=False)} is too large; put it in quotes to mean text."
            )
            return None
        if _NOT_FINITE.fullmatch(text):
            self._fault(event, f"{text!r} is a number that JSON cannot hold; use null, or put it in quotes.")
            return None
        return text

    def _quoted(self, event: Any, text: str) -> str:
        r"""Text in quotes: `"\ud83d\ude00"`, as JSON writes one character, is that character."""
        if text.isascii():
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self._fault(
                event, "holds half of a surrogate pair, which no file can; write the whole character."
            )
            return ""


def _events(text: str) -> Iterator[Any]:
    """The events of `text`; what ruamel raises, and what it lets through from below, as _Stop."""
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except YAMLError as error:
        raise _syntax(error, text) from None
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError, AssertionError) as error:
        raise _Stop(None, f"is not valid YAML: {error}.") from None


def _syntax(error: Any, text: str) -> _Stop:
    position = getattr(error, "position", None)
    if isinstance(position, int):
        where = text.count("\n", 0, position) + 1
        return _Stop(where, f"holds the control character {text[position]!r}; remove it.")
    mark, opened = error.problem_mark or error.context_mark, error.context_mark
    said = error.problem or error.context or "unknown"
    hint = next((hint for part, hint in _HINTS.items() if part in said), "")
    since = f" ({error.context} from line {opened.line + 1})" if error.context and opened else ""
    line = min(mark.line + 1, max(1, len(text.splitlines()))) if mark else None
    return _Stop(line, f"is not valid YAML: {said}{since}{'; ' + hint if hint else ''}.")


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(entry) for key, entry in value.items()}
    return [_copy(entry) for entry in value] if isinstance(value, list) else value


# --- pydantic's errors as sentences ---

_WANTED = {
    "string_type": "be text",
    "int_type": "be a whole number",
    "float_type": "be a number",
    "bool_type": "be true or false",
    "dict_type": "be a mapping",
    "model_type": "be a mapping",
    "list_type": "be a list",
    "finite_number": "be a finite number",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_LABEL = "[key]"
_PRIVATE = frozenset({"credentials", "secrets"})


def explain(error: ValidationError, model: type[BaseModel]) -> list[tuple[Loc, str]]:
    """What is wrong where, one sentence each with its value and what would do.

    `model` is the one that was validated. Locs are pydantic's, as `Document.line` takes them.
    """
    found: dict[tuple[Loc, str], None] = {}
    for detail in error.errors(include_url=False):
        loc, kind = detail["loc"], detail["type"]
        if kind == MODEL_RULE:
            for key, sentence in detail["ctx"]["rules"]:
                path = _subject(_trace(model, loc)[0])
                where = f" (in {path})" if path else ""
                found[(*loc, key) if key else loc, sentence[:-1] + where + sentence[-1]] = None
        else:
            found[loc, _sentence(detail, model)] = None
    return list(found)


def _sentence(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, loc, ctx = detail["type"], detail["loc"], detail.get("ctx", {})
    if kind == "extra_forbidden" or (loc[-1:] == (_LABEL,) and kind in ("literal_error", "enum")):
        return _unknown_key(detail, model)
    clean, _ = _trace(model, loc)
    subject = _subject(clean) or "the file"
    if kind == "missing":
        return f"{subject} is missing."
    came = "" if _PRIVATE.intersection(clean) else f", not {_shown(detail['input'])}"
    if kind == FIELD_RULE:
        return f"{subject} must {ctx['must']}{came}{ctx['remedy'] if came else ''}."
    if kind in _WANTED:
        return f"{subject} must {_WANTED[kind]}{came}{_remedy(kind, detail['input'], clean)}."
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"{subject} must be {words} {ctx[key]:g}{came}."
    if kind in ("literal_error", "enum"):
        allowed = re.findall(r"'([^']*)'", ctx["expected"])
        near = suggest(detail["input"], allowed) if isinstance(detail["input"], str) else ""
        return f"{subject} must be {ctx['expected']}{came}" + (f"; {near}" if near.startswith("did") else ".")
    if kind == "too_short":
        return f"{subject} must hold at least {ctx['min_length']} entry, and holds {ctx['actual_length']}."
    return f"{subject}: {detail['msg'][:1].lower()}{detail['msg'][1:]}{came}."


def _unknown_key(detail: ErrorDetails, model: type[BaseModel]) -> str:
    loc = detail["loc"]
    if loc[-1] == _LABEL:
        key, outer = str(loc[-2]), _trace(model, loc[:-2])[0]
        known = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
    else:
        key = str(loc[-1])
        outer, models = _trace(model, loc[:-1])
        known = sorted({name for each in models for name in _fields(each)})
    where = f" in {_subject(outer)}" if outer else ""
    return f"unknown key {_shown(key)}{where}; {suggest(key, known).replace('it has:', 'known keys:', 1)}"


def _remedy(kind: str, value: Any, loc: Loc) -> str:
    if value is None:
        return "; give it a value or remove the key"
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "; put it in quotes"
    if kind == "list_type" and isinstance(value, str) and not _PRIVATE.intersection(loc):
        return f"; write [{_shown(value, quoted=False)}]"
    return ""


def _subject(loc: Loc) -> str:
    """`'limits.turns'`, `'tasks[0].from'`, `key 'x' in 'apps'`; "" for the whole file."""
    if loc[-1:] == (_LABEL,):
        outer = _subject(loc[:-2])
        return f"key {_shown(loc[-2])}" + (f" in {outer}" if outer else "")
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return repr(text.removeprefix(".")) if text else ""


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """Annotation by the name a manifest writes."""
    return {info.alias or name: info.annotation for name, info in model.model_fields.items()}


def _trace(model: type[BaseModel], loc: Loc) -> tuple[Loc, list[type[BaseModel]]]:
    """`loc` without the labels of unions, and the models that may stand there."""
    here: list[Any] = [model]
    clean: list[int | str] = []
    for part in loc:
        below = [kind for annotation in here for kind in _below(annotation, part)]
        if below or part == _LABEL or any(annotation is Any for annotation in here):
            clean.append(part)
            here = below or [Any]
    return tuple(clean), [kind for kind in here if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _below(annotation: Any, part: int | str) -> Iterable[Any]:
    """The types that `part` of a value of type `annotation` may have; none where it has no such part."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = _fields(annotation)
        return _members(fields[part]) if isinstance(part, str) and part in fields else []
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(part, str):
        return _members(arguments[1])
    if origin in (list, tuple) and isinstance(part, int):
        return _members(arguments[0])
    return []


def _members(annotation: Any) -> list[Any]:
    """A type's alternatives, without `Annotated` and aliases."""
    if hasattr(annotation, "__value__"):
        return [Any]
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [member for each in get_args(annotation) for member in _members(each)]
    return [annotation]


def _shown(value: Any, *, quoted: bool = True, max_chars: int = 80) -> str:
    """A value as people write it in YAML, at most 80 characters."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = value if isinstance(value, str) and not quoted else repr(value)
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
