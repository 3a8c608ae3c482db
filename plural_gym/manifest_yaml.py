"""YAML to JSON values with lines: the one module that touches ruamel.yaml.

It reads the event stream only: data are built here, so that no tag can make an object and no alias can grow
without bound. Scalars follow YAML 1.2's core schema (`no` and `2024-01-01` stay text).
"""

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from plural_gym.manifest_errors import shown

MAX_NODES = 200_000
MAX_DEPTH = 64

Loc = tuple[int | str, ...]


@dataclass(slots=True)
class Node:
    """A value with its lines. `children`: by key or index, the line of the key or entry and its node."""

    value: Any
    line: int
    size: int = 1
    height: int = 0
    children: dict[int | str, tuple[int, "Node"]] = field(default_factory=dict)


def node_of(value: Any, line: int) -> Node:
    """A value whose parts all stand in one line."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return Node(value, line, children={key: (line, node_of(part, line)) for key, part in parts})


def pruned(node: Node, locs: Collection[Loc]) -> Node:
    """The node without what stands at `locs`, which is left as it is."""
    below: dict[int | str, list[Loc]] = {}
    for loc in locs:
        below.setdefault(loc[0], []).append(loc[1:])
    kept = {
        key: (line, pruned(child, below[key]) if key in below else child)
        for key, (line, child) in node.children.items()
        if () not in below.get(key, ())
    }
    if isinstance(node.value, list):
        kept = dict(enumerate(kept.values()))
        return Node([child.value for _, child in kept.values()], node.line, children=kept)
    return Node({key: child.value for key, (_, child) in kept.items()}, node.line, children=kept)


class Stop(Exception):
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


class Composer:
    """Builds one document from events; `faults` gathers (line, message) of what does not stop it."""

    def __init__(self, text: str) -> None:
        self.faults: list[tuple[int | None, str]] = []
        self.events = _events(text)
        self._anchors: dict[str, Node | None] = {}
        self._count = 0

    def document(self) -> Node:
        next(self.events)
        if type(next(self.events)).__name__ == "StreamEndEvent":
            raise Stop(None, "is empty; write at least 'name:'.")
        node = self._node(next(self.events), 1)
        next(self.events)
        following = next(self.events)
        if type(following).__name__ != "StreamEndEvent":
            self._fault(following, "starts a second YAML document; keep one in each file.")
        if not isinstance(node.value, dict):
            raise Stop(node.line, f"must hold 'key: value' lines at its top, not {shown(node.value)}.")
        return node

    def _fault(self, event: Any, message: str) -> None:
        self.faults.append((event.start_mark.line + 1, message))

    def _node(self, event: Any, depth: int) -> Node:
        kind, line = type(event).__name__, event.start_mark.line + 1
        if kind == "AliasEvent":
            return self._alias(event, line, depth)
        self._spend(1, line)
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._fault(event, f"tag {shown(tag)} is not allowed; write plain values, and text in quotes.")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if kind == "ScalarEvent":
            node = Node(self._scalar(event), line)
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
            raise Stop(line, f"holds more than {MAX_NODES:,} values, aliases counted; move data to rows.")

    def _descend(self, depth: int, line: int) -> None:
        if depth > MAX_DEPTH:
            raise Stop(line, f"is nested more than {MAX_DEPTH} levels deep; flatten it.")

    def _alias(self, event: Any, line: int, depth: int) -> Node:
        if event.anchor not in self._anchors:
            self._fault(event, f"alias '*{event.anchor}' has no anchor '&{event.anchor}' above it; add one.")
            return Node(None, line)
        known = self._anchors[event.anchor]
        if known is None:
            self._fault(event, f"alias '*{event.anchor}' stands inside its own anchor; write the value out.")
            return Node(None, line)
        self._spend(known.size, line)
        self._descend(depth + known.height - 1, line)
        return Node(_copy(known.value), line, known.size, known.height, known.children)

    def _sequence(self, line: int, depth: int) -> Node:
        node = Node([], line, height=1)
        while type(event := next(self.events)).__name__ != "SequenceEndEvent":
            child = self._node(event, depth + 1)
            node.children[len(node.value)] = (child.line, child)
            node.value.append(child.value)
            node.size, node.height = node.size + child.size, max(node.height, child.height + 1)
        return node

    def _mapping(self, line: int, depth: int) -> Node:
        node = Node({}, line, height=1)
        seen: dict[str, int] = {}
        merged: list[tuple[Any, Node]] = []
        while type(event := next(self.events)).__name__ != "MappingEndEvent":
            key = self._node(event, depth + 1)
            child = self._node(next(self.events), depth + 1)
            node.size, node.height = node.size + key.size + child.size, max(node.height, child.height + 1)
            if not isinstance(key.value, str):
                self._fault(event, f"a key must be text, not {shown(key.value)}; put it in quotes.")
            elif key.value in seen:
                first = seen[key.value]
                self._fault(event, f"key {shown(key.value)} stands twice, first on line {first}; keep one.")
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

    def _merge(self, node: Node, event: Any, source: Node) -> None:
        """`<<: *anchor`, or a list of them: keys that `node` lacks, the earlier source first."""
        sources = [(source.value, source)]
        if isinstance(source.value, list):
            sources = [(value, source.children[index][1]) for index, value in enumerate(source.value)]
        for value, origin in sources:
            if not isinstance(value, dict):
                self._fault(event, f"'<<' merges mappings, not {shown(value)}; name an anchored mapping.")
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
                event, f"number {shown(text, quoted=False)} is too large; put it in quotes to mean text."
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
    """The events of `text`; what ruamel raises, and what it lets through from below, as Stop."""
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except YAMLError as error:
        raise _syntax(error, text) from None
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError, AssertionError) as error:
        raise Stop(None, f"is not valid YAML: {error}.") from None


def _syntax(error: Any, text: str) -> Stop:
    position = getattr(error, "position", None)
    if isinstance(position, int):
        where = text.count("\n", 0, position) + 1
        return Stop(where, f"holds the control character {text[position]!r}; remove it.")
    mark, opened = error.problem_mark or error.context_mark, error.context_mark
    said = error.problem or error.context or "unknown"
    hint = next((hint for part, hint in _HINTS.items() if part in said), "")
    since = f" ({error.context} from line {opened.line + 1})" if error.context and opened else ""
    line = min(mark.line + 1, max(1, len(text.splitlines()))) if mark else None
    return Stop(line, f"is not valid YAML: {said}{since}{'; ' + hint if hint else ''}.")


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(entry) for key, entry in value.items()}
    return [_copy(entry) for entry in value] if isinstance(value, list) else value
