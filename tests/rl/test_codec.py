"""From JSON Schema to spaces and back, and every form in which an Agent may send an action."""

import copy
import datetime
import decimal
import enum
import gc
import ipaddress
import itertools
import json
import pickle
import re
import timeit
import uuid
import weakref
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional

import gymnasium as gym
import numpy as np
import pydantic
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from typing_extensions import TypedDict

from plural_gym import App, Environment, action
from plural_gym.errors import ActionRejected, DefinitionError
from plural_gym.rl.codec import ActionCodec, Codec, codec_for, codec_of, observation_space
from plural_gym.rl.schema_codec import MAX_ITEMS, UNROLLED
from plural_gym.rl.schema_numbers import MAX_INTEGER
from plural_gym.rl.spaces import BoundedSequence, Choice, Utf8Text
from plural_gym.rl.text_samplers import FORMATS, CannotGenerate, RegexText, generates
from plural_gym.rl.value_codecs import MAX_CHARS


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Point(BaseModel):
    x: Annotated[int, Field(ge=0, le=9)]
    y: float = 0.5


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str | None = None


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []
    left: Optional["Tree"] = None


class Leaf(BaseModel):
    leaf: Annotated[str, Field(pattern="^[a-z]{2}$")]


class Sum(BaseModel):
    terms: Annotated[list["Sum | Product | Leaf"], Field(min_length=1)]


class Product(BaseModel):
    left: "Sum | Product | Leaf"
    right: "Sum | Product | Leaf"
    names: dict[str, "Product"] = {}


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Empty(BaseModel):
    pass


class Shape(TypedDict, total=False):
    width: int
    star: bool


class Pair(NamedTuple):
    one: int
    two: str = "b"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    a: bool
    b: int
    c: float
    d: str


TYPES: list[Any] = [
    Literal["a", 1, True, None, 1.5],
    Colour,
    bool,
    None,
    int,
    Annotated[int, Field(ge=3, le=7)],
    Annotated[int, Field(gt=-5, lt=5, multiple_of=3)],
    Annotated[int, Field(ge=0, multiple_of=7)],
    Annotated[int, Field(ge=10**9)],
    Annotated[int, Field(le=-(2**60))],
    Annotated[int, Field(gt=2**53 - 2, multiple_of=3)],
    Annotated[int, Field(lt=2 - 2**53, multiple_of=3)],
    Annotated[int, Field(ge=10**30)],
    Annotated[int, Field(ge=-(2**63), le=2**63 - 1)],
    float,
    Annotated[float, Field(gt=0, lt=1)],
    Annotated[float, Field(ge=2)],
    Annotated[float, Field(le=-2)],
    Annotated[float, Field(ge=1, le=1)],
    Annotated[float, Field(ge=-1e308, le=1e308)],
    Annotated[float, Field(ge=0, le=1, multiple_of=0.1)],
    Annotated[float, Field(multiple_of=0.25)],
    Annotated[float, Field(multiple_of=0.1)],
    Annotated[float, Field(ge=1e14, multiple_of=0.1)],
    Annotated[float, Field(le=-1e14, multiple_of=0.5)],
    str,
    Annotated[str, Field(min_length=3, max_length=3)],
    Annotated[str, Field(min_length=5000)],
    Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{1,3}$")],
    Annotated[str, Field(pattern="abc", min_length=6)],
    Annotated[str, Field(pattern=r"^\w+[^\w]?(x|yy)*.$", max_length=12)],
    Annotated[str, Field(pattern="^[a-z]+$", min_length=40, max_length=44)],
    Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=2)],
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    pydantic.UUID1,
    pydantic.UUID4,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    ipaddress.IPv4Interface,
    pydantic.IPvAnyAddress,
    pydantic.HttpUrl,
    pydantic.PostgresDsn,
    pydantic.Base64Bytes,
    pydantic.SecretStr,
    pydantic.Json[list[int]],
    bytes,
    Path,
    re.Pattern,
    decimal.Decimal,
    Annotated[decimal.Decimal, Field(ge=0)],
    Annotated[decimal.Decimal, Field(gt=0, lt=1)],
    Annotated[decimal.Decimal, Field(lt=-5)],
    int | None,
    int | str | None,
    float | int,
    bool | int,
    datetime.date | Literal["today"],
    list[int],
    Annotated[list[str], Field(min_length=1, max_length=2)],
    Annotated[list[bool], Field(min_length=2, max_length=2)],
    Annotated[list[int], Field(max_length=0)],
    Annotated[list[int], Field(min_length=20, max_length=20)],
    list[Point],
    tuple[int, str],
    tuple[int, ...],
    tuple[()],
    Pair,
    set[Literal["a", "b", "c"]],
    frozenset[bool],
    set[str],
    Annotated[set[int], Field(min_length=4)],
    Annotated[set[Literal[1, 2, 3]], Field(min_length=2)],
    Point,
    Shape,
    Open,
    Empty,
    Strict,
    list[Empty],
    Annotated[Cat | Dog, Field(discriminator="kind")],
    Tree,
    Sum,
    Product,
    list[Tree],
    dict[str, int],
    dict[int, float],
    dict[Literal["a", "b"], int],
    Annotated[dict[str, bool], Field(min_length=3, max_length=4)],
    dict[Annotated[str, Field(pattern="^k[0-9]$")], int],
    dict[str, Point | None],
    dict,
    list,
    Any,
    pydantic.JsonValue,
]


def fields_of(hint: Any) -> type[BaseModel]:
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), value=(hint, ...))


def check_samples(model: type[BaseModel], samples: int, seed: int = 0) -> ActionCodec:
    """Assert the whole circle: sample, decode, JSON, pydantic, encode, membership, decode."""
    codec = ActionCodec({"act": model.model_json_schema()})
    codec.space.seed(seed)
    for _ in range(samples):
        element = codec.space.sample()
        assert element in codec.space
        name, arguments = codec.decode(element)
        assert name == "act"
        again = json.loads(json.dumps(arguments, allow_nan=False))
        assert again == arguments
        model.model_validate_json(json.dumps(arguments))
        encoded = codec.encode("act", again)
        assert encoded in codec.space
        assert codec.parse(encoded) == ("act", arguments)
    samples_json = json.loads(json.dumps(codec.space.to_jsonable([element])))
    assert codec.decode(codec.space.from_jsonable(samples_json)[0]) == ("act", arguments)
    return codec


@pytest.mark.parametrize("hint", TYPES, ids=lambda hint: str(hint)[:60])
def test_what_is_sampled_is_what_pydantic_accepts(hint: Any) -> None:
    check_samples(fields_of(hint), 25)


@pytest.mark.parametrize("hint", TYPES, ids=lambda hint: str(hint)[:60])
def test_spaces_repeat_under_a_seed_and_survive_copies(hint: Any) -> None:
    codec = ActionCodec({"act": fields_of(hint).model_json_schema()})
    pickled = pickle.loads(pickle.dumps(codec.space))
    copied = copy.deepcopy(codec.space)
    assert pickled == codec.space == copied
    for space in (codec.space, pickled, copied):
        space.seed(11)
    for _ in range(5):
        decoded = [codec.decode(space.sample()) for space in (codec.space, pickled, copied)]
        assert decoded[0] == decoded[1] == decoded[2]


def bounded_ints() -> st.SearchStrategy[Any]:
    return st.tuples(st.integers(-50, 50), st.integers(0, 2000)).map(
        lambda pair: Annotated[int, Field(ge=pair[0], le=pair[0] + pair[1])]
    )


def bounded_texts() -> st.SearchStrategy[Any]:
    return st.tuples(st.integers(0, 9), st.integers(0, 30)).map(
        lambda pair: Annotated[str, Field(min_length=pair[0], max_length=pair[0] + pair[1])]
    )


scalars = st.one_of(
    st.sampled_from([int, float, bool, str, datetime.date, uuid.UUID, Colour, None, Any]),
    st.lists(
        st.one_of(st.text(max_size=4), st.integers(-9, 9), st.booleans()),
        min_size=1,
        max_size=4,
        unique_by=repr,
    ).map(lambda values: Literal[tuple(values)]),
    bounded_ints(),
    bounded_texts(),
    st.floats(-1e6, 1e6).map(lambda low: Annotated[float, Field(gt=low, lt=low + 10)]),
    st.integers(1, 9).map(lambda step: Annotated[int, Field(multiple_of=step, ge=-100)]),
    st.sampled_from([r"^\d{3}$", "^(a|bc)+$", "[A-F]{2}", r"^x?[^a-z\s]{1,4}$"]).map(
        lambda pattern: Annotated[str, Field(pattern=pattern)]
    ),
)
_names = itertools.count()


def models(hints: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    name = st.sampled_from(["word", "at", "self_", "count", "items", "class_", "naïve", "copy_"])
    field = st.tuples(hints, st.booleans())

    def build(fields: dict[str, tuple[Any, bool]]) -> Any:
        given: dict[str, Any] = {
            key: (hint, ... if needed else None) for key, (hint, needed) in fields.items()
        }
        return create_model(f"Made{next(_names)}", __config__=ConfigDict(extra="forbid"), **given)

    return st.dictionaries(name, field, max_size=4).map(build)


def nested(hints: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        hints.map(lambda hint: list[hint]),
        hints.map(lambda hint: Optional[hint]),  # noqa: UP045
        hints.map(lambda hint: dict[str, hint]),
        st.tuples(hints, hints).map(lambda pair: tuple[pair[0], pair[1]]),
        st.tuples(hints, st.integers(0, 3), st.integers(0, 3)).map(
            lambda made: Annotated[list[made[0]], Field(min_length=made[1], max_length=made[1] + made[2])]
        ),
        models(hints),
    )


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(model=models(st.recursive(scalars, nested, max_leaves=5)), seed=st.integers(0, 2**31 - 1))
def test_any_arguments_go_round_from_sample_to_pydantic_and_back(model: type[BaseModel], seed: int) -> None:
    check_samples(model, 4, seed)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(st.text(max_size=8), inner)
    ),
    max_leaves=8,
)


class Everything(BaseModel):
    word: Annotated[str, Field(min_length=1)]
    at: Point
    tree: Tree | None = None
    tags: set[Literal["a", "b"]] = set()
    numbers: list[float] = []
    other: dict[str, Any] = {}


EVERYTHING = ActionCodec({"go": Everything.model_json_schema(), "stop": {"type": "object", "properties": {}}})


class Hostile:
    """Breaks whatever is done with it."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __iter__(self) -> Any:
        raise RuntimeError("no iteration")


@settings(max_examples=300, deadline=None)
@given(action=st.one_of(json_values, json_values.map(json.dumps), st.tuples(st.integers(-3, 3), json_values)))
def test_no_input_raises_anything_but_a_rejection(action: Any) -> None:
    for read in (EVERYTHING.parse, EVERYTHING.decode):
        try:
            name, arguments = read(action)
        except ActionRejected as rejected:
            assert str(rejected)
        else:
            assert name in EVERYTHING.names
            assert isinstance(arguments, dict)


@settings(max_examples=150, deadline=None)
@given(wrong=json_values, data=st.data())
def test_a_sample_with_one_part_replaced_is_decoded_or_rejected(wrong: Any, data: st.DataObject) -> None:
    EVERYTHING.space.seed(data.draw(st.integers(0, 99)))
    element = EVERYTHING.space.sample(mask=np.array([1, 0], np.int8))
    key = data.draw(st.sampled_from(sorted(element[1])))
    element[1][key] = data.draw(st.sampled_from([wrong, (1, wrong), np.array([wrong], object)]))
    try:
        assert EVERYTHING.decode(element)[0] == "go"
    except ActionRejected as rejected:
        assert str(rejected).startswith("go: ")


@settings(max_examples=100, deadline=None)
@given(value=json_values)
def test_any_json_value_that_is_encoded_comes_back(value: Any) -> None:
    codec = codec_for({})
    try:
        element = codec.encode(value)
    except ActionRejected:
        return
    assert element in codec.space
    assert json.dumps(codec.decode(element)) == json.dumps(json.loads(json.dumps(value, sort_keys=True)))


def schema_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


GAME = ActionCodec(
    {
        "guess": schema_of(word={"type": "string", "maxLength": 9}),
        "hint": {"type": "object", "properties": {}},
        "move": schema_of(at={"enum": ["left", "right"]}),
        "wait": {"type": "object", "properties": {"turns": {"type": "integer", "default": 1}}},
    }
)


@pytest.mark.parametrize(
    ("action", "call"),
    [
        ((np.int64(0), {"word": "crane"}), ("guess", {"word": "crane"})),
        ((0, {"word": "日本"}), ("guess", {"word": "日本"})),
        ([0, {"word": "crane"}], ("guess", {"word": "crane"})),
        ((np.int64(1), np.int64(0)), ("hint", {})),
        ((2, {"at": np.int64(1)}), ("move", {"at": "right"})),
        ((3, {"turns": (np.int64(0), np.int64(0))}), ("wait", {})),
        ((3, {"turns": (np.int64(1), np.array([4]))}), ("wait", {"turns": 4})),
        ({"action": "guess", "arguments": {"word": "crane"}}, ("guess", {"word": "crane"})),
        ({"action": "guess", "arguments": {"anything": 1}}, ("guess", {"anything": 1})),
        ({"name": "guess", "arguments": '{"word": "é"}'}, ("guess", {"word": "é"})),
        ({"name": "hint"}, ("hint", {})),
        ({"name": "hint", "arguments": None}, ("hint", {})),
        ({"name": "hint", "arguments": " "}, ("hint", {})),
        (
            {"id": "1", "type": "function", "function": {"name": "guess", "arguments": '{"word":"a"}'}},
            ("guess", {"word": "a"}),
        ),
        ('{"action": "guess", "arguments": {"word": "crane"}}', ("guess", {"word": "crane"})),
        (np.str_(' {"name": "hint"}\n'), ("hint", {})),
        ("hint", ("hint", {})),
        (np.str_("hint"), ("hint", {})),
        ("wait", ("wait", {})),
        (1, ("hint", {})),
        (np.int64(1), ("hint", {})),
        (np.int8(3), ("wait", {})),
    ],
)
def test_every_form_of_an_action_reads_alike(action: Any, call: Any) -> None:
    assert GAME.parse(action) == call


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ((9, 0), r"there is no action number 9; they are 0 to 3: guess, hint, move, wait\."),
        ((-1, 0), "there is no action number -1"),
        (7, "there is no action number 7"),
        (-1, "there is no action number -1"),
        ((0, {"word": 3}), r"guess: word: expected text, got 3\."),
        (
            (0, {"word": "far too long"}),
            "guess: word: expected text of 0 to 9 characters, got 'far too long'",
        ),
        ((0, {"word": "\ud800"}), "guess: word: expected text of"),
        ((0, {"wrod": "a"}), r"guess: word: is missing\."),
        ((0, {"word": "a", "more": 1}), "guess: expected a dict of word, got"),
        ((0, "crane"), "guess: expected a dict of word, got 'crane'"),
        ((2, {"at": 2}), "move: at: expected an index below 2, got 2"),
        ((2, {"at": "left"}), "move: at: expected a whole number, got 'left'"),
        ((3, {"turns": (5, 0)}), "wait: turns: expected an index below 2, got 5"),
        ((3, {"turns": 5}), "wait: turns: expected a tuple of 2, got 5"),
        (("0", 0), r"expected \(index, arguments\), got \('0', 0\)\. Send an element"),
        ((1,), "expected .index, arguments., got"),
        (None, "None is not an action. Send an element of the action space"),
        (True, "True is not an action"),
        (1.0, "1.0 is not an action"),
        (Hostile(), "Hostile( instance at 0x.*|) is not an action"),
        (np.array([1, 2]), "is not an action"),
        ("guess", r"guess needs arguments: word\. Send \{'action': 'guess', 'arguments': \{\.\.\.\}\}"),
        (0, "guess needs arguments: word"),
        ("hnit", r"'hnit' is neither an action nor JSON text of one; did you mean 'hint'\?"),
        ("[1, 2]", "neither an action nor JSON text"),
        ('{"action": ', 'an action is not JSON .*: \'{"action":'),
        ("{" * 100_000, "an action is not JSON"),
        ('{"a":' * 100_000, "an action is not JSON"),
        ({}, "names no action. Send an element"),
        ({"action": 3}, "names no action"),
        ({"action": "gues", "arguments": {}}, r"there is no action 'gues'; did you mean 'guess'\?"),
        ({"action": "guess", "word": "crane"}, "guess: 'word' stands beside 'arguments'; put it inside"),
        ({"action": "guess", "arguments": 3}, "'arguments' is an object of name and value, not 3"),
        ({"action": "guess", "arguments": {3: 3}}, "the names in 'arguments' are text"),
        ({"action": "guess", "arguments": "{"}, "guess: 'arguments' is not JSON"),
        ({"action": "guess", "arguments": "[]"}, r"guess: 'arguments' is a JSON object, not \[\]\."),
    ],
)
def test_what_cannot_be_read_is_rejected_with_what_would_do(action: Any, message: str) -> None:
    with pytest.raises(ActionRejected, match=message):
        GAME.parse(action)


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"enum": ["a", 1]}, "b", r'expected one of "a", 1, got .b.\.'),
        ({"enum": list(range(20))}, float("nan"), r"11, \.\.\., got nan"),
        ({"type": "boolean"}, 1, "expected one of false, true, got 1"),
        ({"type": "integer", "minimum": 0, "maximum": 9}, 12, "a whole number from 0 to 9, got 12"),
        ({"type": "integer", "multipleOf": 3}, 4, "a multiple of 3, got 4"),
        ({"type": "integer"}, True, "expected a whole number, got True"),
        ({"type": "integer"}, 2**64, "expected a whole number from -9007199254740992"),
        ({"type": "number"}, "1", "expected a number, got '1'"),
        ({"type": "number", "maximum": 2}, 3, "a finite number from -inf to 2, got 3"),
        ({"type": "number"}, float("inf"), "a finite number"),
        ({"type": "number", "multipleOf": 0.5}, 0.3, "a multiple of 0.5, got 0.3"),
        ({"type": "number", "multipleOf": 0.5}, None, "expected a number, got None"),
        ({"type": "string", "pattern": "^a$"}, "b", r"characters with the pattern \^a\$, got 'b'"),
        ({}, float("nan"), "expected a JSON value, got nan"),
        ({}, {1, 2}, "expected a JSON value"),
        ({"type": "array", "items": {"type": "integer"}}, 3, "expected a list, got 3"),
        ({"type": "array", "items": {"type": "integer"}}, [1, "a"], r"1: expected a whole number, got 'a'"),
        ({"type": "array", "maxItems": 1}, [1, 2], "expected 0 to 1 items"),
        ({"type": "array", "prefixItems": [{}, {}]}, [1], "expected a list of 2"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "b"}, "a: expected a whole"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, 3, "expected an object, got 3"),
        (schema_of(word={"type": "string"}), [], r"expected an object, got \[\]"),
        (schema_of(word={"type": "string"}), {}, r"word: is missing\."),
        (schema_of(word={}), {"wrod": 1}, "has no argument 'wrod'; did you mean 'word'"),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "a",
            "one of null, got 'a'.; or expected a whole",
        ),
    ],
)
def test_values_without_an_element_are_rejected(schema: Any, value: Any, message: str) -> None:
    with pytest.raises(ActionRejected, match=message):
        codec_for(schema).encode(value)


@pytest.mark.parametrize(
    ("schema", "element", "message"),
    [
        ({"type": "number"}, np.array([np.nan]), "a finite number"),
        ({"type": "number"}, True, "expected an array of one number, got True"),
        ({"type": "number"}, np.zeros(2), "expected an array of one number"),
        ({"type": "integer"}, np.array([0.5]), "expected a whole number"),
        ({}, "{", "expected JSON text, got '{'"),
        ({}, "NaN", "expected JSON text"),
        ({}, "[" * 4000, "expected JSON text"),
        ({"type": "array"}, 3, "expected a tuple, got 3"),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
            ("a", "a"),
            "items that differ",
        ),
        ({"type": "object"}, (("1", "1"), ("1", "2")), "keys that differ"),
        ({"type": "array", "uniqueItems": True, "items": {"enum": [1, 2]}}, [2, 0], "2 zeros and ones"),
        (Open.model_json_schema(), {"a": np.array([1]), "*": "[]"}, r"\*: expected JSON text of an object"),
        (Open.model_json_schema(), {"a": np.array([1]), "b": "{}"}, r"\*: is missing"),
    ],
)
def test_elements_outside_the_space_are_rejected(schema: Any, element: Any, message: str) -> None:
    with pytest.raises(ActionRejected, match=message):
        codec_for(schema).decode(element)


def test_encode_names_the_action_that_rejects() -> None:
    with pytest.raises(ActionRejected, match="guess: word: expected text, got 3"):
        GAME.encode("guess", {"word": 3})
    with pytest.raises(ActionRejected, match="there is no action 'leap'; it has: guess, hint, move, wait"):
        GAME.encode("leap", {})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (False, "`false` lets no value through"),
        ({"type": "integer", "minimum": 2, "maximum": 1}, "no whole number lies from 2 to 1"),
        ({"type": "integer", "minimum": 1, "maximum": 2, "multipleOf": 7}, "with multipleOf 7"),
        ({"type": "number", "minimum": 2, "maximum": 1}, "no number lies from 2 to 1"),
        ({"type": "number", "minimum": 0.1, "maximum": 0.2, "multipleOf": 0.7}, "no multiple of 0.7 lies"),
        ({"type": "string", "minLength": 2, "maxLength": 1}, "no text has minLength 2 and maxLength 1"),
        ({"type": "array", "minItems": 2, "maxItems": 1}, "no list has minItems 2 and maxItems 1"),
        (
            {"type": "object", "minProperties": 2, "maxProperties": 1},
            "no object has 2 properties and at most 1",
        ),
        (
            {"$ref": "#/$defs/Node", "$defs": {"Node": schema_of(next={"$ref": "#/$defs/Node"})}},
            "'Node' contains itself without an end; make the inner one optional",
        ),
    ],
)
def test_a_schema_that_no_value_fits_is_an_error_when_it_is_read(schema: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        codec_for(schema)
    with pytest.raises(DefinitionError, match="action 'act': "):
        ActionCodec(
            {"act": schema_of(value=schema)} if schema is False or "$defs" not in schema else {"act": schema}
        )


def test_an_environment_without_actions_has_no_action_space() -> None:
    with pytest.raises(DefinitionError, match="at least one action"):
        ActionCodec({})


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (Literal["a", "b"], spaces.Discrete(2)),
        (bool, spaces.Discrete(2)),
        (Annotated[int, Field(ge=3, le=7)], spaces.Discrete(5, start=3)),
        (int, spaces.Box(-MAX_INTEGER, MAX_INTEGER, (1,), np.int64)),
        (float, spaces.Box(-np.inf, np.inf, (1,), np.float64)),
        (str, Utf8Text(MAX_CHARS)),
        (int | None, Choice((spaces.Discrete(1), spaces.Box(-MAX_INTEGER, MAX_INTEGER, (1,), np.int64)))),
        (list[bool], BoundedSequence(spaces.Discrete(2), 0, MAX_ITEMS)),
        (tuple[bool, str], spaces.Tuple((spaces.Discrete(2), Utf8Text(MAX_CHARS)))),
        (set[Literal["a", "b", "c"]], spaces.MultiBinary(3)),
    ],
)
def test_each_hint_has_the_space_that_suits_it(hint: Any, kind: spaces.Space[Any]) -> None:
    assert codec_for(TypeAdapter(hint).json_schema()).space == kind


def test_absent_and_null_are_kept_apart() -> None:
    codec = codec_for({"type": "object", "properties": {"a": {"type": ["integer", "null"]}}})
    absent, null, one = (codec.encode(value) for value in ({}, {"a": None}, {"a": 1}))
    assert [codec.decode(element) for element in (absent, null, one)] == [{}, {"a": None}, {"a": 1}]
    assert absent == {"a": (0, 0)}
    assert null == {"a": (1, (0, 0))}


def test_an_action_without_arguments_is_a_single_choice() -> None:
    for schema in (
        {"type": "object"},
        {"type": "object", "properties": {}, "additionalProperties": False},
        {},
    ):
        codec = ActionCodec({"hint": schema})
        assert codec.space.spaces == (spaces.Discrete(1),)
        assert codec.parse(codec.space.sample()) == ("hint", {})
        assert codec.parse(codec.encode("hint", {})) == ("hint", {})


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (list[float] | list[int], [1]),
        (list[int] | list[bool], [True]),
        (dict[str, float] | dict[str, int], {"a": 1}),
        (float | int, 3),
        (int | float, 3.0),
    ],
)
def test_a_union_takes_the_member_that_gives_the_very_value_back(hint: Any, value: Any) -> None:
    codec = codec_for(TypeAdapter(hint).json_schema())
    assert repr(codec.decode(codec.encode(value))) == repr(value)


def test_a_multiple_is_the_number_that_people_write() -> None:
    codec = codec_for({"type": "number", "multipleOf": 0.1, "minimum": 0, "maximum": 0.3})
    assert [codec.decode(codec.encode(value)) for value in (0, 0.1, 0.3)] == [0.0, 0.1, 0.3]
    assert codec.space == spaces.Discrete(4)


def test_one_codec_serves_an_environment_and_goes_with_it() -> None:
    class Idle(App):
        """Does nothing."""

        @action
        def rest(self) -> str:
            """Do nothing."""
            return "…"

    world = Environment(name="idle", apps={"idle": Idle})
    codec = codec_of(world)
    assert codec_of(world) is codec and codec.names == ("rest", "finish")
    assert codec_of(world.model_copy(update={"finish": "never"})).names == ("rest",)
    gone = weakref.ref(codec)
    del world, codec
    gc.collect()
    assert gone() is None


def test_decoded_values_are_never_shared() -> None:
    codec = codec_for({"enum": [{"a": [1]}, []]})
    codec.decode(0)["a"].append(2)
    assert codec.decode(0) == {"a": [1]}
    assert codec.decode(1) is not codec.decode(1)


def test_recursion_is_unrolled_and_then_written_as_json_of_any_depth() -> None:
    tree: dict[str, Any] = {"value": 0}
    for value in range(1, 12):
        tree = {"value": value, "children": [tree], "left": None}
    codec = codec_for(Tree.model_json_schema())
    element = codec.encode(tree)
    assert element in codec.space
    assert codec.decode(element) == tree
    assert UNROLLED == 2
    assert str(codec.space).count("Utf8Text") == 4


def test_many_definitions_that_call_each_other_stay_small() -> None:
    kinds = [{"$ref": f"#/$defs/K{n}"} for n in range(15)]
    definitions = {
        f"K{n}": schema_of(kind={"const": n}, left={"anyOf": kinds}, right={"anyOf": kinds})
        for n in range(14)
    }
    definitions["K14"] = schema_of(kind={"const": 14})
    codec = codec_for({"$defs": definitions, "anyOf": kinds})
    codec.space.seed(0)
    for _ in range(5):
        value = codec.decode(codec.space.sample())
        assert codec.decode(codec.encode(value)) == value


FOREIGN: list[tuple[Any, list[Any]]] = [
    ({"type": ["string", "null"]}, ["a", None]),
    ({"type": "string", "nullable": True}, ["a", None]),
    ({"allOf": [schema_of(a={"type": "integer"}), {"$ref": "#/$defs/B"}], "$defs": {"B": schema_of(b={})}},
     [{"a": 1, "b": [None]}]),
    ({"allOf": [{"allOf": [schema_of(a={"type": "integer"})]}]}, [{"a": 1}]),
    ({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "integer"}}}, [3]),
    ({"$ref": "https://elsewhere.example/schema"}, [3, "a", None]),
    ({"$ref": "#/$defs/A", "maximum": 3, "$defs": {"A": {"type": "integer", "minimum": 1}}}, [1, 3]),
    ({"properties": {"a": {"type": "integer"}}}, [{}, {"a": 1}]),
    ({"items": {"type": "integer"}}, [[1, 2]]),
    ({"minLength": 2}, ["ab"]),
    ({"minimum": 2}, [2, 3.5]),
    ({"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 2}, [1, 2]),
    ({"type": "integer", "multipleOf": 1.5, "minimum": 0}, [3, 6]),
    ({"type": "object", "properties": {"*": {}}, "required": ["*"], "additionalProperties": True},
     [{"*": 1, "b": 2}]),
    ({"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
     [{"a": 1}, {"b": 2}]),
    ({"not": {"type": "null"}}, [1, "a"]),
    ({"type": "array", "items": False}, [[]]),
    ({"type": "array", "items": [{"type": "integer"}]}, [[1]]),
    ({"type": "object", "maxProperties": 0}, [{}]),
    ({"type": "string", "format": "no-such-format"}, ["anything"]),
    ({"anyOf": [False, {"type": "integer"}]}, [2]),
    ({"type": "number", "multipleOf": 1e-7, "minimum": 0, "maximum": 1}, [0.5, 1e-7]),
    (True, [None, {"a": [1, 2.5, "é"]}]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "values"), FOREIGN, ids=lambda part: str(part)[:50])
def test_schemas_of_other_makers_are_read(schema: Any, values: list[Any]) -> None:
    codec = codec_for(schema)
    assert isinstance(codec, Codec)
    for value in values:
        element = codec.encode(value)
        assert element in codec.space
        assert codec.decode(element) == value
    codec.space.seed(0)
    for _ in range(10):
        assert codec.space.contains(codec.encode(codec.decode(codec.space.sample())))


@pytest.mark.parametrize(
    "pattern", [r"\p{L}+", "(?=a)b", "(", r"^(?:a{2000,}){3}$", r"(?P<a>x)?(?(a)y|z)", "a^b"]
)
def test_a_pattern_that_cannot_be_generated_is_left_to_the_app(pattern: str) -> None:
    codec = codec_for({"type": "string", "pattern": pattern})
    assert codec.space == Utf8Text(MAX_CHARS)
    assert not generates(pattern, 0, MAX_CHARS)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(\w)\1$", r"^[^\d\W]+?\s\S\D$", "^(?i:abc)$", r"^(?:ab|cd){2,3}(?=$)", r"^(?!aa)[ab]{2}$",
        r"\bword\b",
        r"^[\u4e00-\u9fff]{2}$", "^[^a]$", "^(?>a|b)c++$", "", "^.{5}$", r"^\d{4}-\d{2}$", r"^[\w.]+@[\w.]+$",
    ],
)  # fmt: skip
def test_text_is_generated_from_a_pattern(pattern: str) -> None:
    assert generates(pattern, 0, 60)
    rng = np.random.default_rng(0)
    made = [RegexText(pattern)(rng, 0, 60) for _ in range(50)]
    assert all(re.search(pattern, text) and len(text) <= 60 for text in made)


def test_text_that_no_attempt_finds_is_an_error_of_the_sampler() -> None:
    with pytest.raises(CannotGenerate, match=r"no text of 5 to 9 characters for '\^a\$'"):
        RegexText("^a$")(np.random.default_rng(0), 5, 9)
    with pytest.raises(CannotGenerate, match="a repeat of 6 or more is longer than 5"):
        RegexText("a{6,}")(np.random.default_rng(0), 0, 5)
    with pytest.raises(CannotGenerate, match="no visible member"):
        RegexText(r"[^\x21-\x7e]")(np.random.default_rng(0), 0, 5)
    with pytest.raises(NotImplementedError, match="no text is made for GROUPREF_EXISTS"):
        RegexText("(a)?(?(1)b|c)")(np.random.default_rng(0), 0, 5)


def test_every_format_is_generated() -> None:
    for pattern in FORMATS.values():
        assert generates(f"^{pattern}$", 0, MAX_CHARS)


def test_a_codec_for_hundreds_of_actions_reads_them_by_index() -> None:
    codec = ActionCodec({f"act{n}": schema_of(a={"enum": [n]}) for n in range(300)})
    assert codec.parse((np.int64(299), {"a": 0})) == ("act299", {"a": 299})
    assert len(codec.space) == 300


class Game(gym.Env[Any, Any]):
    """Rejects nothing; writes what it was sent into the observation."""

    metadata = {"render_modes": []}
    codec = ActionCodec(
        {
            "guess": schema_of(word={"type": "string"}),
            "hint": {"type": "object"},
            "plant": {"type": "object", "properties": {"tree": Tree.model_json_schema()}},
            "tag": schema_of(tags={"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        }
    )

    def __init__(self) -> None:
        self.action_space = copy.deepcopy(self.codec.space)
        self.observation_space = observation_space(200)
        self.turn = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return {"text": "los, übe!", "turn": np.array([0], np.int32)}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        try:
            name, arguments = self.codec.parse(action)
            text = json.dumps([name, arguments], ensure_ascii=False)
        except ActionRejected as rejected:
            text = json.dumps({"error": str(rejected)}, ensure_ascii=False)
        return {"text": text[:200], "turn": np.array([self.turn], np.int32)}, 0.0, False, self.turn > 5, {}


def test_an_environment_passes_gymnasiums_checker() -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(Game(), skip_render_check=True)


def test_vector_environments_take_elements_and_calls_by_name() -> None:
    call = {"action": "guess", "arguments": {"word": "crâne"}}
    for envs in (
        gym.vector.SyncVectorEnv([Game, Game]),
        gym.vector.AsyncVectorEnv([Game, Game], shared_memory=False),
    ):
        envs.reset(seed=0)
        observation, *_ = envs.step((call, json.dumps(call)))
        assert observation["text"] == ('["guess", {"word": "crâne"}]',) * 2
        envs.action_space.seed(0)
        observation, *_ = envs.step(envs.action_space.sample())
        assert not any("error" in text for text in observation["text"])
        envs.close()
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.vector.AsyncVectorEnv([Game])


def test_the_observation_is_text_of_any_script_and_the_turn() -> None:
    space = observation_space(5)
    assert {"text": "héllo", "turn": np.array([3], np.int32)} in space
    assert {"text": "héllo!", "turn": np.array([3], np.int32)} not in space


@pytest.mark.parametrize(
    ("action", "microseconds"),
    [
        ((np.int64(0), {"word": "crane"}), 1.0),
        ({"action": "guess", "arguments": {"word": "crane"}}, 0.3),
    ],
)
def test_reading_an_action_is_fast(action: Any, microseconds: float) -> None:
    taken = min(timeit.repeat(lambda: GAME.parse(action), number=5_000, repeat=10)) / 5_000 * 1e6
    assert taken < 5 * microseconds  # five times the aim: other work may share the machine
