"""Pool: one thread with one asyncio loop and one connection pool, for all model calls of this process.

Any thread may hand it a coroutine and wait. The only module that knows the HTTP library, aiohttp, which is
loaded with the first call: see docs/decisions/0006-outbound-http.md.
"""

import asyncio
import importlib.util
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from plural_gym.errors import MachineError

MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""A longer answer is broken off."""
MAX_IN_FLIGHT = 256
"""Calls that are under way at the same time, unless PLURAL_MODEL_CONCURRENCY says otherwise; more wait."""
_CONNECT_S = 30.0
_IDLE_S = 15.0
"""How long a connection that nobody uses stays open; shorter than most servers keep theirs."""
_POLL_S = 0.25
"""How often a waiting thread looks whether it was told to stop."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

T = TypeVar("T")


class Stopped(MachineError):
    """The call was given up because its Trial or Job was stopped."""


class Unreached(Exception):
    """An attempt brought no answer; the message says why."""

    def __init__(self, why: str, *, again: bool) -> None:
        super().__init__(why)
        self.again = again
        """Whether the same call may succeed a moment later."""


@dataclass(slots=True)
class Times:
    """Where the time of one attempt went, in seconds."""

    queue: float = 0.0
    """Waiting for its turn, and for a connection of the pool."""
    connect: float = 0.0
    """Name look-up, connecting and TLS; 0 where a connection was open already."""
    first_byte: float | None = None
    """From sending the request to the first byte of the answer; None where none came."""
    total: float = 0.0
    began: float = field(default=0.0, repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint answered, whole."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


def require_http() -> None:
    """Raise MachineError where the HTTP library is not installed; says how to install it."""
    if importlib.util.find_spec("aiohttp") is None:
        raise MachineError(
            "model calls need aiohttp, which is not installed; get it by: pip install 'plural-gym[models]'"
        )


class Pool:
    """The thread, its loop and its connections; all are made with the first call."""

    def __init__(self, in_flight: int | None = None) -> None:
        self._in_flight = in_flight or _from_environment()
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._session: Any = None
        self._turns: asyncio.Semaphore | None = None

    def run(self, work: Coroutine[Any, Any, T], stopped: Callable[[], bool] | None = None) -> T:
        """What the coroutine returns, awaited in the pool's loop while this thread waits.

        Args:
            work: run in the pool's thread.
            stopped: asked now and then; once it says yes, the coroutine is cancelled.

        Raises:
            Stopped: `stopped` said yes.
        """
        try:
            require_http()
            future = asyncio.run_coroutine_threadsafe(work, self._started())
        except BaseException:
            work.close()
            raise
        try:
            while not wait([future], None if stopped is None else _POLL_S).done:
                if stopped is not None and stopped():
                    raise Stopped("the model call was given up: the Job was stopped.")
            return future.result()
        except CancelledError:
            raise Stopped("the model call was given up: the gateway was closed.") from None
        finally:
            future.cancel()

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float, times: Times
    ) -> Reply:
        """One attempt, in the pool's loop. Redirects are not followed: they would carry the key elsewhere.

        Raises:
            Unreached: no whole answer came.
        """
        import aiohttp

        assert self._turns is not None
        began = time.monotonic()
        try:
            async with self._turns:
                times.queue = times.began = time.monotonic() - began
                times.began += began
                request = self._opened().post(
                    url,
                    data=body,
                    headers=headers,
                    proxy=_proxy(url),
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=timeout_s, connect=min(timeout_s, _CONNECT_S)),
                    trace_request_ctx=times,
                )
                async with request as answer:
                    times.first_byte = time.monotonic() - times.began - times.connect
                    content = await _content(answer)
                    fields = {name.lower(): value for name, value in answer.headers.items()}
                    return Reply(answer.status, fields, content)
        except (aiohttp.ClientError, OSError) as error:
            raise _unreached(error, timeout_s) from None
        finally:
            times.total = time.monotonic() - began

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._work, name="plural-gateway", daemon=True)
                self._thread.start()
            return self._loop

    def _work(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._turns = asyncio.Semaphore(self._in_flight)
        self._loop.run_forever()

    def _opened(self) -> Any:
        """The session, made inside the loop that it belongs to."""
        if self._session is None:
            import aiohttp

            # Turns are counted here, so that the time in the queue is known.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S)
            traced = aiohttp.TraceConfig()
            traced.on_connection_create_start.append(_connecting)
            traced.on_connection_create_end.append(_connected)
            self._session = aiohttp.ClientSession(
                connector=connector, trace_configs=[traced], cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    def close(self) -> None:
        """Break off what is under way, close every connection and end the thread. Safe to call twice."""
        with self._guard:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return

        async def end() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            session, self._session = self._session, None
            if session is not None:
                await session.close()

        asyncio.run_coroutine_threadsafe(end(), loop).result(_CONNECT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_CONNECT_S)
        loop.close()


async def _content(answer: Any) -> bytes:
    """The whole body, up to a limit."""
    parts, size = [], 0
    async for part in answer.content.iter_any():
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise Unreached(f"its answer is longer than {MAX_ANSWER_BYTES >> 20} MiB", again=False)
        parts.append(part)
    return b"".join(parts)


async def _connecting(_session: Any, context: Any, _params: Any) -> None:
    context.trace_request_ctx.connect = -time.monotonic()


async def _connected(_session: Any, context: Any, _params: Any) -> None:
    context.trace_request_ctx.connect += time.monotonic()


def _unreached(error: BaseException, timeout_s: float) -> Unreached:
    """What the HTTP library's error means."""
    import aiohttp

    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Unreached(f"no connection within {min(timeout_s, _CONNECT_S):g} s", again=True)
    if isinstance(error, TimeoutError):
        return Unreached(f"no whole answer within {timeout_s:g} s", again=True)
    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ServerFingerprintMismatch):
        return Unreached(f"no secure connection: {_said(error)}", again=False)
    if isinstance(error, aiohttp.ClientConnectorError):
        return Unreached(f"no connection: {_said(error)}", again=True)
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ClientConnectionError | OSError):
        return Unreached(f"the connection was cut: {_said(error)}", again=True)
    return Unreached(f"it speaks no HTTP: {_said(error)}", again=False)


def _said(error: BaseException) -> str:
    text = str(error).strip().removesuffix(".")
    return text[:300] or type(error).__name__


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for this address; none for this machine itself."""
    from urllib.request import getproxies, proxy_bypass  # which loads all of http and ssl

    parts = urlsplit(url)
    if parts.hostname in _LOOPBACK or proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _from_environment() -> int:
    said = os.environ.get("PLURAL_MODEL_CONCURRENCY", "")
    if not said:
        return MAX_IN_FLIGHT
    if not (said.isdecimal() and int(said) > 0):
        raise MachineError(f"PLURAL_MODEL_CONCURRENCY is a whole number from 1, not {said!r}.")
    return int(said)
