"""Agent: a contestant, tied to no world; a model with instructions, and the Harness that plays it."""

from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, field_validator

from plural_gym.harness import Harness, as_harness
from plural_gym.identity import content_hash
from plural_gym.word import Word


class Agent(Word):
    """A model plus instructions, and the Harness that plays it.

    It sees a Task's instructions and what actions return, and nothing that a Verifier knows.

    Raises:
        DefinitionError: a harness that cannot play.
    """

    name: str = Field(min_length=1)
    model: str | None = None
    """The model's id in the catalog; None: it calls no model."""
    instructions: str = ""
    """What it is told beside every Task."""
    harness: Any = "native"
    """A function `(task, seat)`, a Harness, an object or class with `play`, or the name of a kind."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Sampling settings handed to the model, any JSON."""
    credentials: tuple[str, ...] = ()
    """Names, never values, of the credentials it supplies to Apps."""
    version: str = "0.1.0"
    title: str = ""
    description: str = ""

    _folder: Path | None = PrivateAttr(default=None)
    _driver: Harness | None = PrivateAttr(default=None)

    @field_validator("harness", mode="before")
    @classmethod
    def _can_play(cls, value: Any) -> Any:
        return value if isinstance(value, str) else as_harness(value)

    @field_validator("credentials", mode="before")
    @classmethod
    def _one_name_is_a_list(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    def driver(self) -> Harness:
        """The Harness that plays it; the same one at every call.

        Raises:
            UnknownName: a kind of that name does not exist; the message says which do.
        """
        if self._driver is None:
            self._driver = as_harness(self.harness)
        return self._driver

    @property
    def folder(self) -> Path | None:
        """Its folder in a project; None where it was built in Python."""
        return self._folder

    @property
    def content_hash(self) -> str:
        """Identity of how it plays: model, instructions, the Harness with its code, settings."""
        return content_hash(
            "agent",
            {
                "model": self.model,
                "instructions": self.instructions,
                "harness": self.driver().identity(),
                "settings": self.settings,
            },
        )
