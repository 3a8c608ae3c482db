"""Prices: what a call cost, by the provider's list of that day, which comes with `genai-prices`, offline."""

from datetime import UTC, datetime

from plural_gym.model import ModelUsage


def cost_usd(provider: str, model: str, usage: ModelUsage, asked_at: float) -> float | None:
    """The price of one call in US dollars; None where no price or no count of tokens is known, never 0.

    Args:
        provider: as the list names it, such as `openai`.
        model: the provider's own name of the model.
        usage: what the call consumed.
        asked_at: Unix time in seconds; prices change.
    """
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    counted = Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cached_tokens,
    )
    when = datetime.fromtimestamp(asked_at, UTC)
    try:
        price = calc_price(counted, model, provider_id=provider, genai_request_timestamp=when)
    except (LookupError, ValueError):
        return None
    return float(price.total_price)
