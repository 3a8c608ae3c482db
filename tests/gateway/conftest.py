"""What tests of the gateway share: a Gateway that waits but a moment before it tries again."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plural_gym.gateway.client import Gateway
from plural_gym.gateway.exchange import Exchange
from plural_gym.model import Completion, ModelChoice, ModelRequest


@pytest.fixture(scope="session")
def http() -> None:
    """Skip where the extra `models` is not installed; fail in CI."""
    if importlib.util.find_spec("aiohttp") is None:
        missing = "needs the extra `models`: pip install 'plural-gym[models]'"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)


@pytest.fixture
def gateway(http: None) -> Iterator[Gateway]:
    made = Gateway(first_wait_s=0.005)
    yield made
    made.close()


@pytest.fixture
def ask(gateway: Gateway) -> Callable[..., tuple[Completion, Exchange]]:
    """`ask(base_url)`: one call; returns what was answered and its record."""

    def ask(base_url: str, *, model: str = "m", auth: str | None = None, **more: Any) -> Any:
        records: list[Exchange] = []
        told = [{"role": "user", "content": "hello there"}]
        request = ModelRequest(ModelChoice(model, base_url, auth), told, **more)
        completion = gateway.complete(request, record=records.append)
        (record,) = records
        return completion, record

    return ask
