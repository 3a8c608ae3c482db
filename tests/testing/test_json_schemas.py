"""What is the JSON Schema of an object, and what is not."""

import re
from typing import Any

import pytest

from plural_gym.testing.json_schemas import object_schema_flaw

GOOD: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": "object", "properties": {"word": {"type": "string", "minLength": 1, "pattern": "^a"}}},
    {"type": "object", "properties": {"any": True}, "additionalProperties": False, "required": ["any"]},
    {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": ["integer", "null"]}},
    },
    {"type": "object", "properties": {"x": {"anyOf": [{"const": 1}, {"enum": ["a"]}], "default": 1}}},
    {"type": "object", "properties": {"xs": {"type": "array", "items": {"type": "number", "minimum": 0.5}}}},
]
BAD: list[tuple[Any, str]] = [
    ([], "no mapping"),
    ({"type": "array"}, "its type is 'array'"),
    ({"type": "object", "default": float("nan")}, "no JSON"),
    ({"type": "object", "default": {1}}, "no JSON"),
    ({"type": "object", "properties": []}, r"properties is \[\]"),
    ({"type": "object", "properties": {"a": {"type": "text"}}}, "properties.a.type is 'text'"),
    ({"type": "object", "properties": {"a": "string"}}, "stands 'string'"),
    ({"type": "object", "required": "a"}, "required is 'a'"),
    ({"type": "object", "properties": {"a": {"enum": []}}}, r"enum is \[\]"),
    ({"type": "object", "properties": {"a": {"minimum": "1"}}}, "minimum is '1'"),
    ({"type": "object", "properties": {"a": {"maxLength": -1}}}, "maxLength is -1"),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "ref is '#/"),
    ({"type": "object", "properties": {"a": {"items": {"pattern": 1}}}}, "items.pattern is 1"),
    ({"type": "object", "anyOf": {}}, "anyOf is {}"),
]


@pytest.mark.parametrize("schema", GOOD)
def test_good_schemas(schema: dict[str, Any]) -> None:
    assert object_schema_flaw(schema) is None


@pytest.mark.parametrize(("schema", "flaw"), BAD)
def test_the_flaw_is_named_with_its_place(schema: Any, flaw: str) -> None:
    found = object_schema_flaw(schema)
    assert found is not None and re.search(flaw, found), found
