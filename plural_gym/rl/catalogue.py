"""Catalogues: the calls that a numbered action space stands for, listed or checked.

`wrappers/discrete_actions.py` numbers the actions of one Agent with it, `numeric_party.py` those of a seat.
"""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from plural_gym.errors import ActionRejected, UsageError
from plural_gym.rl import finite
from plural_gym.rl.value_codecs import json_text

_FORMS = "an entry is {'action': name, 'arguments': {...}}, (name, {...}), or a name alone"


def checked_calls(world: Any, catalog: list[Any], where: str = "catalog") -> list[dict[str, Any]]:
    """The calls of a catalogue, each once and fitting the action space."""
    if not catalog:
        raise UsageError("catalog is empty; give at least one call.")
    calls: dict[str, dict[str, Any]] = {}
    for place, entry in enumerate(catalog):
        name, arguments = _parted(entry, f"{where}[{place}]")
        try:
            element = world.encode(name, **arguments)
        except (ActionRejected, TypeError) as refusal:
            raise UsageError(f"{where}[{place}], {entry!r}, fits no action: {refusal}") from None
        call = {"action": world.decode(element)["action"], "arguments": copy.deepcopy(arguments)}
        text = json_text(call)
        if text in calls:
            raise UsageError(f"{where}[{place}], {entry!r}, stands in the catalogue before.")
        calls[text] = call
    return list(calls.values())


def _parted(entry: Any, place: str) -> tuple[str, dict[str, Any]]:
    """Name and arguments of an entry in any form."""
    name: Any = entry
    arguments: Any = {}
    if isinstance(entry, Mapping):
        unknown = [key for key in entry if key not in ("action", "arguments")]
        name, arguments = entry.get("action"), entry.get("arguments")
        name = None if unknown else name
    elif isinstance(entry, tuple | list) and len(entry) == 2:
        name, arguments = entry
    arguments = {} if arguments is None else arguments
    named = isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments)
    if not isinstance(name, str) or not named:
        raise UsageError(f"{place}, {entry!r}, is no call; {_FORMS}.")
    return name, dict(arguments)


def all_calls(world: Any, space: Any, limit: int, who: str) -> list[dict[str, Any]]:
    """Every call there is, in the order of the actions of `space`, an ActionSpace."""
    listed: dict[str, dict[str, Any]] = {}
    members = {
        name: member
        for name, member in zip(space.names, space.spaces, strict=True)
        if not _is_own_finish(world, name)
    }
    infinite = [
        f"{name} has {part or 'its arguments'} ({kind})"
        for name, member in members.items()
        for part, kind in finite.infinite_parts(member)
    ]
    if infinite:
        raise UsageError(
            f"{who} cannot list every call, since arguments have no end of values: "
            f"{'; '.join(infinite)}. Give catalog=, the calls to choose from."
        )
    counts = {name: finite.count(member) or 0 for name, member in members.items()}
    if sum(counts.values()) > limit:
        raise UsageError(
            f"{who} would list more than {limit:,} calls ("
            + ", ".join(f"{name}: {_shown(number)}" for name, number in counts.items())
            + "). Give catalog=, the calls to choose from, or a higher limit=."
        )
    for index, name in enumerate(space.names):
        if name not in members:
            listed[name] = {"action": name, "arguments": {}}
            continue
        for element in finite.elements(members[name]):
            call = world.decode((np.int64(index), element))
            listed.setdefault(json_text(call), call)
    return list(listed.values())


def _is_own_finish(world: Any, name: str) -> bool:
    """Whether an action is the `finish` that belongs to no App."""
    return name == "finish" and name not in world.environment.actions.table


def _shown(number: int) -> str:
    return f"{number:,}" if number < 10**12 else "10^12 or more"
