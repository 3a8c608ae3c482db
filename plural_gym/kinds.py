"""The one registry: a kind's name leads to its class.

`load("plural.runtimes", "docker")` finds the class that an entry point of that group declares, ours or a
stranger's alike; `module:Class` works for any importable class without declaring it. Groups are the plural
words: plural.apps, plural.runtimes, plural.verifiers, plural.harnesses, plural.executors, plural.faces.
"""

import functools
import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from plural_gym.errors import UnknownName, suggest


@functools.cache
def _declared(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def names(group: str) -> tuple[str, ...]:
    """The kinds that are declared for `group`, sorted."""
    return tuple(sorted(_declared(group)))


def word_of(group: str) -> str:
    """The word whose kinds a group holds: `harness` of `plural.harnesses`."""
    plural = group.removeprefix("plural.")
    return plural.removesuffix("es" if plural.endswith("sses") else "s")


@functools.cache
def load(group: str, name: str) -> Any:
    """The class behind a kind's name.

    Raises:
        UnknownName: nothing is declared under that name, or the module or class behind it is missing.
    """
    word = word_of(group)
    point = _declared(group).get(name)
    target = point.value if point is not None else name
    if ":" not in target:
        raise UnknownName(f"there is no {word} kind {name!r}; {suggest(name, names(group))}")
    module_name, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise UnknownName(
            f"{word} kind {name!r} needs the module {error.name!r}, which is not installed."
        ) from error
    except AttributeError as error:
        raise UnknownName(f"{word} kind {name!r}: module {module_name!r} has no {attribute!r}.") from error
    return found
