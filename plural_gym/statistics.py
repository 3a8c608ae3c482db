"""The arithmetic of scores: means over Tasks, intervals, comparisons of two Agents, pass@k.

Leaderboards, `plural trial` and the web pages call it; it knows nothing of Trials, files or colours, and it
takes finished numbers only. Which attempts count, and as what, is decided before: an Agent's own failure is a
0, an infrastructure error is left out, and success needs a threshold that the caller states.

Two rules run through all of it. The unit of evidence is the Task: attempts are averaged within a Task first,
and only Tasks are resampled. A quantity that the numbers cannot give is None, never 0. numpy and the standard
library suffice; random draws come from a fixed seed, so that a leaderboard prints the same twice.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plural_gym.errors import UsageError

Outcomes = Sequence[Sequence[bool]]
"""One sequence of successes a Task, by the caller's threshold."""
Estimate = Callable[[int, int], float]
"""Attempts and successes of one Task -> its value."""

EXACT_RESAMPLES = 10_000
"""Up to this many possible resamples are all enumerated: Task bootstraps of five Tasks and fewer."""
EXACT_SIGN_FLIPS = 20
"""Up to this many Tasks that differ, all 2**n sign patterns are enumerated."""
_CELLS_AT_ONCE = 1 << 20
"""Draws times Tasks held in memory together (8 MB of floats)."""


class Interval(NamedTuple):
    """A confidence interval, both ends included."""

    low: float
    high: float


class PairedDifference(NamedTuple):
    """Agent A against Agent B on the same Tasks: d = A's Task mean minus B's, one a Task."""

    mean: float
    """Mean of d. Positive: A is better."""
    standard_error: float | None
    """sd(d, ddof=1) / sqrt(G). None for a single Task."""
    interval: Interval
    """Percentile bootstrap of Tasks around the mean of d."""
    p_value: float
    """Two-sided sign-flip permutation test of "A and B are the same"."""
    exact: bool
    """True: every sign pattern was enumerated. False: `p_value` is a Monte Carlo estimate."""
    wins: int
    """Tasks where A's mean is higher."""
    ties: int
    losses: int

    @property
    def win_rate(self) -> float:
        """Share of Tasks that A wins; a tie counts half."""
        return (self.wins + self.ties / 2) / (self.wins + self.ties + self.losses)


def task_means(scores: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The mean score of each Task: m_t = sum of its attempts / k_t.

    Args:
        scores: one sequence of attempts a Task; lengths may differ.

    Raises:
        UsageError: a Task has no scored attempt. Its mean is unknown; leave it out and say so.
    """
    for position, attempts in enumerate(scores):
        if not len(attempts):
            raise UsageError(
                f"Task number {position + 1} has no scored attempt; leave it out and show the gap."
            )
    return tuple(_mean(attempts) for attempts in scores)


def mean_of_tasks(means: Sequence[float], *, weights: Sequence[float] | None = None) -> float:
    """The score of a Benchmark: sum(w_t * m_t) / sum(w_t), every w_t = 1 without weights.

    Not the mean of pooled attempts: a Task that was attempted more often does not count for more.
    Source: Miller 2024, arXiv:2411.00640, section 2.

    Args:
        means: one mean a Task, as `task_means` gives them.
        weights: one a Task, each > 0.
    """
    _need(means, "mean_of_tasks")
    if weights is None:
        return _mean(means)
    products = (weight * mean for weight, mean in zip(weights, means, strict=True))
    return math.fsum(products) / math.fsum(weights)


def standard_error(means: Sequence[float]) -> float | None:
    """Standard error of the mean of Tasks: sd(m_t, ddof=1) / sqrt(G). None below two Tasks.

    With equally many attempts a Task this is the cluster-robust error with its G / (G - 1) correction.
    Source: Miller 2024, arXiv:2411.00640, section 2.2.
    """
    if len(means) < 2:
        return None
    centre = _mean(means)
    variance = math.fsum((mean - centre) ** 2 for mean in means) / (len(means) - 1)
    return math.sqrt(variance / len(means))


def bootstrap_interval(
    means: Sequence[float],
    *,
    weights: Sequence[float] | None = None,
    confidence: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap of Tasks: where the mean of G Tasks drawn with replacement falls.

    Ends are the (1 - confidence) / 2 and (1 + confidence) / 2 quantiles (linear interpolation) of the
    resampled means. All G**G resamples are enumerated where they are at most `EXACT_RESAMPLES`, so that few
    Tasks give an exact answer; `draws` and `seed` then play no part. Tasks are drawn, never attempts.
    A single Task gives an interval without width: it says nothing about other Tasks.
    Source: Efron 1979; for evaluations Miller 2024, arXiv:2411.00640.

    Args:
        means: one mean a Task, as `task_means` gives them.
        weights: one a Task, each > 0; a drawn Task brings its weight along.
        confidence: between 0 and 1, ends excluded.
        draws: resamples where there are too many to enumerate.
        seed: of `numpy.random.default_rng`.
    """
    _need(means, "bootstrap_interval")
    tail = _tail(confidence)
    shares = np.ones(len(means)) if weights is None else np.asarray(weights, dtype=np.float64)
    points = np.asarray(means, dtype=np.float64) * shares
    resampled = [
        points[picked].sum(axis=1) / shares[picked].sum(axis=1)
        for picked in _resamples(len(means), draws, seed)
    ]
    low, high = np.quantile(np.concatenate(resampled), [tail, 1 - tail])
    return Interval(float(low), float(high))


def wilson_interval(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a share of successes; right with one yes-or-no attempt a Task.

    (p + z²/2n ± z * sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n), with p = successes / trials.
    Stays inside [0, 1] and keeps a width at 0 and at n successes, where p ± z * SE has none.
    Source: Wilson 1927; Brown, Cai and DasGupta 2001.

    Raises:
        UsageError: no trials, or successes outside 0..trials.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise UsageError(
            f"wilson_interval needs 0 <= successes <= trials and a trial; got {successes} of {trials}."
        )
    z = NormalDist().inv_cdf(1 - _tail(confidence))
    share = successes / trials
    centre = share + z * z / (2 * trials)
    reach = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    # Rounding would leave 1e-17 where the formula gives exactly 0 or 1.
    low = 0.0 if successes == 0 else (centre - reach) / scale
    high = 1.0 if successes == trials else (centre + reach) / scale
    return Interval(low, high)


def paired_difference(
    a: Sequence[float],
    b: Sequence[float],
    *,
    weights: Sequence[float] | None = None,
    confidence: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """Compare two Agents on the same Tasks: what is hard for both cancels out.

    d_t = a_t - b_t; mean and standard error of d; bootstrap of Tasks; sign-flip permutation test: under "no
    difference" each d_t is as likely negative, so p is the share of sign patterns whose |sum| reaches the one
    seen. Exact up to `EXACT_SIGN_FLIPS` Tasks that differ (with one yes-or-no attempt a Task, McNemar's
    exact test); beyond, `draws` random patterns, p = (1 + hits) / (1 + draws), never 0.
    Source: Miller 2024, arXiv:2411.00640, section 4; Fisher 1935; Phipson and Smyth 2010 for the 1 + hits.

    Args:
        a: Task means of A.
        b: Task means of B, the same Tasks in the same order.
        weights: one a Task, each > 0; differences count by them, and a resampled Task brings its own along.
        confidence: of the interval.
        draws: of the bootstrap and of the permutation test, where they are not exact.
        seed: of both.

    Raises:
        UsageError: no Tasks, or not the same number of them.
    """
    if len(a) != len(b):
        raise UsageError(f"paired_difference needs the same Tasks on both sides; got {len(a)} and {len(b)}.")
    _need(a, "paired_difference")
    differences = [left - right for left, right in zip(a, b, strict=True)]
    shares = [1.0] * len(differences) if weights is None else list(weights)
    average = sum(shares) / len(shares)
    weighted = [d * share / average for d, share in zip(differences, shares, strict=True)]
    p_value, exact = _sign_flip(weighted, draws, seed)
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return PairedDifference(
        mean=_mean(weighted),
        standard_error=standard_error(weighted),
        interval=bootstrap_interval(
            differences, weights=weights, confidence=confidence, draws=draws, seed=seed
        ),
        p_value=p_value,
        exact=exact,
        wins=wins,
        ties=len(differences) - wins - losses,
        losses=losses,
    )


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values of several comparisons, adjusted so that one false alarm among them stays rare.

    Sorted ascending, p_(i) becomes max over j <= i of min(1, (n - j + 1) * p_(j)); returned in order given.
    An Agent is "tied with the first" where its adjusted p is 0.05 or more. Source: Holm 1979.
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = highest
    return tuple(adjusted)


def spread(scores: Sequence[Sequence[float]]) -> float | None:
    """How much attempts at the same Task differ: the pooled standard deviation within Tasks.

    sqrt(sum over Tasks and attempts of (s - m_t)² / sum over Tasks of (k_t - 1)): the root of the mean
    square within, as in a one-way analysis of variance. None where no Task was attempted twice.
    Source: Fisher 1925; Shrout and Fleiss 1979 for its use as unreliability.
    """
    freedom = sum(len(attempts) - 1 for attempts in scores if len(attempts))
    if not freedom:
        return None
    squares = (
        (score - _mean(attempts)) ** 2 for attempts in scores if len(attempts) > 1 for score in attempts
    )
    return math.sqrt(math.fsum(squares) / freedom)


def pass_at_k(outcomes: Outcomes, k: int, *, weights: Sequence[float] | None = None) -> float | None:
    """pass@k, the chance that one of k attempts succeeds: mean over Tasks of 1 - C(n-c, k) / C(n, k).

    n attempts and c successes in a Task. Unbiased, unlike 1 - (1 - c/n)**k. Source: Chen et al. 2021,
    arXiv:2107.03374, equation 1.

    `k` is 1 or more; `weights` are one a Task, each > 0. None where a Task has fewer than k attempts: the
    estimate does not exist for it.
    """
    return _over_tasks(
        outcomes, k, weights, "pass_at_k", lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k)
    )


def pass_hat_k(outcomes: Outcomes, k: int, *, weights: Sequence[float] | None = None) -> float | None:
    """pass^k, the chance that all of k attempts succeed: mean over Tasks of C(c, k) / C(n, k).

    Arguments and None as in `pass_at_k`. Source: Yao et al. 2024 (tau-bench), arXiv:2406.12045, section 3.
    """
    return _over_tasks(outcomes, k, weights, "pass_hat_k", lambda n, c: math.comb(c, k) / math.comb(n, k))


def percentile_nearest_rank(values: Sequence[float], percent: float) -> float:
    """The smallest value with `percent` % of all values at or below it: rank ceil(percent * n / 100).

    Always one of the values, so that a p95 latency is a latency that was seen. 0 gives the smallest.
    Source: the nearest-rank method, Hyndman and Fan 1996, definition 1.
    """
    _need(values, "percentile_nearest_rank")
    if not 0 <= percent <= 100:
        raise UsageError(f"percentile_nearest_rank needs a percent from 0 to 100; got {percent}.")
    rank = math.ceil(percent * len(values) / 100)
    return sorted(values)[max(rank, 1) - 1]


def interquartile_mean(values: Sequence[float]) -> float:
    """Mean of the middle half: floor(n / 4) values are dropped at each end.

    Steadier than the mean and less wasteful than the median for a few training runs.
    Source: Agarwal et al. 2021, arXiv:2108.13264, section 4.3.
    """
    _need(values, "interquartile_mean")
    cut = len(values) // 4
    return _mean(sorted(values)[cut : len(values) - cut])


def _over_tasks(
    outcomes: Outcomes, k: int, weights: Sequence[float] | None, caller: str, estimate: Estimate
) -> float | None:
    _need(outcomes, caller)
    if k < 1:
        raise UsageError(f"{caller} needs a k of 1 or more; got {k}.")
    if any(len(attempts) < k for attempts in outcomes):
        return None
    estimates = [estimate(len(attempts), sum(map(bool, attempts))) for attempts in outcomes]
    return mean_of_tasks(estimates, weights=weights)


def _resamples(tasks: int, draws: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """Blocks of resamples, one a row: positions of the Tasks drawn."""
    if tasks**tasks <= EXACT_RESAMPLES:
        yield np.array(list(itertools.product(range(tasks), repeat=tasks)), dtype=np.intp)
        return
    generator = np.random.default_rng(seed)
    for rows in _blocks(draws, tasks):
        yield generator.integers(tasks, size=(rows, tasks), dtype=np.intp)


def _sign_flip(differences: Sequence[float], draws: int, seed: int) -> tuple[float, bool]:
    """The p-value, and whether it is exact. Differences of 0 stay 0 under any sign and drop out."""
    sizes = np.array([abs(d) for d in differences if d], dtype=np.float64)
    # Sums that are equal on paper differ in their last bits, by an amount that grows with the terms.
    reached = abs(math.fsum(differences)) - 1e-9 * float(sizes.sum())
    if len(sizes) <= EXACT_SIGN_FLIPS:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate([sums + size, sums - size])
        return float(np.mean(np.abs(sums) >= reached)), True
    generator = np.random.default_rng(seed)
    hits = 0
    for rows in _blocks(draws, len(sizes)):
        signs = generator.integers(2, size=(rows, len(sizes))) * 2 - 1
        hits += int(np.count_nonzero(np.abs(signs @ sizes) >= reached))
    return (1 + hits) / (1 + draws), False


def _blocks(draws: int, tasks: int) -> Iterator[int]:
    """Row counts that add up to `draws` and keep a block of rows times Tasks small."""
    rows = max(1, _CELLS_AT_ONCE // tasks)
    for start in range(0, draws, rows):
        yield min(rows, draws - start)


def _mean(values: Sequence[float]) -> float:
    # fsum: the order of attempts must not show in the last digit.
    return math.fsum(values) / len(values)


def _tail(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise UsageError(f"confidence lies between 0 and 1, such as 0.95; got {confidence}.")
    return (1 - confidence) / 2


def _need(values: Sequence[object], caller: str) -> None:
    if not len(values):
        raise UsageError(f"{caller} needs at least one Task or value; got none.")
