"""What a call cost, by the list of its day; what is not known is None and never 0."""

import importlib.util
import os
from datetime import UTC, datetime

import pytest

from plural_gym.gateway.prices import cost_usd
from plural_gym.model import ModelUsage

NOW = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
USED = ModelUsage(prompt_tokens=1000, completion_tokens=100, cached_tokens=400)


@pytest.fixture(autouse=True)
def _list_is_there() -> None:
    if importlib.util.find_spec("genai_prices") is None:
        missing = "needs the extra `models`: pip install 'plural-gym[models]'"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)


def test_a_call_costs_what_the_provider_lists() -> None:
    assert cost_usd("openai", "gpt-5.6-luna", USED, NOW) == pytest.approx(0.000248, abs=1e-12)


def test_the_price_is_that_of_the_day_of_the_call() -> None:
    june = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
    assert cost_usd("openai", "gpt-5.6-luna", USED, june) == pytest.approx(0.00124, abs=1e-12)


@pytest.mark.parametrize(
    ("provider", "model", "usage"),
    [
        ("openai", "a-model-of-tomorrow", USED),
        ("nobody", "gpt-5.6-luna", USED),
        ("openai", "gpt-5.6-luna", ModelUsage(prompt_tokens=1000)),
        ("openai", "gpt-5.6-luna", ModelUsage()),
    ],
)
def test_what_is_not_known_has_no_price(provider: str, model: str, usage: ModelUsage) -> None:
    assert cost_usd(provider, model, usage, NOW) is None
