"""Exchange: the record of one model call, a line of the Trial's exchanges.jsonl; and ExchangeLog, that file.

The names of the fields are those of the ledger's table `exchanges`.
"""

import dataclasses
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plural_gym.records.journal import Journal


@dataclass(slots=True)
class Attempt:
    """One time that a call was sent."""

    http_status: int | None = None
    """None: nothing was answered."""
    error: str | None = None
    """Why it brought no completion; None for the one that did."""
    duration_ms: float = 0.0
    with_schema: bool = False
    """Whether the endpoint was asked to keep a JSON Schema."""
    waited_ms: float = 0.0
    """Between this attempt's end and the next one."""


@dataclass(slots=True)
class Exchange:
    """One model call, answered or not. Holds no key: every text in it has been through the Redactor."""

    exchange_id: str
    ts: float
    """When it began, as Unix time in seconds."""
    purpose: str
    verifier: str | None
    """Who judges, of a judge's call."""
    seat: str | None
    protocol: str
    provider: str
    base_url: str
    model_requested: str
    model_served: str | None = None
    request_body: str = ""
    """What was sent, byte for byte; of several attempts the last one."""
    response_body: str | None = None
    """What was answered, byte for byte; None where nothing was."""
    http_status: int | None = None
    status: str = "error"
    """`ok`: a completion came and was heard. `error`: none did."""
    error_type: str | None = None
    error_message: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    queue_ms: float = 0.0
    """Waiting for a turn and a connection, over all attempts."""
    connect_ms: float = 0.0
    """Connecting, over all attempts."""
    ttft_ms: float | None = None
    """Of the last attempt: from sending the request to the first byte of the answer."""
    duration_ms: float = 0.0
    """All of it: attempts, and the waits between them."""
    attempts: list[Attempt] = dataclasses.field(default_factory=list)
    streamed: bool = False
    capture_level: str = "text"

    def to_json(self) -> dict[str, Any]:
        """The line of exchanges.jsonl."""
        return dataclasses.asdict(self)


class ExchangeLog:
    """A Trial's exchanges.jsonl. Made with the first call, so that a Trial without calls has no such file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()
        self._journal: Journal | None = None
        self._closed = False

    def append(self, exchange: Exchange) -> None:
        """Write one line; on return the kernel has it. One that comes after `close` is let go."""
        with self._guard:
            if self._closed:
                return
            if self._journal is None:
                self._journal = Journal.open(self._path)
            self._journal.append(exchange.to_json())

    def close(self) -> None:
        """Flush to the disk and close. Safe to call twice."""
        with self._guard:
            self._closed = True
            if self._journal is not None:
                self._journal.close()
