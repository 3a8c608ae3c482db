"""The stub endpoint itself: exact, scripted, quick, and gone when its block ends."""

import asyncio
import http.client
import json
import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from plural_gym.errors import UsageError
from plural_gym.testing import StubAnswer, StubModel, StubRequest


def post(stub: StubModel, body: Any, path: str = "/chat/completions", **headers: str) -> tuple[int, Any, Any]:
    """One request with the standard library; returns status, JSON and headers."""
    address = urlsplit(stub.base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    try:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", address.path + path, sent, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), dict(answer.getheaders())
    finally:
        connection.close()


def ask(text: str = "say hello") -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def test_answers_come_one_after_the_other_and_requests_are_kept() -> None:
    with StubModel(["hello", {"a": 1}, StubAnswer("three", finish_reason="length")]) as stub:
        said = [post(stub, ask(f"call {number}"), authorization="Bearer key")[1] for number in range(3)]
    assert [one["choices"][0]["message"]["content"] for one in said] == ["hello", '{"a": 1}', "three"]
    assert [one["choices"][0]["finish_reason"] for one in said] == ["stop", "stop", "length"]
    first = stub.requests[0]
    assert (first.number, first.path, first.headers["authorization"]) == (
        1,
        "/v1/chat/completions",
        "Bearer key",
    )
    assert (
        first.body["model"] == "m" and first.messages == ask("call 0")["messages"] and first.text == "call 0"
    )


def test_the_same_requests_get_the_same_bytes() -> None:
    bodies = []
    for _ in range(2):
        with StubModel(["one two"]) as stub:
            bodies.append(post(stub, ask("three words here"))[1])
    assert bodies[0] == bodies[1]
    assert bodies[0]["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def test_a_function_answers_by_what_it_was_asked_sync_or_async() -> None:
    async def answers(request: StubRequest) -> str:
        await asyncio.sleep(0)
        return request.text.upper()

    with StubModel(lambda request: f"{request.number}: {request.text}") as stub:
        assert post(stub, ask("a"))[1]["choices"][0]["message"]["content"] == "1: a"
    with StubModel(answers) as stub:
        assert post(stub, ask("ä"))[1]["choices"][0]["message"]["content"] == "Ä"


def test_a_script_that_is_used_up_or_raises_says_so_in_its_answer() -> None:
    with StubModel([]) as stub:
        assert post(stub, ask())[:2] == (400, said("StubModel has no answer left for request 1"))
    with StubModel(lambda request: request.body["nothing"]) as stub:
        assert post(stub, ask())[:2] == (400, said("StubModel's function raised KeyError: 'nothing'"))


def said(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "stub", "code": 400}}


def test_errors_headers_tools_usage_and_raw_bodies_are_as_scripted() -> None:
    script = [
        StubAnswer.error(429, retry_after_s=1.5),
        StubAnswer(tool_calls=[("guess", {"word": "crane"}), ("guess", "{broken")]),
        StubAnswer("no usage", usage={}, headers={"X-Request-Id": "7"}),
        StubAnswer(body=b'{"odd": true}', status=599),
    ]
    with StubModel(script) as stub:
        status, body, headers = post(stub, ask())
        assert (status, body["error"]["message"], headers["Retry-After"]) == (429, "Too Many Requests", "1.5")
        calls = post(stub, ask())[1]["choices"][0]
        assert calls["finish_reason"] == "tool_calls" and calls["message"]["content"] is None
        assert [call["function"]["arguments"] for call in calls["message"]["tool_calls"]] == [
            '{"word": "crane"}',
            "{broken",
        ]
        assert len({call["id"] for call in calls["message"]["tool_calls"]}) == 2
        _, body, headers = post(stub, ask())
        assert "usage" not in body and headers["X-Request-Id"] == "7"
        assert post(stub, ask())[:2] == (599, {"odd": True})


def test_a_connection_is_cut_where_the_script_says() -> None:
    with StubModel([StubAnswer("whole", cut_after=10), StubAnswer("x", cut_after=0)]) as stub:
        with pytest.raises(http.client.IncompleteRead):
            post(stub, ask())
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            post(stub, ask())


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/models", ask(), 404, "StubModel serves POST .../chat/completions, not POST /v1/models"),
        ("/chat/completions", {**ask(), "stream": True}, 400, "StubModel does not stream"),
    ],
)
def test_what_it_does_not_serve_is_told(path: str, body: Any, status: int, message: str) -> None:
    with StubModel(["never"]) as stub:
        got, answer, _ = post(stub, body, path)
    assert (got, answer["error"]["message"]) == (status, message)


def test_a_body_that_is_no_json_reaches_the_script_as_an_empty_one() -> None:
    with StubModel(lambda request: f"{dict(request.body)} {request.messages} {request.text!r}") as stub:
        for body in (b"{broken", b"[1]", b""):
            assert post(stub, body)[1]["choices"][0]["message"]["content"] == "{} [] ''"


def test_one_connection_carries_many_requests() -> None:
    with StubModel(lambda request: "ok") as stub:
        address = urlsplit(stub.base_url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        for _ in range(3):
            connection.request("POST", "/v1/chat/completions", json.dumps(ask()).encode())
            assert connection.getresponse().read()
            used = connection.sock
        assert connection.sock is used and len(stub.requests) == 3
        connection.close()


def test_many_at_once_are_served_at_once() -> None:
    with StubModel(lambda request: StubAnswer("ok", delay_s=0.4)) as stub:
        threads = [threading.Thread(target=post, args=(stub, ask())) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(stub.requests) == 64 and stub.most_at_once > 32


def test_after_its_block_nobody_answers() -> None:
    with StubModel(lambda request: "ok") as stub:
        address = urlsplit(stub.base_url)
        waiting = socket.create_connection((address.hostname, address.port))
    with pytest.raises(OSError):
        socket.create_connection((address.hostname, address.port), timeout=2)
    waiting.settimeout(10)
    with suppress(ConnectionResetError):
        assert waiting.recv(1) == b"", "open connections are closed"
    waiting.close()
    stub.close()


def test_wrong_use_is_told() -> None:
    with pytest.raises(UsageError, match="use it in a `with` block, or call start"):
        _ = StubModel([]).base_url
    for wrong in ("hello", {"a": 1}, 7):
        with pytest.raises(UsageError, match="answers is a list of answers or a function"):
            StubModel(wrong)  # type: ignore[arg-type]
