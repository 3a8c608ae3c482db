"""Model: what is asked of a language model, and what it answers.

Agents and judges make a ModelRequest and get a Completion; the gateway carries the one and makes the other.
Messages and tools have the form of OpenAI's chat completions, which is this package's own form: the gateway
translates other dialects.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from plural_gym.errors import MachineError

Purpose = Literal["agent", "judge"]
"""Whose call it is: the Agent's that plays, or a Verifier's that judges."""

NO_KEY = "none"
"""As `auth`: the endpoint takes no key."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model, and how it is reached."""

    name: str
    """`provider/model` of the catalog; with a `base_url` whatever that endpoint calls it."""
    base_url: str | None = None
    """An OpenAI-compatible endpoint, such as `http://127.0.0.1:8000/v1`; None: the provider's."""
    auth: str | None = None
    """`none`, or the name of the variable that holds the key. None: the provider's own variable; no key where
    there is a `base_url`, so that a provider's key never goes to another host unasked."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model."""

    choice: ModelChoice
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    """Functions that the model may call, as OpenAI function tools."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling settings, sent as they are: `temperature`, `max_tokens`, `seed`, …"""
    answer_schema: Mapping[str, Any] | None = None
    """JSON Schema that the answer has to keep. Endpoints without such a thing are asked without: check it."""
    timeout_s: float = 120.0
    """For one attempt, from sending it to the last byte of the answer."""
    max_attempts: int = 4
    """How often it is sent at most where the endpoint is busy, slow or unreachable."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that the model wants called."""

    id: str
    name: str
    arguments: str
    """The JSON that the model wrote; it may be malformed."""

    def parsed(self) -> dict[str, Any]:
        """The arguments. Raises ValueError where they are no JSON object."""
        value = json.loads(self.arguments or "{}")
        if not isinstance(value, dict):
            raise ValueError(f"arguments of {self.name!r} are no JSON object: {self.arguments[:80]!r}")
        return value


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What model calls consumed. A count that nobody reported is None, never 0, and so is a sum with it."""

    calls: int = 1
    prompt_tokens: int | None = None
    """All of the prompt, cached tokens included."""
    completion_tokens: int | None = None
    """All that was generated, reasoning included."""
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    """At the provider's price of that day; None: no price is known."""

    def __add__(self, other: Self) -> Self:
        def total(name: str) -> Any:
            mine, theirs = getattr(self, name), getattr(other, name)
            return None if mine is None or theirs is None else mine + theirs

        return type(self)(**{name: total(name) for name in self.__slots__})


NOTHING_USED = ModelUsage(0, 0, 0, 0, 0, 0.0)
"""What no call consumes: where a sum begins."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered."""

    text: str
    """"" where it gave no text, as when it calls tools."""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    """`stop`, `length`, `tool_calls`, `content_filter`, …"""
    refusal: str | None = None
    """Why the model declined, in its words; None where it did not."""
    model: str | None = None
    """Who answered, in the endpoint's words."""
    usage: ModelUsage = ModelUsage()
    exchange_id: str = ""
    """Of the call's record."""


class RequestRefused(MachineError):
    """An endpoint that was reached does not take this request: too long, a setting it does not know, …"""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.status = status
        """The HTTP status, 400 to 499."""

    def __str__(self) -> str:
        return str(self.args[0])


def wrong_choice(choice: ModelChoice) -> str | None:
    """What is wrong with a choice as it is written, in a sentence; None where nothing is.

    Whether the provider exists is the gateway's to say.
    """
    if choice.auth is not None and not _VARIABLE.fullmatch(choice.auth):
        # Whatever stands there may be the key itself, so it is not shown.
        return "auth is 'none' or the name of the variable that holds the key, never the key itself"
    if choice.base_url is None:
        return None
    try:
        parts = urlsplit(choice.base_url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"base_url cannot be read: {error}"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return (
            "base_url holds a password, query or fragment; leave it out, and name the key's variable as auth"
        )
    if parts.scheme not in ("http", "https") or not host:
        return f"base_url {choice.base_url!r} is no address such as 'http://127.0.0.1:8000/v1'"
    return None
