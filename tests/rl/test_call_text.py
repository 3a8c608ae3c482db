"""Texts of the space of tool calls are valid calls, and the space is a value."""

import json
import pickle
from copy import deepcopy
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import Field

from plural_gym import App, Environment, action
from plural_gym.rl.call_text import CallText, call_space
from plural_gym.rl.text_samplers import CannotGenerate


class Many(App):
    """Arguments of many kinds."""

    @action
    def mix(
        self,
        word: str,
        number: int,
        part: float,
        kind: Literal["a", "b"] | None = None,
        items: list[Annotated[str, Field(pattern=r"^[A-Z]{3}-\d+$")]] = [],  # noqa: B006  never changed
        anything: Any = None,
    ) -> str:
        """Mix."""
        return "mixed"

    @action
    def rest(self) -> str:
        """Rest."""
        return "rested"


WORLD = Environment(name="many", apps={"many": Many})


def test_all_samples_are_calls_that_are_accepted() -> None:
    env = WORLD.gym()
    space = call_space(env.schemas, 65_536)
    space.seed(0)
    env.reset(seed=0)
    seen = set()
    for _ in range(300):
        text = space.sample()
        assert text in space
        call = json.loads(text)
        seen.add(call["action"])
        if call["action"] == "finish":
            continue
        env.reset()
        assert env.step(text)[4]["error"] == "", text
    assert seen == {"mix", "rest", "finish"}


def test_a_seed_repeats_the_samples() -> None:
    spaces = [call_space(WORLD.gym().schemas, 65_536) for _ in range(2)]
    drawn = []
    for space in spaces:
        space.seed(7)
        drawn.append([space.sample() for _ in range(20)])
    assert drawn[0] == drawn[1] and len(set(drawn[0])) > 5


def test_the_space_is_a_value() -> None:
    space, same = (call_space(WORLD.gym().schemas, 100) for _ in range(2))
    assert space == same == deepcopy(space) == pickle.loads(pickle.dumps(space))
    assert space != call_space({"rest": WORLD.gym().schemas["rest"]}, 100)
    assert space != call_space(WORLD.gym().schemas, 101)


def test_calls_too_long_for_the_space_are_not_made() -> None:
    schemas = {"rest": {"type": "object", "properties": {}}}
    text = '{"action":"rest","arguments":{}}'
    assert call_space(schemas, len(text)).sample() == text
    with pytest.raises(CannotGenerate, match="no call is written in 0 to 31 characters"):
        CallText(json.dumps(schemas))(np.random.default_rng(0), 0, len(text) - 1)
