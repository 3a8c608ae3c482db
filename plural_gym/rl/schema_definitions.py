"""The definitions in a JSON Schema: what a `$ref` names, which reach themselves, how deep values must go."""

import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Any
"""A JSON Schema: a dict, or True (anything) or False (nothing)."""


class Definitions:
    """The definitions within one schema, by pointer as `$ref` writes it."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._recursive: dict[str, bool] = {}
        self._heights: dict[str, float] | None = None

    def find(self, pointer: str) -> Schema:
        """Return what a `$ref` within the same schema names; anything (True) where it leads elsewhere."""
        place = self.root
        for step in pointer.removeprefix("#").strip("/").split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, Mapping) and step in place:
                place = place[step]
            elif step:
                return True
        return place

    def recursive(self, pointer: str) -> bool:
        """Say whether a definition reaches itself."""
        if pointer not in self._recursive:
            seen: set[str] = set()
            ahead = list(_pointers(self.find(pointer)))
            while ahead:
                following = ahead.pop()
                if following not in seen:
                    seen.add(following)
                    ahead.extend(_pointers(self.find(following)))
            self._recursive[pointer] = pointer in seen
        return self._recursive[pointer]

    @functools.cached_property
    def recursive_count(self) -> int:
        """How many definitions reach themselves."""
        return sum(map(self.recursive, set(_pointers(self.root))))

    def height(self, schema: Schema) -> float:
        """Return how many recursive definitions a smallest value nests; inf where it never ends."""
        if self._heights is None:
            self._heights = dict.fromkeys(set(_pointers(self.root)), math.inf)
            before: dict[str, float] = {}
            while before != self._heights:
                before = dict(self._heights)
                for pointer in before:
                    self._heights[pointer] = self.recursive(pointer) + self._height(self.find(pointer))
        return self._height(schema)

    def _height(self, schema: Schema) -> float:
        if not isinstance(schema, Mapping):
            return 0
        assert self._heights is not None
        parts: list[float] = []
        if isinstance(schema.get("$ref"), str):
            parts.append(self._heights.get(schema["$ref"], 0))
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                parts.append(min(map(self._height, schema[key])))
        parts += map(self._height, schema.get("allOf", []))
        parts += map(self._height, schema.get("prefixItems", []))
        named = mapping(schema.get("properties", {}))
        parts += [self._height(named[name]) for name in schema.get("required", []) if name in named]
        if schema.get("minItems", 0) > 0:
            parts.append(self._height(schema.get("items", True)))
        if schema.get("minProperties", 0) > 0:
            parts.append(self._height(schema.get("additionalProperties", True)))
        return max(parts, default=0)


def _pointers(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            elif key not in ("const", "enum", "default", "examples"):
                yield from _pointers(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _pointers(value)


def mapping(schema: Any) -> Mapping[str, Any]:
    """Return a schema's keywords; none where it is True, or not what was expected."""
    return schema if isinstance(schema, Mapping) else {}
