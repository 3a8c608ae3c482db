"""From a JSON Schema to the Codec of its values.

Reads what pydantic writes (`$defs`, discriminated unions, recursion) and the rest that tools of other makers
use (`allOf`, lists of types, `nullable`, `patternProperties`); keywords that restrict beyond that are left to
the App, which checks every argument itself. The space may hold more than the schema does; what `sample` draws
from it fits the schema, save for what no schema tells (a Decimal's places, a date that must be past).
"""

import functools
import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plural_gym.errors import DefinitionError
from plural_gym.rl.container_codecs import (
    ListCodec,
    MapCodec,
    ObjectCodec,
    SubsetCodec,
    TupleCodec,
    UnionCodec,
)
from plural_gym.rl.schema_definitions import Definitions, Schema, mapping
from plural_gym.rl.schema_numbers import integer_codec, number_codec, numeric_text
from plural_gym.rl.spaces import TextSampler, Utf8Text
from plural_gym.rl.text_samplers import FORMATS, RegexText, generates
from plural_gym.rl.value_codecs import (
    MAX_CHARS,
    Codec,
    FiniteCodec,
    JsonCodec,
    JsonObjectCodec,
    TextCodec,
)

MAX_ITEMS = 256
"""Longest list or map of a schema that names no longest; `sample` stays far below."""
UNROLLED = 2
"""How many recursive definitions within each other have spaces; deeper ones are JSON text."""
FEW_DEFINITIONS = 3
"""With more recursive definitions than this only one has a space: every level multiplies them."""

_NOTES = frozenset({"title", "description", "default", "examples", "discriminator", "deprecated", "$defs"})
_DIGITS = RegexText("^[1-9][0-9]{0,5}$")
"""Keys of maps: a JSON Schema does not tell whether they are text or numbers, and these are both."""


def codec_for(schema: Mapping[str, Any] | bool) -> Codec:
    """Return the Codec of a schema's values; raises `DefinitionError` where no value can fit the schema."""
    return _Reader(schema).read(schema)


@dataclass(frozen=True, slots=True)
class SchemaJson:
    """JSON text of a value of one definition in a schema: the shallow ones, for where recursion is cut."""

    schema: str
    """The whole schema as JSON text."""
    pointer: str
    """Where the definition stands, as `$ref` writes it."""

    def __call__(self, rng: np.random.Generator, min_length: int, max_length: int) -> str:
        """Return one text."""
        with _SHALLOW:  # one codec serves every copy of the space, seeded anew for each text
            codec = _shallow_codec(self.schema, self.pointer)
            codec.space.seed(int(rng.integers(2**31)))
            return json.dumps(codec.decode(codec.space.sample()), separators=(",", ":"))


_SHALLOW = threading.RLock()


@functools.lru_cache(maxsize=256)
def _shallow_codec(schema: str, pointer: str) -> Codec:
    return _Reader(json.loads(schema), shallow=True).read({"$ref": pointer})


_HASHABLE = {"anyOf": [{"type": kind} for kind in ("string", "integer", "number", "boolean", "null")]}
"""What the items of a set of anything may be: arrays and objects cannot stand in one."""


class _Reader:
    """Reads the parts of one schema. `shallow`: leave out all recursion that can be left out."""

    def __init__(self, root: Schema, *, shallow: bool = False) -> None:
        self.root = root
        self.shallow = shallow
        self.unrolled = 0
        self.definitions = Definitions(root)

    def read(self, schema: Schema) -> Codec:
        if schema is False:
            raise DefinitionError("a JSON Schema of `false` lets no value through.")
        if not isinstance(schema, Mapping):
            return JsonCodec()
        if isinstance(schema.get("$ref"), str):
            return self.reference(schema["$ref"], _without(schema, "$ref"))
        if "const" in schema:
            return FiniteCodec([schema["const"]])
        if schema.get("enum"):
            return FiniteCodec(schema["enum"])
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                shared = _without(schema, key)
                return self.union([{**shared, **m} if isinstance(m, Mapping) else m for m in schema[key]])
        if schema.get("allOf"):
            return self.read(self.merged(schema))
        if schema.get("nullable") is True:
            return self.union([{"type": "null"}, _without(schema, "nullable")])
        if isinstance(schema.get("type"), list):
            return self.union([{**schema, "type": kind} for kind in schema["type"]])
        return self.typed(schema)

    @functools.cached_property
    def root_json(self) -> str:
        """The whole schema as JSON text, one object for all samplers that hold it."""
        return json.dumps(self.root)

    def typed(self, schema: Mapping[str, Any]) -> Codec:
        match schema.get("type") or _guessed_type(schema):
            case "null":
                return FiniteCodec([None])
            case "boolean":
                return FiniteCodec([False, True])
            case "integer":
                return integer_codec(schema)
            case "number":
                return number_codec(schema)
            case "string":
                return self.text(schema)
            case "array":
                return self.array(schema)
            case "object":
                return self.object(schema)
            case _:
                return JsonCodec()

    def reference(self, pointer: str, beside: dict[str, Any]) -> Codec:
        target = self.definitions.find(pointer)
        if beside and isinstance(target, Mapping):
            target = {**target, **beside}
        if not self.definitions.recursive(pointer):
            return self.read(target)
        if math.isinf(self.definitions.height({"$ref": pointer})):
            raise DefinitionError(
                f"{pointer.rpartition('/')[2]!r} contains itself without an end; make the inner one optional."
            )
        limit = UNROLLED if self.definitions.recursive_count <= FEW_DEFINITIONS else 1
        if self.unrolled >= limit and not self.shallow:
            return JsonCodec(SchemaJson(self.root_json, pointer))
        self.unrolled += 1
        codec = self.read(target)
        self.unrolled -= 1
        return codec

    def union(self, schemas: Sequence[Schema]) -> Codec:
        schemas = [schema for schema in schemas if schema is not False]
        if self.shallow:
            least = min(map(self.definitions.height, schemas), default=0)
            schemas = [schema for schema in schemas if self.definitions.height(schema) == least]
        schemas = sorted(schemas, key=lambda schema: not _is_null(schema))
        numbers = [s for s in schemas if isinstance(s, Mapping) and s.get("type") in ("number", "integer")]
        members = [
            numeric_text(numbers[0])
            if numbers and _without(schema) == {"type": "string"}
            else self.read(schema)
            for schema in schemas
        ]
        return members[0] if len(members) == 1 else UnionCodec(members)

    def merged(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        whole = _without(schema, "allOf")
        for part in schema["allOf"]:
            while isinstance(part, Mapping) and isinstance(part.get("$ref"), str):
                part = {**mapping(self.definitions.find(part["$ref"])), **_without(part, "$ref")}
            part = mapping(part)
            if part.get("allOf"):
                part = self.merged(part)
            properties = {**whole.get("properties", {}), **part.get("properties", {})}
            required = [*whole.get("required", []), *part.get("required", [])]
            whole = {**whole, **part}
            if properties:
                whole.update(properties=properties, required=required)
        return whole

    def text(self, schema: Mapping[str, Any]) -> Codec:
        low = int(schema.get("minLength", 0))
        high = int(schema.get("maxLength", max(MAX_CHARS, low)))
        if low > high:
            raise DefinitionError(f"no text has minLength {low} and maxLength {high}.")
        pattern = schema.get("pattern")
        if pattern is not None:
            known = generates(pattern, low, high)
            made = RegexText(pattern) if known else None
            return TextCodec(
                Utf8Text(high, min_length=low, pattern=pattern if known else None, generate=made)
            )
        generate: TextSampler | None = None
        if schema.get("contentMediaType") == "application/json":
            root = {"$defs": mapping(self.root).get("$defs", {}), "it": schema.get("contentSchema", {})}
            generate = SchemaJson(json.dumps(root), "#/it")
        elif schema.get("format") in FORMATS and generates(f"^{FORMATS[schema['format']]}$", low, high):
            generate = RegexText(f"^{FORMATS[schema['format']]}$")
        return TextCodec(Utf8Text(high, min_length=low, generate=generate))

    def array(self, schema: Mapping[str, Any]) -> Codec:
        low = int(schema.get("minItems", 0))
        prefix = schema.get("prefixItems")
        if prefix:
            return TupleCodec([self.read(item) for item in prefix])
        high = int(schema.get("maxItems", max(MAX_ITEMS, low)))
        items = schema.get("items", True)
        if low > high:
            raise DefinitionError(f"no list has minItems {low} and maxItems {high}.")
        if self.shallow and self.definitions.height(items) > 0:
            high = low
        if high == 0 or items is False:
            return FiniteCodec([[]])
        distinct = schema.get("uniqueItems") is True
        if low == high <= 16 and not distinct:
            return TupleCodec([self.read(items) for _ in range(low)])
        if distinct and (items is True or items == {}):
            items = _HASHABLE
        item = self.read(items)
        if distinct and isinstance(item, FiniteCodec):
            if low == 0 and high >= len(item.values):
                return SubsetCodec(item)
            high = min(high, len(item.values))
        return ListCodec(item, min(low, high), high, distinct=distinct)

    def object(self, schema: Mapping[str, Any]) -> Codec:
        named = mapping(schema.get("properties", {}))
        others = self.others(schema)
        if not named:
            if others is None:
                return FiniteCodec([{}])
            return self.map(schema, *others)
        required = [name for name in schema.get("required", []) if name in named]
        if self.shallow:
            named = {
                name: s for name, s in named.items() if name in required or self.definitions.height(s) == 0
            }
        extras = JsonObjectCodec() if others is not None and "additionalProperties" in schema else None
        if not named and extras is None:
            return FiniteCodec([{}])
        return ObjectCodec({name: self.read(s) for name, s in named.items()}, required, extras)

    def others(self, schema: Mapping[str, Any]) -> tuple[Codec, Schema] | None:
        """Return the codec of keys and the schema of values of properties without a name, or None."""
        patterns = mapping(schema.get("patternProperties", {}))
        for pattern, value in patterns.items():
            return self.text({"pattern": pattern, "minLength": 0, "maxLength": 128}), value
        value = schema.get("additionalProperties", "properties" not in schema)
        if value is False:
            return None
        if "propertyNames" in schema:
            return self.read({"type": "string", **mapping(schema["propertyNames"])}), value
        return TextCodec(Utf8Text(128, generate=_DIGITS)), value

    def map(self, schema: Mapping[str, Any], key: Codec, value: Schema) -> Codec:
        low = int(schema.get("minProperties", 0))
        high = int(schema.get("maxProperties", max(MAX_ITEMS, low)))
        if isinstance(key, FiniteCodec):
            high = min(high, len(key.values))
        if self.shallow and self.definitions.height(value) > 0:
            high = low
        if low > high:
            raise DefinitionError(f"no object has {low} properties and at most {high}.")
        if high == 0:
            return FiniteCodec([{}])
        return MapCodec(key, self.read(value), low, high)


def _guessed_type(schema: Mapping[str, Any]) -> str | None:
    for kind, keys in (
        ("object", ("properties", "additionalProperties", "patternProperties", "required")),
        ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems")),
        ("string", ("pattern", "minLength", "maxLength", "format")),
        ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
    ):
        if any(key in schema for key in keys):
            return kind
    return None


def _without(schema: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in keys and key not in _NOTES}


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Mapping) and (schema.get("type") == "null" or schema.get("const", 0) is None)
