"""Dialect: in which words a model is asked and answers over HTTP. One file a dialect, such as `chat.py`."""

from typing import Any, Protocol

from plural_gym.model import Completion, ModelRequest


class Garbled(Exception):
    """What came is no answer of this dialect; the message says what is wrong with it."""


class Dialect(Protocol):
    """How one kind of endpoint is spoken to."""

    @property
    def protocol(self) -> str:
        """Its name in records: `openai.chat`."""
        ...

    @property
    def path(self) -> str:
        """What follows the base URL."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """What carries the key."""
        ...

    def body(self, request: ModelRequest, model: str, with_schema: bool) -> dict[str, Any]:
        """The JSON to send. `with_schema`: whether the endpoint is told the `answer_schema`."""
        ...

    def read(self, answer: Any) -> Completion:
        """The Completion in an answer's JSON, without cost and exchange. Raises Garbled."""
        ...
