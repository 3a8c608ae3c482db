"""How far two raters of the same work agree: a judge and a person, or two people.

Ratings are numbers on one scale, in pairs: a[i] and b[i] rate the same work. A quantity that the numbers
cannot give is None, never 0. Random draws come from a fixed seed.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from plural_gym.errors import UsageError
from plural_gym.statistics import Interval

Ratings = Sequence[float]
_SAME = 1e-9
"""Ratings that differ by less are equal: means of several judgments carry rounding."""


def agreement(a: Ratings, b: Ratings, within: float = 0.0) -> float | None:
    """The share of pairs whose ratings differ by no more than `within`. None without pairs."""
    _paired(a, b)
    if not a:
        return None
    return sum(abs(x - y) <= within + _SAME for x, y in zip(a, b, strict=True)) / len(a)


def mean_difference(a: Ratings, b: Ratings) -> float | None:
    """The mean of a[i] - b[i]: how much higher `a` rates. None without pairs."""
    _paired(a, b)
    return math.fsum(x - y for x, y in zip(a, b, strict=True)) / len(a) if a else None


def weighted_kappa(a: Ratings, b: Ratings) -> float | None:
    """Cohen's kappa with quadratic weights: 1 perfect agreement, 0 that of chance, below 0 worse.

    1 - D_o / D_e, where D_o is the mean of (a_i - b_i)² over pairs and D_e the mean of (a_i - b_j)² over all
    i and j: what raters with these habits would differ by if they rated each other's work at random. The
    weights (i - j)² / (k - 1)² of the definition by categories differ from that by a factor which cancels, so
    ratings need not be whole numbers. With two categories it is the plain kappa.
    Source: Cohen 1968; Fleiss and Cohen 1973 for quadratic weights.

    None below two pairs, and where all ratings are the same number: there is nothing that chance could get
    wrong.
    """
    _paired(a, b)
    if len(a) < 2:
        return None
    observed = math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / len(a)
    mean_a, mean_b = math.fsum(a) / len(a), math.fsum(b) / len(b)
    variances = math.fsum((x - mean_a) ** 2 for x in a) + math.fsum((y - mean_b) ** 2 for y in b)
    expected = variances / len(a) + (mean_a - mean_b) ** 2
    return None if expected < _SAME else 1 - observed / expected


def rank_correlation(a: Ratings, b: Ratings) -> float | None:
    """Spearman's correlation of ranks, ties at their mean rank: 1 the same order, -1 the opposite one.

    The product-moment correlation of the ranks. None below two pairs, and where one side is all the same.
    Source: Spearman 1904.
    """
    _paired(a, b)
    if len(a) < 2:
        return None
    x, y = _ranks(a), _ranks(b)
    x, y = x - x.mean(), y - y.mean()
    spread = math.sqrt(float(x @ x) * float(y @ y))
    return None if spread < _SAME else float(x @ y) / spread


def bootstrap(
    statistic: Callable[[Ratings, Ratings], float | None],
    a: Ratings,
    b: Ratings,
    *,
    confidence: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> Interval | None:
    """Where a statistic of pairs falls when as many pairs are drawn with replacement: percentile interval.

    Ends are the (1 - confidence) / 2 and (1 + confidence) / 2 quantiles over the draws that have a value.
    Source: Efron 1979. None below three pairs, or where fewer than half of the draws have a value.
    """
    _paired(a, b)
    if len(a) < 3:
        return None
    generator = np.random.default_rng(seed)
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    values = []
    for _ in range(draws):
        drawn = generator.integers(len(a), size=len(a))
        value = statistic(left[drawn].tolist(), right[drawn].tolist())
        if value is not None:
            values.append(value)
    if len(values) * 2 < draws:
        return None
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def pooled_spread(deviations: Sequence[float]) -> float | None:
    """One standard deviation from those of several works, each rated equally often.

    The root of the mean square: how much the same rater differs from itself. None without any.
    Source: Fisher 1925.
    """
    if not deviations:
        return None
    return math.sqrt(math.fsum(one * one for one in deviations) / len(deviations))


def _ranks(values: Ratings) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Rank of each value, the smallest 1; equal ones share the mean of their ranks."""
    sorted_values = np.sort(np.asarray(values, dtype=np.float64))
    below = np.searchsorted(sorted_values, values, side="left")
    up_to = np.searchsorted(sorted_values, values, side="right")
    return (below + up_to + 1) / 2.0


def _paired(a: Ratings, b: Ratings) -> None:
    if len(a) != len(b):
        raise UsageError(f"ratings come in pairs; got {len(a)} and {len(b)}.")
