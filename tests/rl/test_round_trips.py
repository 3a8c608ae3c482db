"""Any action that an author can write: what is sampled is accepted, and what is accepted has an element.

Types are drawn at random and made into an App, so that the whole way is walked: type hints, JSON Schema,
space, element, arguments, the App's own validation, the method.
"""

import copy
import datetime
import enum
import inspect
import itertools
import json
import pickle
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Union

import numpy as np
import pydantic
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from typing_extensions import TypedDict

from plural_gym import App, Environment, action
from plural_gym.rl.container_codecs import hashable


class Typed(NamedTuple):
    """A type hint, and the JSON values that it stands for."""

    hint: Any
    values: st.SearchStrategy[Any]


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []
    left: Optional["Tree"] = None


trees = st.recursive(
    st.fixed_dictionaries({"value": st.integers(-9, 9)}),
    lambda inner: st.fixed_dictionaries(
        {"value": st.integers(-9, 9)},
        optional={"children": st.lists(inner, max_size=2), "left": st.none() | inner},
    ),
    max_leaves=6,
)
words = st.text(max_size=6).filter(
    lambda text: text.isascii() or text.encode("utf-8", "ignore").decode() == text
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
floats = st.floats(allow_nan=False, allow_infinity=False)
_names = itertools.count()


@st.composite
def whole_numbers(draw: st.DrawFn) -> Typed:
    low = draw(st.none() | st.integers(-3000, 3000) | st.integers(-(2**53), 2**53))
    width = draw(st.none() | st.integers(0, 3000))
    step = draw(st.none() | st.integers(1, 9))
    keys: dict[str, Any] = {}
    if low is not None:
        keys[draw(st.sampled_from(["ge", "gt"]))] = low
    if width is not None:
        top = (low or 0) + width + 12
        keys[draw(st.sampled_from(["le", "lt"]))] = top
    if step is not None:
        keys["multiple_of"] = step
    least = -(2**53) if low is None else low + ("gt" in keys)
    most = max(2**53, least + 99) if width is None else top - ("lt" in keys)
    step = step or 1
    first, last = -(-least // step), most // step
    return Typed(
        Annotated[int, Field(**keys)] if keys else int, st.integers(first, last).map(lambda n: n * step)
    )


@st.composite
def numbers(draw: st.DrawFn) -> Typed:
    low = draw(st.none() | st.floats(-1e9, 1e9) | st.integers(-20, 20))
    width = draw(st.none() | st.floats(1e-3, 1e9))
    keys: dict[str, Any] = {}
    if low is not None:
        keys[draw(st.sampled_from(["ge", "gt"]))] = low
    if width is not None:
        keys[draw(st.sampled_from(["le", "lt"]))] = (low or 0.0) + width
    values = st.floats(
        keys.get("ge", keys.get("gt")),
        keys.get("le", keys.get("lt")),
        exclude_min="gt" in keys,
        exclude_max="lt" in keys,
        allow_nan=False,
        allow_infinity=False,
    )
    return Typed(Annotated[float, Field(**keys)] if keys else float, values)


def multiples(step: float) -> Typed:
    values = st.integers(-20, 20).map(lambda quotient: round(quotient * step, 6))
    return Typed(Annotated[float, Field(multiple_of=step, ge=-20 * step, le=20 * step)], values)


@st.composite
def texts(draw: st.DrawFn) -> Typed:
    low = draw(st.integers(0, 9))
    high = draw(st.none() | st.integers(low, low + 30))
    keys = {"min_length": low} | ({} if high is None else {"max_length": high})
    values = st.text(st.characters(codec="utf-8"), min_size=low, max_size=low + 40 if high is None else high)
    return Typed(Annotated[str, Field(**keys)], values)


def patterned(pattern: str) -> Typed:
    values = st.from_regex(pattern).filter(lambda text: len(text) <= 4096 and not text.endswith("\n"))
    return Typed(Annotated[str, Field(pattern=pattern)], values)


@st.composite
def choices(draw: st.DrawFn) -> Typed:
    values = draw(
        st.lists(
            st.text(st.characters(codec="utf-8"), max_size=4)
            | st.integers(-9, 9)
            | st.booleans()
            | st.none(),
            min_size=1,
            max_size=5,
            unique=True,  # True is 1 to sets and Enums
        )
    )
    if draw(st.booleans()):
        return Typed(Literal[tuple(values)], st.sampled_from(values))
    distinct = [value for value in values if value is not None] or ["only"]
    made = enum.Enum(f"Enum{next(_names)}", {f"M{n}": value for n, value in enumerate(distinct)})  # type: ignore[misc]
    return Typed(made, st.sampled_from(distinct))


def written(hint: Any, values: st.SearchStrategy[Any]) -> Typed:
    """A type whose JSON value is what pydantic writes."""
    adapter = TypeAdapter(hint)
    return Typed(hint, values.map(lambda value: adapter.dump_python(value, mode="json")))


scalars: st.SearchStrategy[Typed] = st.one_of(
    st.just(Typed(bool, st.booleans())),
    st.just(Typed(None, st.none())),
    st.just(Typed(Any, json_values)),
    st.just(Typed(Tree, trees)),
    whole_numbers(),
    numbers(),
    st.sampled_from([0.1, 0.3, 0.25, 0.001, 1.5]).map(multiples),
    texts(),
    choices(),
    st.sampled_from([r"^\d{3}$", "^(a|bc)+$", "[A-F]{2}", r"^x?[^a-z\s]{1,4}$"]).map(patterned),
    st.sampled_from(
        [
            written(datetime.date, st.dates()),
            written(datetime.datetime, st.datetimes(timezones=st.none() | st.timezones())),
            written(datetime.time, st.times()),
            written(datetime.timedelta, st.timedeltas()),
            written(pydantic.UUID4, st.uuids(version=4)),
            written(Annotated[datetime.date, pydantic.Strict()], st.dates()),
            written(Annotated[tuple[int, ...], pydantic.Strict()], st.lists(st.integers(0, 9)).map(tuple)),
        ]
    ),
)


def keyable(typed: Typed) -> bool:
    return typed.hint not in (Any, Tree)


def lists_of(item: Typed) -> st.SearchStrategy[Typed]:
    def build(low: int, more: int | None) -> Typed:
        keys = {"min_length": low} | ({} if more is None else {"max_length": low + more})
        values = st.lists(item.values, min_size=low, max_size=low + (3 if more is None else more))
        return Typed(Annotated[list[item.hint], Field(**keys)], values)  # type: ignore[name-defined]

    return st.builds(build, st.integers(0, 3), st.none() | st.integers(0, 3))


def tuples_of(items: list[Typed]) -> Typed:
    return Typed(
        tuple[tuple(item.hint for item in items)], st.tuples(*[item.values for item in items]).map(list)
    )  # type: ignore[misc]


def sets_of(item: Typed) -> Typed:
    values = st.lists(item.values, max_size=4, unique_by=lambda value: json.dumps(value, sort_keys=True))
    return Typed(set[item.hint], values)  # type: ignore[name-defined]


def maps_of(item: Typed) -> st.SearchStrategy[Typed]:
    text_keys = Typed(dict[str, item.hint], st.dictionaries(words, item.values, max_size=3))  # type: ignore[name-defined]
    whole = st.integers(1, 999_999).map(str)
    number_keys = Typed(dict[int, item.hint], st.dictionaries(whole, item.values, max_size=3))  # type: ignore[name-defined]
    return st.sampled_from([text_keys, number_keys])


FIELDS = st.sampled_from(["word", "at", "self_", "count", "items", "class_", "naïve", "copy_", "action_"])


@st.composite
def records(draw: st.DrawFn, hints: st.SearchStrategy[Typed]) -> Typed:
    """A model or a TypedDict."""
    fields = draw(st.dictionaries(FIELDS, st.tuples(hints, st.booleans()), max_size=4))
    needed = {key: typed.values for key, (typed, required) in fields.items() if required}
    rest = {key: typed.values for key, (typed, required) in fields.items() if not required}
    name = f"Made{next(_names)}"
    values = st.fixed_dictionaries(needed, optional=rest)
    if draw(st.booleans()):
        shape = {
            key: typed.hint if required else NotRequired[typed.hint]
            for key, (typed, required) in fields.items()
        }
        return Typed(TypedDict(name, shape), values)  # type: ignore[operator]
    given: dict[str, Any] = {
        key: (typed.hint, ... if required else None) for key, (typed, required) in fields.items()
    }
    made = create_model(name, __config__=ConfigDict(extra="forbid"), **given)
    return Typed(made, values)


@st.composite
def tagged(draw: st.DrawFn, hints: st.SearchStrategy[Typed]) -> Typed:
    """A discriminated union."""
    one, other = draw(hints), draw(hints)
    members, values = [], []
    for tag, typed in (("one", one), ("other", other)):
        fields: dict[str, Any] = {"kind": (Literal[tag], ...), "value": (typed.hint, ...)}  # type: ignore[valid-type]
        members.append(create_model(f"Tag{next(_names)}", **fields))
        values.append(st.fixed_dictionaries({"kind": st.just(tag), "value": typed.values}))
    return Typed(Annotated[members[0] | members[1], Field(discriminator="kind")], st.one_of(*values))


def union_of(pair: tuple[Typed, Typed]) -> Typed:
    one, other = pair
    return Typed(Union[one.hint, other.hint], one.values | other.values)  # noqa: UP007


def nested(hints: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        hints.flatmap(lists_of),
        hints.map(lambda typed: Typed(Optional[typed.hint], st.none() | typed.values)),  # noqa: UP045
        st.lists(hints, min_size=1, max_size=3).map(tuples_of),
        hints.filter(keyable).flatmap(maps_of),
        records(hints),
        tagged(hints),
        st.tuples(hints, hints).map(union_of),
    )


hashables = st.one_of(whole_numbers(), texts(), choices(), st.just(Typed(bool, st.booleans())))
hints = st.recursive(st.one_of(scalars, hashables.map(sets_of)), nested, max_leaves=5)


class World:
    """An Environment of one action with these arguments; an argument may have a default."""

    def __init__(self, arguments: dict[str, tuple[Any, bool]]) -> None:
        self.received: list[dict[str, Any]] = []

        def act(app: App, **given: Any) -> str:
            """Take whatever comes."""
            self.received.append(given)
            return "ok"

        kind = inspect.Parameter.KEYWORD_ONLY
        act.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter("app", inspect.Parameter.POSITIONAL_ONLY)]
            + [
                inspect.Parameter(name, kind, **({} if needed else {"default": None}))
                for name, (_, needed) in arguments.items()
            ]
        )
        act.__annotations__ = {name: hint for name, (hint, _) in arguments.items()}
        app = type("Made", (App,), {"act": action(act), "__doc__": "Made at random."})
        self.env = Environment(name="made", apps={"made": app}).gym()
        self.env.reset(seed=0)

    def step(self, *action: Any, **keywords: Any) -> Any:
        """What the method got, and all that `step` answered but the turn; fails where the App refused."""
        observation, reward, terminated, truncated, info = self.env.step(*action, **keywords)
        assert not info["error"], (action, info["error"])
        assert observation in self.env.observation_space
        if truncated:
            self.env.reset()
        return plain(self.received[-1]), observation["text"], reward, terminated, info


arguments = st.dictionaries(FIELDS, st.tuples(hints, st.booleans()), max_size=3)


def plain(value: Any) -> Any:
    """What the method got as text, so that 1 is not True; the order in a set means nothing."""
    if isinstance(value, BaseModel):
        return repr(type(value)) + plain(dict(value))
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {plain(item)}' for key, item in sorted(value.items()))}}}"
    if isinstance(value, set):
        return f"{{{', '.join(sorted(map(plain, value)))}}}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(plain, value))})"
    return repr(value)


def world_of(drawn: dict[str, tuple[Typed, bool]]) -> World:
    return World({name: (typed.hint, needed) for name, (typed, needed) in drawn.items()})


def forms(name: str, arguments: dict[str, Any]) -> list[Any]:
    """Every way to write a call, but for elements and keywords."""
    written = json.dumps(arguments)
    called: list[Any] = [
        {"action": name, "arguments": arguments},
        {"name": name, "arguments": arguments},
        {"name": name, "arguments": written},
        {"type": "function", "id": "1", "function": {"name": name, "arguments": written}},
        {"action": f"made.{name}", "arguments": MappingProxyType(arguments)},
        json.dumps({"action": f"made__{name}", "arguments": arguments}),
    ]
    return called if arguments else [*called, name, f"made.{name}", {"action": name}, 0, np.int64(0)]


ROUNDS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@ROUNDS
@given(drawn=arguments, seed=st.integers(0, 2**31 - 1))
def test_every_sample_is_accepted_and_survives_every_copy(
    drawn: dict[str, tuple[Typed, bool]], seed: int
) -> None:
    world = world_of(drawn)
    space = world.env.action_space
    space.seed(seed)
    samples = [
        space.sample(mask=np.array([name == "act" for name in space.names], np.int8)) for _ in range(4)
    ]
    for element in samples:
        assert element in space
        first = world.step(element)
        call = world.env.decode(element)
        assert json.loads(json.dumps(call, allow_nan=False)) == call
        for form in forms(*call.values()):
            assert world.step(form) == first, form
        assert world.step("act", **call["arguments"]) == first
        assert world.step(world.env.encode("act", **call["arguments"])) == first
    stored = json.loads(json.dumps(space.to_jsonable(samples), allow_nan=False))
    for twin in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert twin == space
        again = twin.from_jsonable(stored)
        assert [hashable(element) for element in again] == [hashable(element) for element in samples]
        assert all(element in twin for element in again)
    batched = batch_space(space, len(samples))
    joined = concatenate(space, samples, create_empty_array(space, len(samples)))
    assert joined in batched
    assert [hashable(item) for item in iterate(batched, joined)] == [hashable(item) for item in samples]


@ROUNDS
@given(drawn=arguments, data=st.data())
def test_every_accepted_call_has_an_element_that_means_the_same(
    drawn: dict[str, tuple[Typed, bool]], data: st.DataObject
) -> None:
    world = world_of(drawn)
    for _ in range(3):
        call = {
            name: data.draw(typed.values)
            for name, (typed, needed) in drawn.items()
            if needed or data.draw(st.booleans())
        }
        answer = world.step({"action": "act", "arguments": call})
        element = world.env.encode("act", **call)
        assert element in world.env.action_space, (element, world.env.action_space)
        assert world.step(element) == answer
