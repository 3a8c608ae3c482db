"""StubModel: an endpoint on this machine that speaks chat completions and answers what a test tells it to.

For tests of judges, Agents and Harnesses without a model, a network or a key. Deterministic: the same
requests get the same answers, and usage is counted by words. Standard library only.

    with StubModel(["hello"]) as stub:
        ...                                # anything that calls stub.base_url
        assert stub.requests[0].messages[-1]["content"] == "say hello"
"""

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import responses
from typing import Any, Self

from plural_gym.errors import UsageError

_START_S = 10.0
"""How long the server's thread may take to begin and to end."""


@dataclass(frozen=True, slots=True)
class StubRequest:
    """One request as it came in."""

    number: int
    """Counted from 1, in order of arrival."""
    path: str
    headers: Mapping[str, str]
    """By lower-case name, the key among them."""
    body: Mapping[str, Any]
    """The JSON that was sent; {} where it was none."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation that was sent."""
        return list(self.body.get("messages") or ())

    @property
    def text(self) -> str:
        """The texts of all messages, one after the other."""
        return "\n\n".join(str(message.get("content") or "") for message in self.messages)


@dataclass(frozen=True, slots=True)
class StubAnswer:
    """What the endpoint does with one request. A text is short for its `content`, a mapping for its JSON."""

    content: str | None = None
    """The message's text."""
    tool_calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    """(tool, arguments) pairs that the model asks for; arguments that are a text are sent as they are."""
    finish_reason: str = "stop"
    usage: Mapping[str, Any] | None = None
    """None: words are counted. {}: the answer has no usage."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent in place of a completion, whatever it is."""
    delay_s: float = 0.0
    """Wait so long before answering."""
    cut_after: int | None = None
    """Close the connection after so many bytes of the body; 0: before anything is sent."""

    @classmethod
    def error(cls, status: int, message: str = "", retry_after_s: float | None = None) -> Self:
        """An error as OpenAI words it."""
        said = {"error": {"message": message or _phrase(status), "type": "stub", "code": status}}
        headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:g}"}
        return cls(status=status, body=json.dumps(said).encode(), headers=headers)


Answer = StubAnswer | str | Mapping[str, Any]
Script = Sequence[Answer] | Callable[[StubRequest], Answer | Awaitable[Answer]]


class StubModel:
    """A server at 127.0.0.1 in a thread of its own, for use in a `with` block.

    Args:
        answers: one answer after the other, or a function of a StubRequest, sync or async, that gives each.
            When a list is used up, requests get the status 400 and say so.
        ssl_context: serve over TLS with this.
    """

    def __init__(self, answers: Script, *, ssl_context: ssl.SSLContext | None = None) -> None:
        if isinstance(answers, str | Mapping) or not (callable(answers) or isinstance(answers, Sequence)):
            raise UsageError(f"answers is a list of answers or a function of a request, got {answers!r}.")
        self.requests: list[StubRequest] = []
        """Everything that was asked, in order of arrival."""
        self.most_at_once = 0
        """The most requests that were open at the same time."""
        self._answers = answers
        self._ssl = ssl_context
        self._open = 0
        self._port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connections: set[asyncio.Task[Any] | None] = set()
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """Where it listens, as judges and OpenAI's client take it: `http://127.0.0.1:PORT/v1`."""
        if self._thread is None:
            raise UsageError("the StubModel does not listen; use it in a `with` block, or call start().")
        return f"http{'s' if self._ssl else ''}://127.0.0.1:{self._port}/v1"

    def start(self) -> Self:
        """Begin to listen; `close` ends it."""
        ready = threading.Event()
        loop = self._loop = asyncio.new_event_loop()

        def run() -> None:
            asyncio.set_event_loop(loop)
            server = loop.run_until_complete(
                asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._ssl, backlog=1024)
            )
            self._port = server.sockets[0].getsockname()[1]
            ready.set()
            loop.run_forever()
            # Who has just connected is let in first: not every system tells them that nobody listens.
            loop.run_until_complete(asyncio.sleep(0.01))
            server.close()
            loop.run_until_complete(self._break_off())
            loop.close()

        self._thread = threading.Thread(target=run, name="plural-stub-model", daemon=True)
        self._thread.start()
        ready.wait(_START_S)
        return self

    def close(self) -> None:
        """Stop listening and break off what is open. Safe to call twice."""
        if self._loop is not None and self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_START_S)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def _break_off(self) -> None:
        """End every connection; one that was just accepted has to be opened before it can be closed."""
        accepted = asyncio.all_tasks() - self._connections - {asyncio.current_task()}
        if accepted:
            await asyncio.wait(accepted, timeout=1.0)
            await asyncio.sleep(0)  # in which it begins to be served
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # in which the sockets are closed

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        task = asyncio.current_task()
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except asyncio.CancelledError:
            writer.transport.abort()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass  # the other end has gone
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; returns whether the connection stays open."""
        first = await reader.readexactly(1)
        if not first.isalpha():  # no HTTP; perhaps somebody who expects TLS
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return False
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
        }
        sent = await reader.readexactly(int(headers.get("content-length") or 0))
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            answer = await self._answer(method, path, headers, sent)
            await asyncio.sleep(answer.delay_s)
        finally:
            self._open -= 1
        body = answer.body if answer.body is not None else b""
        lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answer.headers}
        start = f"HTTP/1.1 {answer.status} {_phrase(answer.status)}\r\n"
        start += "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
        if answer.cut_after != 0:
            writer.write(start.encode("latin-1") + body[: answer.cut_after])
            await writer.drain()
        return answer.cut_after is None and headers.get("connection", "").lower() != "close"

    async def _answer(self, method: str, path: str, headers: Mapping[str, str], sent: bytes) -> StubAnswer:
        """What to send, its body made."""
        if method != "POST" or not path.partition("?")[0].endswith("/chat/completions"):
            return StubAnswer.error(404, f"StubModel serves POST .../chat/completions, not {method} {path}")
        body: Any = None
        with suppress(ValueError):
            body = json.loads(sent)
        request = StubRequest(
            len(self.requests) + 1, path, headers, body if isinstance(body, Mapping) else {}
        )
        self.requests.append(request)
        if request.body.get("stream"):
            return StubAnswer.error(400, "StubModel does not stream")
        try:
            given = self._given(request)
            answer = await given if isinstance(given, Awaitable) else given
        except Exception as error:
            return StubAnswer.error(400, f"StubModel's function raised {type(error).__name__}: {error}")
        if not isinstance(answer, StubAnswer):
            answer = StubAnswer(answer if isinstance(answer, str) else json.dumps(answer))
        return answer if answer.body is not None else _completed(answer, request)

    def _given(self, request: StubRequest) -> Answer | Awaitable[Answer]:
        if callable(self._answers):
            return self._answers(request)
        if request.number > len(self._answers):
            return StubAnswer.error(400, f"StubModel has no answer left for request {request.number}")
        return self._answers[request.number - 1]


def _phrase(status: int) -> str:
    return responses.get(status, "Unassigned")


def _completed(answer: StubAnswer, request: StubRequest) -> StubAnswer:
    """The answer with a chat completion for its body."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.content}
    if answer.tool_calls:
        message["tool_calls"] = [
            {
                "id": f"call_{request.number}_{place}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for place, (name, given) in enumerate(answer.tool_calls)
        ]
    reason = "tool_calls" if answer.tool_calls and answer.finish_reason == "stop" else answer.finish_reason
    completion: dict[str, Any] = {
        "id": f"chatcmpl-stub-{request.number}",
        "object": "chat.completion",
        "created": 0,
        "model": request.body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    asked, said = len(request.text.split()), len((answer.content or "").split())
    counted = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    if answer.usage != {}:
        completion["usage"] = dict(answer.usage) if answer.usage is not None else counted
    return StubAnswer(
        status=answer.status,
        headers=answer.headers,
        body=json.dumps(completion, ensure_ascii=False).encode("utf-8", "backslashreplace"),
        delay_s=answer.delay_s,
        cut_after=answer.cut_after,
    )
