"""JsonAction: calls as text, valid or not."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from plural_gym.errors import UsageError
from plural_gym.rl.spaces import Utf8Text
from plural_gym.rl.wrappers import JsonAction


def test_every_sample_is_a_call_that_fits(world: Callable[..., Any]) -> None:
    env = JsonAction(world("writing"))
    assert isinstance(env.action_space, Utf8Text)
    env.action_space.seed(0)
    actions = set()
    for _ in range(100):
        env.reset(seed=0)
        text = env.action_space.sample()
        call = json.loads(text)
        actions.add(call["action"])
        error = env.step(text)[4]["error"]
        assert error == "" or "already" in error, text
        assert env.unwrapped.encode(call["action"], **call["arguments"]) is not None
    assert actions == {"switch", "off", "write"}


@pytest.mark.parametrize("text", ["a string", "", "{", '{"action": "fly"}', "{'action': 'off'}", "[1]"])
def test_any_other_text_is_a_rejected_step(world: Callable[..., Any], text: str) -> None:
    env = JsonAction(world())
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(text)
    assert json.loads(observation["text"])["error"] == info["error"] != ""
    assert (reward, terminated, truncated) == (0.0, False, False)


def test_names_and_text_with_accents_pass(world: Callable[..., Any]) -> None:
    env = JsonAction(world("writing"))
    env.reset(seed=0)
    assert env.step('{"action": "write", "arguments": {"note": "é ✓"}}')[0]["text"] == "é ✓"
    assert env.step("off")[4]["error"] == ""


def test_the_longest_text_is_chosen(world: Callable[..., Any]) -> None:
    assert JsonAction(world(), 50).action_space.max_length == 50
    for wrong in (0, -1, 2.5, True, "9"):
        with pytest.raises(UsageError, match="max_chars is a whole number from 1"):
            JsonAction(world(), wrong)  # type: ignore[arg-type]
