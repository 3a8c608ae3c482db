"""Which failed attempts are made again, and how long to wait before."""

import math
import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that say "not now"; any other says "not like this", or "not you"."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
MOST_PATIENCE_S = 120.0
"""Where an endpoint asks for a longer wait than this, the call is given up at once."""


def may_succeed_later(status: int) -> bool:
    """Whether the same request may be answered a moment later."""
    return status in AGAIN or status > 504


def wait_s(attempt: int, headers: Mapping[str, str], first_s: float = FIRST_WAIT_S) -> float:
    """Seconds to wait after a failed attempt: what `Retry-After` says, else doubling, give or take a half.

    Args:
        attempt: the one that failed, counted from 1.
        headers: of its answer, by lower-case name; empty where none came.
        first_s: the wait after the first, on average.
    """
    asked = _asked(headers)
    if asked is not None:
        return asked
    # Many Trials fail at the same moment; they must not all come back at the same moment.
    return min(math.ldexp(first_s, min(attempt - 1, 60)), LONGEST_WAIT_S) * random.uniform(0.5, 1.5)


def _asked(headers: Mapping[str, str]) -> float | None:
    """What the endpoint asks for, in seconds or as a date; None where it says nothing that can be read."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()
        try:
            value = float(said) / unit
        except ValueError:
            continue
        if 0 <= value < math.inf:
            return value
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(moment.timestamp() - time.time(), 0.0)
