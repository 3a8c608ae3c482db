"""The way out: proxies that the environment names, and how many calls go at once."""

from collections.abc import Callable
from typing import Any

import pytest

from plural_gym.errors import MachineError
from plural_gym.gateway.pool import MAX_IN_FLIGHT, Pool, _proxy
from plural_gym.testing import StubModel


def test_a_proxy_is_taken_from_the_environment_but_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert _proxy("https://api.openai.com/v1") is None
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert _proxy("https://api.openai.com/v1") == "http://proxy.example:3128"
    assert _proxy("http://api.openai.com/v1") is None
    assert _proxy("https://models.inside.example/v1") is None
    for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000"):
        assert _proxy(f"https://{host}/v1") is None


def test_a_call_through_a_proxy_arrives(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with StubModel(["by way of the proxy"]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        completion, _ = ask("http://models.example/v1")
        assert completion.text == "by way of the proxy"
        assert proxy.requests[0].path == "http://models.example/v1/chat/completions"


def test_the_number_at_once_may_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLURAL_MODEL_CONCURRENCY", raising=False)
    assert Pool()._in_flight == MAX_IN_FLIGHT and Pool(3)._in_flight == 3
    monkeypatch.setenv("PLURAL_MODEL_CONCURRENCY", "32")
    assert Pool()._in_flight == 32
    monkeypatch.setenv("PLURAL_MODEL_CONCURRENCY", "many")
    with pytest.raises(MachineError, match="PLURAL_MODEL_CONCURRENCY is a whole number from 1, not 'many'"):
        Pool()


def test_closing_what_was_never_used_is_fine() -> None:
    Pool().close()
