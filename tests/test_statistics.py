"""Worked values (checked against scipy and statsmodels) and properties of `plural_gym.statistics`."""

import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plural_gym import statistics
from plural_gym.errors import UsageError
from plural_gym.statistics import (
    bootstrap_interval,
    holm_adjusted,
    interquartile_mean,
    mean_of_tasks,
    paired_difference,
    pass_at_k,
    pass_hat_k,
    percentile_nearest_rank,
    spread,
    standard_error,
    task_means,
    wilson_interval,
)

FIVE_TASKS = [[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
UNBALANCED = [[1, 1, 1, 1], [0], [1, 0]]
A = [1, 1, 1, 0.75, 0.5, 0.5, 0.25, 0]
B = [1, 0.75, 0.75, 0.75, 0.25, 0.5, 0, 0]

scores = st.floats(0, 1)
matrices = st.lists(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=5), min_size=1, max_size=7
)
binary = st.integers(1, 5).flatmap(
    lambda k: st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1, max_size=6)
)


def near(value: object) -> object:
    return pytest.approx(value, abs=1e-9, rel=0)


def outcomes(attempts: int, successes: int) -> list[list[bool]]:
    return [[True] * successes + [False] * (attempts - successes)]


def test_the_score_is_the_mean_of_task_means() -> None:
    assert task_means(FIVE_TASKS) == (1, 0.75, 0.5, 0.25, 0)
    assert mean_of_tasks(task_means(FIVE_TASKS)) == 0.5


def test_a_task_with_more_attempts_does_not_count_for_more() -> None:
    means = task_means(UNBALANCED)
    assert mean_of_tasks(means) == near(0.5)
    assert standard_error(means) == near(0.288675134595)


def test_weights_of_tasks_weigh_the_score() -> None:
    assert mean_of_tasks([1, 0], weights=[3, 1]) == 0.75


def test_the_standard_error_is_clustered_by_task() -> None:
    assert standard_error(task_means(FIVE_TASKS)) == near(0.176776695297)
    assert standard_error([0.5]) is None


def test_few_tasks_are_bootstrapped_exactly() -> None:
    interval = bootstrap_interval(task_means(FIVE_TASKS))
    assert interval == near((0.2, 0.8))
    assert interval == bootstrap_interval(task_means(FIVE_TASKS), draws=1, seed=99)


def test_many_tasks_are_bootstrapped_by_random_draws_that_repeat() -> None:
    means = [step / 40 for step in range(41)]
    first = bootstrap_interval(means, seed=3)
    assert first == bootstrap_interval(means, seed=3)
    assert first != bootstrap_interval(means, seed=4)
    error = standard_error(means)
    assert error is not None
    assert first == pytest.approx((0.5 - 1.96 * error, 0.5 + 1.96 * error), abs=0.01)


def test_drawing_in_blocks_changes_nothing_but_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_CELLS_AT_ONCE", 100)
    assert list(statistics._blocks(25, 10)) == [10, 10, 5]
    assert sum(block.shape[0] for block in statistics._resamples(10, 25, 0)) == 25


def test_equal_weights_leave_the_bootstrap_as_it_is() -> None:
    means = task_means(FIVE_TASKS)
    assert bootstrap_interval(means, weights=[2] * 5) == near(bootstrap_interval(means))


def test_a_heavy_task_pulls_the_bootstrap_along() -> None:
    assert bootstrap_interval([0, 1], weights=[1, 3], confidence=1 / 3) == near((0.75, 0.75))


@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    [
        (0, 10, (0, 0.277532799863)),
        (7, 10, (0.396778147461, 0.892208732594)),
        (10, 10, (0.722467200137, 1)),
        (10, 20, (0.299298008198, 0.700701991802)),
        (45, 60, (0.627679299230, 0.842234774699)),
        (1, 1, (0.206549314377, 1)),
    ],
)
def test_wilson(successes: int, trials: int, expected: tuple[float, float]) -> None:
    assert wilson_interval(successes, trials) == near(expected)


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (10, 3, 5, 0.916666666667),
        (10, 3, 8, 1),
        (200, 13, 10, 0.497551114731),
        (200, 13, 100, 0.999919497199),
    ],
)
def test_pass_at_k(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(outcomes(n, c), k) == near(expected)


@pytest.mark.parametrize(("n", "c", "k", "expected"), [(8, 6, 4, 3 / 14), (10, 3, 5, 0)])
def test_pass_hat_k(n: int, c: int, k: int, expected: float) -> None:
    assert pass_hat_k(outcomes(n, c), k) == near(expected)


def test_pass_k_of_several_tasks_is_the_mean_over_tasks() -> None:
    solved = [[score == 1 for score in attempts] for attempts in FIVE_TASKS]
    assert [pass_at_k(solved, k) for k in (1, 2, 3, 4)] == near([0.5, 2 / 3, 0.75, 0.8])
    assert [pass_hat_k(solved, k) for k in (1, 2, 3, 4)] == near([0.5, 1 / 3, 0.25, 0.2])
    assert pass_at_k(solved, 4, weights=[1, 1, 1, 1, 4]) == near(0.5)


def test_pass_k_is_unknown_where_a_task_has_fewer_than_k_attempts() -> None:
    assert pass_at_k([[True, False], [True]], 2) is None
    assert pass_hat_k([[True, False], [True]], 2) is None


def test_a_paired_comparison() -> None:
    result = paired_difference(A, B)
    assert result.mean == near(0.125)
    assert result.standard_error == near(0.047245559126)
    assert (result.p_value, result.exact) == (near(0.125), True)
    assert (result.wins, result.ties, result.losses) == (4, 4, 0)
    assert result.win_rate == 0.75
    assert 0 < result.interval.low < 0.125 < result.interval.high


def test_a_paired_comparison_over_attempts() -> None:
    result = paired_difference([0.5, 0.5, 0, 0.5, 0, 0.5], [0, 0, 0, 0, 0.5, 0])
    assert result.mean == near(0.25)
    assert result.standard_error == near(0.170782512766)
    assert result.p_value == near(0.375)
    assert result.win_rate == near(0.75)


def test_with_one_binary_attempt_the_sign_flip_test_is_mcnemars() -> None:
    a = [1] * 40 + [1] * 12 + [0] * 5 + [0] * 23
    b = [1] * 40 + [0] * 12 + [1] * 5 + [0] * 23
    result = paired_difference(a, b)
    assert result.mean == near(0.0875)
    assert result.p_value == near(0.143463134766)


def test_many_differing_tasks_are_tested_by_random_sign_flips() -> None:
    a, b = [0.1 * (step % 7) for step in range(60)], [0.1 * (step % 5) for step in range(60)]
    result = paired_difference(a, b, draws=2_000)
    assert not result.exact
    assert result == paired_difference(a, b, draws=2_000)
    assert 1 / 2_001 <= result.p_value < 0.05


def test_agents_that_never_differ_have_a_p_value_of_one() -> None:
    result = paired_difference([0.3, 0.3], [0.3, 0.3])
    assert (result.mean, result.p_value, result.win_rate) == (0, 1, 0.5)


def test_holm() -> None:
    assert holm_adjusted([0.01, 0.04, 0.03]) == near((0.03, 0.06, 0.06))
    assert holm_adjusted([]) == ()


def test_spread_is_the_root_of_the_mean_square_within_tasks() -> None:
    assert spread(FIVE_TASKS) == near(math.sqrt(1 / 6))
    assert spread([[1], [0], []]) is None
    assert spread([[1], [0.5, 0.5]]) == 0


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 1.3), (90, 3.5), (95, 10), (99, 10), (0, 0.8), (100, 10)]
)
def test_percentile_by_nearest_rank(percent: float, expected: float) -> None:
    assert percentile_nearest_rank([1.2, 0.8, 3.5, 2.1, 0.9, 10, 1.1, 1.6, 2.4, 1.3], percent) == expected


def test_interquartile_mean() -> None:
    assert interquartile_mean([0, 0.25, 0.5, 0.5, 0.75, 1, 1, 1]) == 0.6875


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: task_means([[1], []]),
            "Task number 2 has no scored attempt; leave it out and show the gap.",
        ),
        (lambda: mean_of_tasks([]), "mean_of_tasks needs at least one Task or value; got none."),
        (
            lambda: bootstrap_interval([1], confidence=95),
            "confidence lies between 0 and 1, such as 0.95; got 95.",
        ),
        (
            lambda: wilson_interval(3, 2),
            "wilson_interval needs 0 <= successes <= trials and a trial; got 3 of 2.",
        ),
        (
            lambda: paired_difference([1], [1, 2]),
            "paired_difference needs the same Tasks on both sides; got 1 and 2.",
        ),
        (lambda: pass_at_k([[True]], 0), "pass_at_k needs a k of 1 or more; got 0."),
        (
            lambda: percentile_nearest_rank([1], 101),
            "percentile_nearest_rank needs a percent from 0 to 100; got 101.",
        ),
    ],
)
def test_every_complaint(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value) == message


@given(matrices)
def test_the_interval_contains_the_score(matrix: list[list[float]]) -> None:
    means = task_means(matrix)
    low, high = bootstrap_interval(means, draws=500)
    assert low - 1e-9 <= mean_of_tasks(means) <= high + 1e-9


@given(matrices, st.randoms(use_true_random=False))
def test_the_order_of_attempts_never_shows(matrix: list[list[float]], random: Random) -> None:
    shuffled = [random.sample(attempts, len(attempts)) for attempts in matrix]
    assert task_means(shuffled) == task_means(matrix)
    assert spread(shuffled) == spread(matrix)


@given(binary)
def test_with_k_of_one_both_are_the_score(solved: list[list[bool]]) -> None:
    score = mean_of_tasks(task_means(solved))
    assert pass_at_k(solved, 1) == near(score)
    assert pass_hat_k(solved, 1) == near(score)


@given(binary)
def test_pass_at_k_rises_and_pass_hat_k_falls_with_k(solved: list[list[bool]]) -> None:
    every_k = range(1, len(solved[0]) + 1)
    at, hat = [pass_at_k(solved, k) for k in every_k], [pass_hat_k(solved, k) for k in every_k]
    known_at, known_hat = [p for p in at if p is not None], [p for p in hat if p is not None]
    assert len(known_at) == len(known_hat) == len(every_k)
    assert np.all(np.diff(known_at) >= -1e-12)
    assert np.all(np.diff(known_hat) <= 1e-12)


@given(st.lists(st.tuples(scores, scores), min_size=1, max_size=8))
def test_swapping_the_agents_flips_the_sign(pairs: list[tuple[float, float]]) -> None:
    a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    forth, back = paired_difference(a, b, draws=500), paired_difference(b, a, draws=500)
    assert forth.mean == -back.mean
    assert forth.interval == near((-back.interval.high, -back.interval.low))
    assert (forth.p_value, forth.wins, forth.losses) == (back.p_value, back.losses, back.wins)


@given(st.lists(scores, min_size=1), st.floats(0, 100))
def test_a_percentile_by_nearest_rank_was_seen(values: list[float], percent: float) -> None:
    assert percentile_nearest_rank(values, percent) in values


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_stays_in_range_and_contains_the_share(counts: tuple[int, int]) -> None:
    successes, trials = counts
    low, high = wilson_interval(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    assert low < high


def test_a_weighted_difference_that_is_the_same_everywhere_has_no_width() -> None:
    found = paired_difference([1.0] * 10, [0.0] * 10, weights=[3.0, *[1.0] * 8, 1.5])
    assert found.mean == pytest.approx(1.0)
    assert tuple(found.interval) == pytest.approx((1.0, 1.0))


def test_a_weighted_difference_is_the_weighted_mean() -> None:
    found = paired_difference([1.0, 0.0], [0.0, 0.0], weights=[3.0, 1.0])
    assert found.mean == pytest.approx(0.75)
