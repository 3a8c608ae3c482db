"""Which failures are worth another attempt, and how long to wait before."""

import time
from email.utils import formatdate

import pytest

from plural_gym.gateway.retrying import LONGEST_WAIT_S, may_succeed_later, wait_s


def test_busy_is_tried_again_and_refused_is_not() -> None:
    assert all(map(may_succeed_later, (408, 409, 425, 429, 500, 502, 503, 504, 520, 529)))
    assert not any(map(may_succeed_later, (200, 301, 400, 401, 402, 403, 404, 413, 422, 501)))


def test_waits_double_give_or_take_a_half_up_to_a_limit() -> None:
    for attempt in range(1, 12):
        middle = min(0.5 * 2 ** (attempt - 1), LONGEST_WAIT_S)
        waits = {wait_s(attempt, {}) for _ in range(50)}
        assert all(middle * 0.5 <= wait <= middle * 1.5 for wait in waits) and len(waits) > 40
    assert wait_s(5000, {}) <= LONGEST_WAIT_S * 1.5


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": formatdate(time.time() - 60)}, 0.0),
    ],
)
def test_what_the_endpoint_says_counts(headers: dict[str, str], seconds: float) -> None:
    assert wait_s(3, headers) == seconds


def test_a_date_is_a_wait_until_then() -> None:
    assert 28 <= wait_s(1, {"retry-after": formatdate(time.time() + 30)}) <= 31


@pytest.mark.parametrize("said", ["soon", "-5", "", "Tue, 99 Foo 2026", "nan", "inf"])
def test_what_cannot_be_read_counts_as_nothing(said: str) -> None:
    assert 0.25 <= wait_s(1, {"retry-after": said}) <= 0.75
