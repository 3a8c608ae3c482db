"""What GymEnv promises whatever it is sent: an answer of one shape, and never an exception."""

import collections
import copy
import datetime
import decimal
import enum
import json
import uuid
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from plural_gym import App, Environment, GymEnv, Limits, State, action


class Told(State):
    count: int = 0


class Point(BaseModel):
    x: Annotated[int, Field(ge=0, le=9)]
    y: float = 0.5


class Listener(App):
    """Takes anything that its type hints let through."""

    state: Told

    @action
    def add(self, amount: int = 1) -> str:
        """Count up."""
        self.state.count += amount
        return f"count {self.state.count}"

    @action
    def wait(self) -> str:
        """Wait."""
        return "waited"

    @action
    def say(self, text: str, loud: bool) -> str:
        """Say a text."""
        return text.upper() if loud else text

    @action
    def keep(self, value: Any) -> Any:
        """Keep anything at all."""
        return value

    @action
    def place(self, at: list[Point], tags: dict[str, float], way: Literal["up", "down"]) -> Any:
        """Place points."""
        return [at, tags, way]


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    owner: str | None = None


class Shape(TypedDict, total=False):
    width: float
    star: bool


class Menagerie(App):
    """Every kind of argument there is, one action each."""

    @action
    def whole(
        self,
        near: Annotated[int, Field(gt=-3, lt=7)],
        far: int,
        even: Annotated[int, Field(ge=0, multiple_of=2)],
        large: Annotated[int, Field(ge=2**70)],
    ) -> Any:
        """Whole numbers."""
        return [near, far, even, large]

    @action
    def real(
        self,
        open: float,
        part: Annotated[float, Field(gt=0, lt=1)],
        tenth: Annotated[float, Field(multiple_of=0.1)],
    ) -> Any:
        """Other numbers."""
        return [open, part, tenth]

    @action
    def text(
        self,
        short: Annotated[str, Field(min_length=1, max_length=3)],
        code: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{3}$")],
        day: datetime.date,
        at: datetime.datetime,
        id: uuid.UUID,
        price: decimal.Decimal,
        raw: bytes,
    ) -> Any:
        """Texts."""
        return [short, code, day, at, id, price, raw]

    @action
    def choose(
        self, one: Literal["a", 1, None], colour: Colour, sure: bool = False, word: str | None = None
    ) -> Any:
        """Choices."""
        return [one, colour, sure, word]

    @action
    def gather(
        self,
        items: Annotated[list[Shape], Field(max_length=3)],
        pair: tuple[int, str],
        letters: set[Literal["a", "b", "c"]],
        counts: dict[str, int],
        numbers: frozenset[int] = frozenset(),
    ) -> Any:
        """Containers."""
        return [items, pair, sorted(letters), counts, sorted(numbers)]

    @action
    def nest(
        self, tree: Tree, pet: Annotated[Cat | Dog, Field(discriminator="kind")], other: int | list[str]
    ) -> Any:
        """Models in models."""
        return [tree, pet, other]

    @action
    def anything(self, value: Any = None, object: dict | None = None) -> Any:  # type: ignore[type-arg]
        """Anything."""
        return [value, object]

    @action
    def nothing(self) -> None:
        """Nothing at all."""


MENAGERIE = Environment(name="menagerie", apps={"zoo": Menagerie}, limits=Limits(turns=30))

LISTENER = Environment(name="listener", apps={"ear": Listener}, limits=Limits(turns=50))


class Hostile:
    """Breaks whatever is done with it."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __iter__(self) -> Any:
        raise RuntimeError("no iteration")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("no copy")


class Broken(Mapping[str, Any]):
    """A mapping that fails when it is read."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("no item")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no iteration")

    def __len__(self) -> int:
        return 1


class Word(str):
    """A text of a class of its own."""


class Name(enum.Enum):
    ADD = "add"


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


def endless() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


NAMES = ["add", "wait", "say", "keep", "place", "ear.add", "ear__wait", "nothing", "", "finish"]
surrogates = st.text(st.characters(codec=None, categories=["Cs", "L", "Cc"]), max_size=6)
arrays = st.sampled_from(
    [
        np.zeros(3),
        np.array([[1, 2]]),
        np.array(3),
        np.array(["add"]),
        np.array([None, {}], object),
        np.array([np.nan]),
        np.array([], np.int8),
        np.array([1 + 2j]),
        np.array(["2020-01-01"], "datetime64[D]"),
    ]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-2, 7),
    st.floats(),
    st.complex_numbers(),
    st.binary(max_size=6),
    st.text(max_size=6),
    surrogates,
    st.sampled_from(NAMES),
    st.sampled_from(
        [np.int64(1), np.int8(-1), np.float32("nan"), np.str_("wait"), np.bool_(True), np.uint64(2**63)]
    ),
    st.sampled_from(
        ["x" * 100_000, "{" * 5000, '{"action": "keep", "arguments": ' + "[" * 3000, "日" * 5000]
    ),
    st.sampled_from(
        [Word("wait"), Name.ADD, decimal.Decimal("NaN"), datetime.date(2020, 1, 1), ..., NotImplemented]
    ),
    st.builds(
        lambda make: make(),
        st.sampled_from([object, Hostile, Broken, endless, lambda: deep(50), lambda: deep(3000)]),
    ),
    st.sampled_from(
        [int, len, iter(()), collections.Counter("a"), range(2), {1, 2}, frozenset("a"), memoryview(b"a")]
    ),
    arrays,
)
garbage: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.tuples(inner),
        st.tuples(st.integers(0, 5), inner),
        st.dictionaries(
            st.one_of(st.sampled_from(NAMES), st.integers(), st.text(max_size=3), st.none()),
            inner,
            max_size=3,
        ),
        st.fixed_dictionaries(
            {"action": st.one_of(st.sampled_from(NAMES), inner)},
            optional={"arguments": inner, "name": inner, "function": inner},
        ),
        st.fixed_dictionaries(
            {"action": st.just("keep"), "arguments": st.fixed_dictionaries({"value": inner})}
        ),
        st.fixed_dictionaries(
            {"action": st.just("add"), "arguments": st.fixed_dictionaries({"amount": inner})}
        ),
        st.fixed_dictionaries(
            {
                "action": st.just("place"),
                "arguments": st.fixed_dictionaries({"at": inner, "tags": inner, "way": inner}),
            }
        ),
        st.fixed_dictionaries(
            {"action": st.just("say"), "arguments": st.fixed_dictionaries({"text": inner, "loud": inner})}
        ),
    ),
    max_leaves=6,
)


def check_answer(env: GymEnv, answer: Any) -> None:
    observation, reward, terminated, truncated, info = answer
    assert observation in env.observation_space
    assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
    assert {key: type(value) for key, value in info.items()} == {
        "rewards": dict,
        "reward_status": dict,
        "action": str,
        "error": str,
    }
    for text in (observation["text"], info["error"], info["action"]):
        text.encode()
    assert info["error"] or not observation["text"].startswith('{"error"')


def check_record(env: GymEnv) -> None:
    """Everything of the episode is JSON."""
    steps = [dict(step) for step in env.episode.trajectory]
    json.dumps([steps, env.episode.answer], allow_nan=False).encode()


FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize(
    "graders", [[], [lambda step: 0.5 if step.error else None]], ids=["unjudged", "judged"]
)
@FUZZ
@given(sent=garbage)
def test_whatever_is_sent_is_answered(graders: Any, sent: Any) -> None:
    env = LISTENER.gym(verifiers=graders)
    env.reset(seed=0)
    env.step("wait")
    answer = env.step(sent)
    check_answer(env, answer)
    assert answer[2] == (env.episode.stop_reason == "agent_finished")
    assert answer[2] or env.episode.trajectory[-1]["turn"] == 2
    check_record(env)


@FUZZ
@given(
    name=st.sampled_from(NAMES),
    sent=st.dictionaries(
        st.sampled_from(["amount", "text", "loud", "value", "at", "tags", "way", "answer"]),
        garbage,
        min_size=1,
        max_size=3,
    ),
)
def test_whatever_keywords_are_sent_are_answered(name: str, sent: dict[str, Any]) -> None:
    env = LISTENER.gym()
    env.reset(seed=0)
    check_answer(env, env.step(name, **sent))
    check_record(env)


@pytest.mark.parametrize("mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize("world", [LISTENER, MENAGERIE], ids=lambda world: world.name)
def test_gymnasiums_check_finds_nothing(world: Environment, mode: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(world.gym(render_mode=mode))


def test_random_actions_of_every_kind_are_accepted() -> None:
    env = MENAGERIE.gym()
    env.action_space.seed(0)
    env.reset(seed=0)
    taken = set()
    for _ in range(400):
        observation, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert observation in env.observation_space and not info["error"]
        taken.add(info["action"])
        if terminated or truncated:
            env.reset()
    assert taken == {"whole", "real", "text", "choose", "gather", "nest", "anything", "nothing", "finish"}


@pytest.mark.parametrize("kind", [gym.vector.SyncVectorEnv, gym.vector.AsyncVectorEnv])
def test_actions_of_every_kind_travel_in_batches(kind: Any) -> None:
    options = {"shared_memory": False} if kind is gym.vector.AsyncVectorEnv else {}
    envs = kind([MENAGERIE.gym] * 2, **options)
    envs.action_space.seed(3)
    envs.reset(seed=0)
    for _ in range(10):
        *_, infos = envs.step(envs.action_space.sample())
        assert list(infos.get("error", ["", ""])) == ["", ""]
    envs.close()


class Started(App):
    """Counts how often it was started."""

    starts = 0

    def __init__(self) -> None:
        type(self).starts += 1

    def reset(self, task: Any) -> str:
        return f"drew {self.rng.integers(1_000_000)}"

    @action
    def draw(self) -> int:
        """Draw a number."""
        return int(self.rng.integers(1_000_000))


def test_nothing_starts_before_the_first_reset(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("notes")
    world = Environment(name="started", apps={"app": Started}, resources=[file])
    env = world.gym()
    env.action_space.sample()
    file.unlink()  # what is not read cannot be missed
    for one in (env, copy.deepcopy(env), gym.make(env.spec)):
        one.close()
    assert env.host is None and Started.starts == 0
    file.write_text("notes")
    env.reset()
    assert Started.starts == 1
    env.close()
    env.close()
    assert env.host is None


def test_all_randomness_is_np_randoms() -> None:
    def play(env: GymEnv) -> list[str]:
        return [
            env.reset()[0]["text"],
            *(env.step("draw")[0]["text"] for _ in range(3)),
            env.reset()[0]["text"],
        ]

    world = Environment(name="started", apps={"app": Started})
    one, other = world.gym(), world.gym()
    for env in (one, other):
        env.np_random = np.random.default_rng(3)
    first = play(one)
    assert first == play(other) and len(set(first)) == len(first)
    state = one.np_random.bit_generator.state
    again = play(one)
    one.np_random.bit_generator.state = state
    assert play(one) == again != first
