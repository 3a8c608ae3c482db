"""Whether a JSON Schema is one, as far as tools and action spaces need it."""

import json
from collections.abc import Mapping
from typing import Any

_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_ONE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPPINGS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


def object_schema_flaw(schema: Any) -> str | None:
    """What keeps `schema` from being the JSON Schema of an object; None where it is one."""
    if not isinstance(schema, Mapping):
        return f"it is {schema!r}, no mapping"
    plain = dict(schema)
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"it is no JSON ({error})"
    if plain.get("type") != "object":
        return f"its type is {plain.get('type')!r}, not 'object'"
    return _flaw(plain, plain, "")


def _flaw(schema: Any, root: Mapping[str, Any], place: str) -> str | None:
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return f"at {place or 'the top'} stands {schema!r}, no schema"
    return _keyword_flaw(schema, root, place) or _inner_flaw(schema, root, place)


def _keyword_flaw(schema: Mapping[str, Any], root: Mapping[str, Any], place: str) -> str | None:
    for key, value in schema.items():
        if key == "type":
            names = value if isinstance(value, list) else [value]
            good = bool(names) and all(name in _TYPES for name in names)
        elif key == "required":
            good = isinstance(value, list) and all(isinstance(name, str) for name in value)
        elif key == "enum":
            good = isinstance(value, list) and bool(value)
        elif key in _NUMBERS:
            good = isinstance(value, int | float) and not isinstance(value, bool)
        elif key in _COUNTS:
            good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        elif key in ("description", "pattern", "format"):
            good = isinstance(value, str)
        elif key == "$ref":
            good = isinstance(value, str) and (not value.startswith("#") or _resolves(value, root))
        else:
            good = True
        if not good:
            return f"{place}{key} is {value!r}"
    return None


def _resolves(reference: str, root: Mapping[str, Any]) -> bool:
    found: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            if not isinstance(found, dict):
                return False
            found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found is not None


def _inner_flaw(schema: Mapping[str, Any], root: Mapping[str, Any], place: str) -> str | None:
    for key in _ONE:
        if key in schema:
            found = _flaw(schema[key], root, f"{place}{key}.")
            if found is not None:
                return found
    for key in (*_LISTS, *_MAPPINGS):
        if key not in schema:
            continue
        inner = schema[key]
        if not isinstance(inner, list if key in _LISTS else dict):
            return f"{place}{key} is {inner!r}"
        pairs = enumerate(inner) if isinstance(inner, list) else inner.items()
        for name, one in pairs:
            found = _flaw(one, root, f"{place}{key}.{name}.")
            if found is not None:
                return found
    return None
