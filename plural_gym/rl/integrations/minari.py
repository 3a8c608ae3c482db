"""Minari: importing this module lets Minari write and read data sets of environments of plural_gym.

    from plural_gym.rl.integrations import minari as plural_minari

    env = minari.DataCollector(JsonAction(env))    # calls as the text that was sent
    env = plural_minari.collector(env)             # any environment, calls written as text

Spaces are written so that readers without plural_gym can load a data set too: they see its texts as `Text`.
Who imports this module gets the space back as it was.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from minari import DataCollector, StepDataCallback
from minari.serialization import deserialize_space, serialize_space

from plural_gym.errors import ActionRejected
from plural_gym.rl.call_text import CallText, call_space
from plural_gym.rl.container_codecs import first_part, hashable
from plural_gym.rl.spaces import ActionSpace, BoundedSequence, Choice, TextSampler, Utf8Text
from plural_gym.rl.text_samplers import PickText, RegexText
from plural_gym.rl.wrappers.needs import tool_world

MAX_CHARS = 65_536
"""Longest text of a call in a data set's action space."""

_DISTINCT: dict[str, Callable[[Any], Any]] = {"key": first_part, "value": hashable}
_read_text = deserialize_space.registry["Text"]


class CallsAsText(StepDataCallback):  # type: ignore[misc, unused-ignore]  # Minari may be missing
    """Writes each action of a GymEnv, in whatever form it was sent, as the JSON text of its call.

    What names no action is written as text all the same: as it is, or by its `repr`.
    """

    def __call__(self, env: Any, **step: Any) -> dict[str, Any]:
        data: dict[str, Any] = super().__call__(env, **step)
        if step.get("action") is not None:
            data["action"] = _written(env.unwrapped, step["action"])
        # Minari's Arrow storage cannot write a mapping without keys, such as the rewards of no Verifier.
        info = data["info"] or {}
        data["info"] = {key: value for key, value in info.items() if value or not isinstance(value, Mapping)}
        return data


def collector(env: gym.Env[Any, Any], **options: Any) -> DataCollector:
    """Return a `minari.DataCollector` that records the calls of any GymEnv as JSON text.

    Minari stacks actions, and tool calls with different arguments do not stack.

    Args:
        env: a GymEnv, or wrappers around one that leave its actions as they are.
        options: as `minari.DataCollector` takes them: `record_infos`, `data_format`, …

    Raises:
        UsageError: no GymEnv inside, or its actions have been changed.
    """
    world = tool_world(env, "collector")
    options.setdefault("step_data_callback", CallsAsText)
    options.setdefault("action_space", call_space(world.schemas, MAX_CHARS))
    return DataCollector(env, **options)


def _written(world: Any, action: Any) -> str:
    if isinstance(action, str):
        return action
    try:
        call = action if isinstance(action, Mapping) else world.decode(_element(action))
        text = json.dumps(call, ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except (ActionRejected, TypeError, ValueError):
        return repr(action)
    return text


def _element(action: Any) -> Any:
    """The element that was sent; the index alone stands for an action without arguments."""
    return (action, 0) if isinstance(action, int | np.integer) else action


# spaces into JSON and back


def _given(result: dict[str, Any], to_string: bool) -> Any:
    return json.dumps(result) if to_string else result


def _write_text(space: Utf8Text, to_string: bool = True) -> Any:
    # Read by Minari alone, it is a stock Text of the characters that are sampled.
    return _given(
        {
            "type": "Text",
            "max_length": space.max_length,
            "min_length": space.min_length,
            "charset": space.charset,
            "plural": {"pattern": space.pattern, "generate": _sampler_json(space.generate)},
        },
        to_string,
    )


def _read_any_text(content: dict[str, Any]) -> spaces.Text:
    ours = content.get("plural")
    if ours is None:
        stock: spaces.Text = _read_text(content)
        return stock
    return Utf8Text(
        content["max_length"],
        min_length=content["min_length"],
        charset=content["charset"],
        pattern=ours["pattern"],
        generate=_sampler(ours["generate"]),
    )


def _sampler_json(sampler: TextSampler | None) -> dict[str, Any] | None:
    """A sampler of this package as JSON; None for a stranger's: such a text is then sampled as plain text."""
    if isinstance(sampler, RegexText):
        return {"regex": sampler.pattern}
    if isinstance(sampler, PickText):
        return {"pick": list(sampler.choices)}
    if isinstance(sampler, CallText):
        return {"calls": sampler.schemas}
    return None


def _sampler(content: Mapping[str, Any] | None) -> TextSampler | None:
    if content is None:
        return None
    if "regex" in content:
        return RegexText(content["regex"])
    return PickText(tuple(content["pick"])) if "pick" in content else CallText(content["calls"])


def _members(space: Any) -> list[Any]:
    return [serialize_space(member, to_string=False) for member in space.spaces]


def _write_actions(space: ActionSpace, to_string: bool = True) -> Any:
    content = {"type": "plural/ActionSpace", "names": list(space.names), "subspaces": _members(space)}
    return _given(content, to_string)


def _read_actions(content: dict[str, Any]) -> ActionSpace:
    return ActionSpace(content["names"], [deserialize_space(one) for one in content["subspaces"]])


def _write_choice(space: Choice, to_string: bool = True) -> Any:
    return _given({"type": "plural/Choice", "subspaces": _members(space)}, to_string)


def _read_choice(content: dict[str, Any]) -> Choice:
    return Choice([deserialize_space(one) for one in content["subspaces"]])


def _write_sequence(space: BoundedSequence, to_string: bool = True) -> Any:
    distinct = next((name for name, by in _DISTINCT.items() if by is space.distinct_by), None)
    content = {
        "type": "plural/BoundedSequence",
        "feature_space": serialize_space(space.feature_space, to_string=False),
        "min_length": space.min_length,
        "max_length": space.max_length,
        "distinct_by": distinct,
    }
    return _given(content, to_string)


def _read_sequence(content: dict[str, Any]) -> BoundedSequence:
    return BoundedSequence(
        deserialize_space(content["feature_space"]),
        content["min_length"],
        content["max_length"],
        distinct_by=_DISTINCT.get(content["distinct_by"]),
    )


serialize_space.register(Utf8Text, _write_text)
serialize_space.register(ActionSpace, _write_actions)
serialize_space.register(Choice, _write_choice)
serialize_space.register(BoundedSequence, _write_sequence)
deserialize_space.register("Text")(_read_any_text)
deserialize_space.register("plural/ActionSpace")(_read_actions)
deserialize_space.register("plural/Choice")(_read_choice)
deserialize_space.register("plural/BoundedSequence")(_read_sequence)
