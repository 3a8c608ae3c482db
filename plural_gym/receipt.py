"""Receipt: the exact inputs of one Trial, by content hash; enough to run it again."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

from pydantic import Field

from plural_gym.word import Word

SCHEMA = "plural.receipt/1"


class Pin(Word):
    """One word as it was: its name, version and content hash."""

    name: str
    version: str
    content_hash: str

    @classmethod
    def of(cls, word: Any) -> Self:
        """The pin of a word as it is now."""
        return cls(name=word.name, version=word.version, content_hash=word.content_hash)


class Receipt(Word):
    """What a Trial was run with. Written once, before the first action."""

    schema_version: str = SCHEMA
    trial_id: str
    job_id: str
    attempt: int
    """Counted from 1."""
    mode: str
    seed: int
    """The episode's seed: all randomness of its Apps."""
    task: Pin
    environment: Pin
    verifiers: tuple[Pin, ...]
    agent: Pin
    seats: dict[str, Pin] = Field(default_factory=dict)
    """In a party, who had which seat; `agent` is the first."""
    benchmark: Pin | None = None
    resources: dict[str, str] = Field(default_factory=dict)
    """Staged file -> content hash."""
    runtime: dict[str, Any] = Field(default_factory=dict)
    """Where it ran: kind, isolation, interpreter."""
    packages: dict[str, str] = Field(default_factory=dict)
    credentials: tuple[str, ...] = ()
    """Names of the credentials that acted; never values."""
    rerunnable: bool = True
    why_not: tuple[str, ...] = ()
    """Why the inputs cannot be loaded again: code from a notebook, a prompt or a closure."""
    started: float
    """Unix time in seconds."""


@cache
def packages() -> Mapping[str, str]:
    """The versions a run depends on."""
    found = {"python": platform.python_version()}
    for name in ("plural-gym", "gymnasium", "numpy", "pydantic"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
