"""The shipped worlds under their Gymnasium ids: `gymnasium.make("plural_gym:plural/Wordle-v0")`.

Registers names only; a world is loaded when somebody makes it.
"""

from typing import NamedTuple

import gymnasium as gym


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
            gym.register(
                id=shipped.id,
                entry_point="plural_gym.rl.entry:make_env",
                max_episode_steps=shipped.turns,
                kwargs={"environment": shipped.environment},
            )
