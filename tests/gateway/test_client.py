"""The door to every model: whatever endpoints do, a call ends in an answer or an error, and on record."""

import dataclasses
import json
import multiprocessing
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plural_gym.errors import CredentialMissing, MachineError, UnknownName
from plural_gym.gateway import client
from plural_gym.gateway.client import Gateway, require, shared
from plural_gym.gateway.exchange import Exchange
from plural_gym.gateway.pool import MAX_ANSWER_BYTES, Stopped
from plural_gym.model import ModelChoice, ModelRequest, RequestRefused
from plural_gym.testing import StubAnswer, StubModel

Ask = Callable[..., Any]
TOLD = [{"role": "user", "content": "hello there"}]


def request_to(stub: StubModel, **more: Any) -> ModelRequest:
    return ModelRequest(ModelChoice("m", stub.base_url), TOLD, **more)


def test_a_call_brings_the_answer_with_what_it_used(ask: Ask) -> None:
    with StubModel([StubAnswer("good day", usage={"prompt_tokens": 12, "completion_tokens": 3})]) as stub:
        completion, record = ask(stub.base_url, settings={"temperature": 0.5})
    assert (completion.text, completion.finish_reason, completion.model) == ("good day", "stop", "m")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (12, 3)
    assert completion.usage.cost_usd is None and completion.exchange_id == record.exchange_id
    assert stub.requests[0].body == {"temperature": 0.5, "model": "m", "messages": TOLD}
    assert "authorization" not in stub.requests[0].headers


def test_the_record_tells_the_whole_call(ask: Ask) -> None:
    before = time.time()
    with StubModel([StubAnswer("good day", delay_s=0.05)]) as stub:
        _, record = ask(stub.base_url)
        told = record.to_json()
    assert json.loads(told["request_body"]) == stub.requests[0].body
    assert json.loads(told["response_body"])["choices"][0]["message"]["content"] == "good day"
    assert (told["status"], told["http_status"], told["error_type"], told["purpose"]) == (
        "ok",
        200,
        None,
        "agent",
    )
    assert (told["protocol"], told["provider"], told["model_requested"]) == ("openai.chat", "own", "m")
    assert before <= told["ts"] <= time.time()
    assert 50 <= told["ttft_ms"] <= told["duration_ms"] and told["connect_ms"] > 0 and told["queue_ms"] >= 0
    assert [attempt["http_status"] for attempt in told["attempts"]] == [200]
    json.dumps(told)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_succeed_later_is_asked_again(ask: Ask, status: int) -> None:
    with StubModel([StubAnswer.error(status), "ok"]) as stub:
        completion, record = ask(stub.base_url)
    assert completion.text == "ok"
    assert [attempt.http_status for attempt in record.attempts] == [status, 200]
    assert record.attempts[0].waited_ms > 0 and record.attempts[1].error is None


def test_an_answered_call_is_never_made_again(ask: Ask, gateway: Gateway) -> None:
    def refuse(exchange: Exchange) -> None:
        raise MachineError("the disk is full")

    with StubModel(lambda request: "ok") as stub:
        with pytest.raises(MachineError, match="disk is full"):
            gateway.complete(request_to(stub), record=refuse)
        assert len(stub.requests) == 1


def test_the_wait_that_an_endpoint_asks_for_is_kept(ask: Ask) -> None:
    with StubModel([StubAnswer.error(429, "slow down", retry_after_s=0.2), "ok"]) as stub:
        began = time.monotonic()
        _, record = ask(stub.base_url)
    assert time.monotonic() - began >= 0.2 and record.attempts[0].waited_ms == 200
    assert record.attempts[0].error == "429: slow down"


def test_a_wait_that_nobody_would_sit_out_ends_the_call(ask: Ask) -> None:
    with (
        StubModel(lambda request: StubAnswer.error(429, "come back tomorrow", retry_after_s=86_400)) as stub,
        pytest.raises(MachineError, match=r"429: come back tomorrow \(it asks to wait 86,400 s\)"),
    ):
        ask(stub.base_url)
    assert len(stub.requests) == 1


def test_an_endpoint_that_stays_busy_is_the_machines_failure(gateway: Gateway) -> None:
    records: list[Exchange] = []
    with StubModel(lambda request: StubAnswer.error(503, "overloaded")) as stub:
        with pytest.raises(
            MachineError, match=r"model 'm' at http://127.* gave no answer in 3 attempts: 503: overl"
        ):
            gateway.complete(request_to(stub, max_attempts=3), record=records.append)
        assert len(stub.requests) == 3
    (record,) = records
    assert (record.status, record.error_type, record.http_status) == ("error", "MachineError", 503)
    assert record.error_message is not None and "overloaded" in record.error_message
    assert "overloaded" in (record.response_body or "")


def test_a_cut_answer_is_asked_for_again(ask: Ask) -> None:
    with StubModel([StubAnswer("never whole", cut_after=40), StubAnswer("x", cut_after=0), "whole"]) as stub:
        completion, record = ask(stub.base_url)
    assert completion.text == "whole" and len(stub.requests) == 3
    assert all("the connection was cut" in str(attempt.error) for attempt in record.attempts[:2])


def test_a_slow_endpoint_is_given_up_in_time_and_asked_again(ask: Ask) -> None:
    with StubModel([StubAnswer("late", delay_s=5), "ok"]) as stub:
        completion, record = ask(stub.base_url, timeout_s=0.2)
    assert completion.text == "ok" and record.attempts[0].error == "no whole answer within 0.2 s"
    assert record.duration_ms < 2000


def test_nobody_at_the_address(ask: Ask) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        port = taken.getsockname()[1]
        with pytest.raises(MachineError, match="gave no answer in 2 attempts: no connection"):
            ask(f"http://127.0.0.1:{port}/v1", max_attempts=2)


def test_a_name_that_leads_nowhere(ask: Ask) -> None:
    with pytest.raises(MachineError, match=r"gave no answer: no connection.*nowhere\.invalid"):
        ask("http://nowhere.invalid/v1", max_attempts=1)


def test_something_else_than_http_at_the_address(ask: Ask) -> None:
    with StubModel(["never asked"]) as stub, pytest.raises(MachineError, match="no secure connection"):
        ask(stub.base_url.replace("http:", "https:"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_certificate_that_nobody_vouches_for(ask: Ask, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=127.0.0.1",
    ]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with StubModel(["never heard"], ssl_context=context) as stub:
        with pytest.raises(MachineError, match=r"gave no answer: no secure connection.*certificate"):
            ask(stub.base_url)
        assert not stub.requests


def test_an_answer_without_end_is_broken_off(ask: Ask) -> None:
    with StubModel([StubAnswer("x" * (MAX_ANSWER_BYTES + 1))]) as stub:
        with pytest.raises(MachineError, match="its answer is longer than 8 MiB"):
            ask(stub.base_url)
        assert len(stub.requests) == 1


def test_a_long_answer_within_the_limit_is_heard_whole(ask: Ask) -> None:
    with StubModel(["ä" * 3_000_000]) as stub:
        completion, record = ask(stub.base_url)
    assert completion.text == "ä" * 3_000_000 and completion.text in str(record.response_body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>Welcome to the hotel</html>", "it is no JSON: '<html>Welcome"),
        (b"", "it is no JSON: ''"),
        (b"[" * 100_000, "it is no JSON"),
        (b'{"choices": []}', r"it is no chat completion: {\"choices\": \[\]}"),
        (b'{"choices": [{}]}', "its first choice holds no message"),
        (b'{"choices": [{"message": {"content": 7}}]}', "its message's content is int, not text"),
        (b'{"choices": [{"message": {"tool_calls": [{}]}}]}', "one of its tool calls names no function"),
        (b"\xff\xfe\x00", "it is no JSON"),
    ],
)
def test_an_answer_that_is_no_completion_is_told_and_not_asked_for_again(
    ask: Ask, body: bytes, said: str
) -> None:
    with StubModel(lambda request: StubAnswer(body=body)) as stub:
        with pytest.raises(MachineError, match=f"answered what cannot be read: {said}"):
            ask(stub.base_url)
        assert len(stub.requests) == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, r"wants a key \(401: no\); name its variable as auth"),
        (403, r"wants a key \(403: no\)"),
        (404, r"does not exist there \(404: no\); check name and base_url"),
        (301, r"leads to elsewhere \(301\); give that as base_url"),
    ],
)
def test_statuses_that_no_second_try_changes(ask: Ask, status: int, said: str) -> None:
    with StubModel(lambda request: StubAnswer.error(status, "no")) as stub:
        with pytest.raises(MachineError, match=said):
            ask(stub.base_url)
        assert len(stub.requests) == 1


@pytest.mark.parametrize("status", [400, 402, 413, 422])
def test_a_request_that_is_not_taken_is_an_error_of_its_own(ask: Ask, status: int) -> None:
    with (
        StubModel(lambda request: StubAnswer.error(status, "too long")) as stub,
        pytest.raises(RequestRefused, match=rf"does not take the request \({status}: too long\)") as refused,
    ):
        ask(stub.base_url)
    assert refused.value.status == status


def test_a_redirect_is_not_followed_with_the_key(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_KEY", "key-of-the-first-host")
    with StubModel(["never asked"]) as other:
        away = StubAnswer(status=307, headers={"Location": f"{other.base_url}/chat/completions"}, body=b"")
        with StubModel([away]) as stub, pytest.raises(MachineError, match="leads to http://127"):
            ask(stub.base_url, auth="STUB_KEY")
        assert not other.requests


def test_tools_are_called_with_what_the_model_wrote(ask: Ask) -> None:
    tools = [{"type": "function", "function": {"name": "guess", "parameters": {"type": "object"}}}]
    with StubModel([StubAnswer(tool_calls=[("guess", {"word": "crane"}), ("guess", "{broken")])]) as stub:
        completion, _ = ask(stub.base_url, tools=tools)
        assert stub.requests[0].body["tools"] == tools
    first, second = completion.tool_calls
    assert (completion.text, completion.finish_reason) == ("", "tool_calls")
    assert (first.name, first.parsed(), second.arguments) == ("guess", {"word": "crane"}, "{broken")
    with pytest.raises(ValueError):
        second.parsed()


def test_an_endpoint_that_knows_no_schema_is_asked_without_and_never_again_with(ask: Ask) -> None:
    def answers(request: Any) -> Any:
        unknown = "response_format" in request.body
        return StubAnswer.error(400, "response_format is not supported") if unknown else "{}"

    schema = {"type": "object"}
    with StubModel(answers) as stub:
        for _ in range(2):
            completion, record = ask(stub.base_url, answer_schema=schema)
            assert completion.text == "{}" and "response_format" not in record.request_body
        asked = ["response_format" in request.body for request in stub.requests]
        assert asked == [True, False, False]
        assert stub.requests[0].body["response_format"]["json_schema"]["schema"] == schema


def test_a_request_that_is_not_taken_either_way_tells_the_first_reason(ask: Ask) -> None:
    with StubModel(lambda request: StubAnswer.error(400, f"refused as number {request.number}")) as stub:
        for first in (1, 3):
            with pytest.raises(RequestRefused, match=f"refused as number {first}"):
                ask(stub.base_url, answer_schema={"type": "object"})


def test_half_a_surrogate_pair_goes_as_its_escape(ask: Ask) -> None:
    with StubModel(lambda request: request.messages[0]["content"] + " 日本 \ud83d") as stub:
        completion, record = ask(stub.base_url)
    assert completion.text == "hello there 日本 \\ud83d" and "日本" in str(record.response_body)


KEY = "sk-Live+Key/with=odd&chars-0123456789"


def test_the_key_is_sent_and_stands_nowhere_else(
    ask: Ask, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    import base64
    from urllib.parse import quote

    monkeypatch.setenv("STUB_KEY", KEY + "\n")
    seen = base64.b64encode(f"user:{KEY}".encode()).decode()
    plain = {"choices": [{"message": {"content": f"escaped {KEY}"}}]}
    odd = "".join(f"\\u{ord(letter):04x}" if letter in "+/&" else letter for letter in json.dumps(plain))
    echoes = [
        f"you sent {KEY}",
        f"encoded {seen}",
        f"quoted {quote(KEY, safe='')}",
        StubAnswer(body=odd.encode()),
    ]
    with StubModel(echoes) as stub:
        for _ in echoes:
            completion, record = ask(stub.base_url, auth="STUB_KEY")
            kept = completion.text + json.dumps(record.to_json())
            assert (
                "Live" not in kept.replace("\\\\", "\\")
                and KEY not in kept
                and quote(KEY, safe="") not in kept
                and seen[8:40] not in kept
            )
            assert "[redacted]" in completion.text
        assert {request.headers["authorization"] for request in stub.requests} == {f"Bearer {KEY}"}
    records: list[Exchange] = []
    refusing = StubAnswer.error(401, f"the key {KEY} is wrong")
    with StubModel([refusing]) as stub:
        choice = ModelChoice("m", stub.base_url, "STUB_KEY")
        with pytest.raises(
            MachineError, match=r"refused the key of STUB_KEY \(401: the key \[redacted\]"
        ) as error:
            gateway.complete(ModelRequest(choice, TOLD), record=records.append)
    assert KEY not in str(error.value) and KEY not in json.dumps(records[0].to_json())


def test_256_calls_at_once_share_one_loop_and_one_pool(gateway: Gateway) -> None:
    answers: list[str] = []
    with StubModel(lambda request: StubAnswer("ok", delay_s=0.3)) as stub:
        threads = [
            threading.Thread(target=lambda: answers.append(gateway.complete(request_to(stub)).text))
            for _ in range(256)
        ]
        before = threading.active_count()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert threading.active_count() <= before + 1, "one thread serves all"
        assert answers == ["ok"] * 256 and stub.most_at_once > 100


def test_more_calls_than_may_be_under_way_wait_their_turn(http: None) -> None:
    gateway, records = Gateway(in_flight=2), list[Exchange]()
    with StubModel(lambda request: StubAnswer("ok", delay_s=0.1)) as stub:
        ask = lambda: gateway.complete(request_to(stub), record=records.append)  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stub.most_at_once == 2
    gateway.close()
    assert (
        max(record.queue_ms for record in records) > 150 and min(record.queue_ms for record in records) < 50
    )


def test_a_call_is_given_up_when_its_job_stops(gateway: Gateway) -> None:
    stop, records = threading.Event(), list[Exchange]()
    with StubModel(lambda request: StubAnswer("late", delay_s=30)) as stub:
        threading.Timer(0.2, stop.set).start()
        began = time.monotonic()
        with pytest.raises(Stopped, match="the Job was stopped"):
            gateway.complete(request_to(stub), record=records.append, stopped=stop.is_set)
        assert time.monotonic() - began < 3
    assert (records[0].status, records[0].error_type) == ("error", "Stopped")


def test_closing_breaks_off_what_is_under_way_and_a_later_call_opens_anew(gateway: Gateway) -> None:
    raised: list[BaseException] = []

    def call(stub: StubModel) -> None:
        try:
            gateway.complete(request_to(stub))
        except MachineError as error:
            raised.append(error)

    with StubModel(lambda request: StubAnswer("ok", delay_s=0 if request.number > 1 else 30)) as stub:
        thread = threading.Thread(target=call, args=(stub,))
        thread.start()
        while not stub.requests:
            time.sleep(0.01)
        gateway.close()
        thread.join(5)
        assert not thread.is_alive() and isinstance(raised[0], Stopped)
        assert gateway.complete(request_to(stub)).text == "ok"


def _in_a_child(base_url: str, answer: Any) -> None:
    request = ModelRequest(ModelChoice("m", base_url), TOLD)
    answer.put((shared().complete(request).text, threading.active_count()))


def test_a_forked_process_gets_connections_of_its_own(http: None) -> None:
    context = multiprocessing.get_context("fork")
    with StubModel(lambda request: f"answer {request.number}") as stub:
        request = ModelRequest(ModelChoice("m", stub.base_url), TOLD)
        assert shared().complete(request).text == "answer 1"
        answer = context.Queue()
        child = context.Process(target=_in_a_child, args=(stub.base_url, answer))
        child.start()
        assert answer.get(timeout=20)[0] == "answer 2"
        child.join(10)
        assert child.exitcode == 0
        assert shared().complete(request).text == "answer 3"
    client.shared().close()


def test_what_cannot_be_asked_is_found_without_asking(http: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("PLURAL_API_URL", raising=False)
    with pytest.raises(CredentialMissing, match="set the variable OPENAI_API_KEY"):
        require([ModelChoice("m", "http://127.0.0.1:1/v1"), ModelChoice("openai/gpt-5.6-luna")])
    with pytest.raises(UnknownName, match="did you mean 'openai'"):
        require([ModelChoice("openia/gpt-5.6-luna")])
    require([ModelChoice("m", "http://127.0.0.1:1/v1")])


def test_the_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    choice = ModelChoice("m", "http://127.0.0.1:1/v1")
    with pytest.raises(MachineError, match=r"pip install 'plural-gym\[models\]'"):
        require([choice])
    with pytest.raises(MachineError, match=r"pip install 'plural-gym\[models\]'"):
        Gateway().complete(ModelRequest(choice, TOLD))


def test_a_request_is_a_value(ask: Ask) -> None:
    request = ModelRequest(ModelChoice("m"), TOLD)
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.timeout_s = 1  # type: ignore[misc]
