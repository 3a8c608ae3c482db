"""What is asked of a model and what it answers, as values."""

import pytest

from plural_gym.model import NOTHING_USED, ModelChoice, ModelUsage, RequestRefused, ToolCall, wrong_choice


def test_usage_adds_up_and_what_nobody_counted_stays_unknown() -> None:
    one = ModelUsage(prompt_tokens=10, completion_tokens=2, cost_usd=0.25)
    two = ModelUsage(prompt_tokens=5, completion_tokens=1)
    both = sum([one, two], NOTHING_USED)
    assert (both.calls, both.prompt_tokens, both.completion_tokens) == (2, 15, 3)
    assert both.cost_usd is None and both.cached_tokens is None
    assert (NOTHING_USED + one).cost_usd == 0.25 and NOTHING_USED.cost_usd == 0.0


def test_the_arguments_of_a_tool_call_are_what_the_model_wrote() -> None:
    assert ToolCall("1", "f", '{"a": 1}').parsed() == {"a": 1}
    assert ToolCall("1", "f", "").parsed() == {}
    for broken in ("{", "[1]", "7"):
        with pytest.raises(ValueError):
            ToolCall("1", "f", broken).parsed()


def test_a_refused_request_says_why_and_by_which_status() -> None:
    refused = RequestRefused("too long", 413)
    assert (str(refused), refused.status) == ("too long", 413)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/v1", "https://models.example", "http://[::1]:8000/v1/"]
)
def test_an_address_may_be_any_of_http(url: str) -> None:
    assert wrong_choice(ModelChoice("m", url, "none")) is None


def test_a_key_in_the_place_of_its_name_is_not_shown() -> None:
    said = wrong_choice(ModelChoice("m", "http://h", "sk-proj-123"))
    assert said is not None and "never the key itself" in said and "sk-proj" not in said
