"""Gateway: the door to every model. `shared().complete(request)` works from any thread.

Grading and Agents come here. The answer is heard only after its record was written, so that no step and no
score can follow from a call that is not on record.
"""

import atexit
import os
from collections.abc import Callable, Iterable

from plural_gym.errors import PluralError
from plural_gym.gateway.call import Call
from plural_gym.gateway.exchange import Exchange
from plural_gym.gateway.pool import Pool, require_http
from plural_gym.gateway.providers import resolve
from plural_gym.gateway.retrying import FIRST_WAIT_S
from plural_gym.model import Completion, ModelChoice, ModelRequest, Purpose

Record = Callable[[Exchange], None]
"""Where a call's record goes, before its answer is heard."""


class Gateway:
    """The process's way to models: one pool of connections, whoever asks.

    Args:
        in_flight: calls that are under way at the same time at most; None: 256, or what
            PLURAL_MODEL_CONCURRENCY says.
        first_wait_s: how long to wait after a first failed attempt, on average; then twice that, and so on.
    """

    def __init__(self, in_flight: int | None = None, first_wait_s: float = FIRST_WAIT_S) -> None:
        self._pool = Pool(in_flight)
        self._first_wait_s = first_wait_s
        self._schemaless: set[tuple[str, str]] = set()

    def complete(
        self,
        request: ModelRequest,
        *,
        purpose: Purpose = "agent",
        verifier: str | None = None,
        seat: str | None = None,
        record: Record | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> Completion:
        """One answer of a model.

        Args:
            request: what is asked.
            purpose: whose call it is.
            verifier: the judge's name, of a judge's call.
            seat: whose attempt it belongs to, in a party.
            record: called once in this thread, with what came of the call, also where nothing did.
            stopped: asked now and then; once it says yes, the call is given up.

        Raises:
            CredentialMissing: the key is not set.
            UsageError: the model's provider is unknown.
            RequestRefused: the endpoint does not take this request.
            MachineError: it could not be reached, or answered nothing that can be read.
        """
        endpoint = resolve(request.choice)
        call = Call(request, endpoint, purpose, verifier, seat, self._first_wait_s)
        try:
            return self._pool.run(call.run(self._pool, self._schemaless), stopped)
        except PluralError as error:
            call.exchange.error_type, call.exchange.error_message = type(error).__name__, str(error)
            raise
        finally:
            if record is not None:
                record(call.exchange)

    def close(self) -> None:
        """Break off what is under way and close all connections; a later call opens new ones."""
        self._pool.close()


def require(choices: Iterable[ModelChoice]) -> None:
    """Raise what `complete` would raise for a model that cannot be asked at all; asks nothing.

    Raises:
        CredentialMissing: a key is not set.
        UsageError: a provider is unknown.
        MachineError: what calls are made with is not installed.
    """
    for choice in dict.fromkeys(choices):
        resolve(choice)
        require_http()


_shared: Gateway | None = None
_inherited: list[Gateway] = []
"""Of a process that this one was forked from: kept, as its connections must not be closed from here."""


def shared() -> Gateway:
    """The one Gateway of this process."""
    global _shared
    if _shared is None:
        _shared = Gateway()
        atexit.register(_shared.close)
    return _shared


def _begin_anew() -> None:
    global _shared
    if _shared is not None:
        atexit.unregister(_shared.close)
        _inherited.append(_shared)
        _shared = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
