"""The shipped worlds under their Gymnasium ids: `gymnasium.make("plural_gym:plural/Wordle-v0")`.

Registers names only; a world is loaded when somebody makes it. Projects are registered by `project_ids`.
"""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym

if TYPE_CHECKING:
    from plural_gym.environment import Environment

ENTRY_POINT = "plural_gym.rl.entry:make_env"


class ShippedId(NamedTuple):
    """One shipped Environment and the id it is registered under."""

    id: str
    environment: str
    turns: int
    """The Environment's own limit, repeated for wrappers that read the EnvSpec."""


SHIPPED = (
    ShippedId("plural/Wordle-v0", "wordle", 12),
    ShippedId("plural/SupportDesk-v0", "support-desk", 10),
)


def register_shipped() -> None:
    """Register the shipped worlds; ids that are registered already stay as they are."""
    for shipped in SHIPPED:
        if shipped.id not in gym.registry:
            register(shipped.id, turns=shipped.turns, kwargs={"environment": shipped.environment})


def register(id: str, *, turns: int, kwargs: dict[str, Any], nondeterministic: bool = False) -> None:
    """Register what `rl.entry` makes; takes the place of what has this id.

    Args:
        id: `plural/<name>-v<major>`.
        turns: the Environment's own limit.
        kwargs: JSON values, for `make_env` and `make_vector`.
        nondeterministic: whether a seed does not repeat an episode.
    """
    gym.registry.pop(id, None)  # Gymnasium warns where one takes another's place
    gym.register(
        id=id,
        entry_point=ENTRY_POINT,
        vector_entry_point="plural_gym.rl.entry:make_vector",
        max_episode_steps=turns,
        nondeterministic=nondeterministic,
        # Gymnasium's passive checker takes a first `reset` that was refused for one that was checked, and
        # fails in the next `step`. What it looks for, `check_env` and this package's tests look for.
        disable_env_checker=True,
        kwargs=kwargs,
    )


def gym_id(environment: "Environment") -> str:
    """The id of an Environment: what an id may not hold of its name is written as '-'."""
    name = re.sub(r"[^-\w.]+", "-", environment.name)
    return f"plural/{name}-v{environment.version.partition('.')[0]}"


def repeatable(environment: "Environment") -> bool:
    """Whether a seed repeats an episode, for all that the kinds of its Apps say."""
    # Here, since the shipped ids are registered whenever Gymnasium is imported, and that is to cost nothing.
    from plural_gym import kinds

    return all(kinds.load("plural.apps", app.kind).repeatable for app in environment.declarations.values())
