"""How far two raters agree: worked values, and what always holds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plural_gym.agreement import (
    agreement,
    bootstrap,
    mean_difference,
    pooled_spread,
    rank_correlation,
    weighted_kappa,
)
from plural_gym.errors import UsageError

A = [0, 1, 2, 2, 1, 0, 2, 1]
B = [0, 1, 1, 2, 2, 0, 2, 0]
YES = [1, 1, 1, 0, 0, 0, 1, 0, 1, 0]
NO = [1, 1, 0, 0, 0, 1, 1, 0, 1, 0]

pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


def test_quadratic_kappa_by_hand() -> None:
    # D_o = 3/8; D_e = var(A) + var(B) + (mean A - mean B)² = 39/64 + 48/64 + 1/64 = 88/64; 1 - 24/88.
    assert weighted_kappa(A, B) == pytest.approx(1 - 24 / 88, abs=1e-12)
    assert weighted_kappa(A, B) == pytest.approx(0.727272727273, abs=1e-9)


def test_with_two_categories_it_is_the_plain_kappa() -> None:
    # Observed agreement 8/10, chance 1/2: (0.8 - 0.5) / 0.5.
    assert weighted_kappa(YES, NO) == pytest.approx(0.6, abs=1e-12)


def test_by_categories_the_definition_gives_the_same() -> None:
    k, n = 3, len(A)
    weight = [[(i - j) ** 2 / (k - 1) ** 2 for j in range(k)] for i in range(k)]
    observed = sum(weight[a][b] for a, b in zip(A, B, strict=True)) / n
    chance = sum(weight[i][j] * A.count(i) * B.count(j) for i in range(k) for j in range(k)) / n**2
    assert weighted_kappa(A, B) == pytest.approx(1 - observed / chance, abs=1e-12)


def test_the_other_worked_values() -> None:
    assert rank_correlation(A, B) == pytest.approx(0.733333333333, abs=1e-9)
    assert agreement(A, B) == 0.625 and agreement(A, B, 1) == 1.0
    assert mean_difference(A, B) == 0.125
    assert rank_correlation([1, 2, 3], [30, 20, 10]) == -1.0
    assert pooled_spread([3.0, 4.0]) == pytest.approx(math.sqrt(12.5))


def test_what_the_numbers_cannot_tell_is_none() -> None:
    assert weighted_kappa([1, 1], [1, 1]) is None and weighted_kappa([], []) is None
    assert weighted_kappa([1], [2]) is None and weighted_kappa([1, 1], [2, 2]) == 0.0
    assert rank_correlation([1], [1]) is None and rank_correlation([1, 2], [3, 3]) is None
    assert agreement([], []) is None and mean_difference([], []) is None and pooled_spread([]) is None
    assert bootstrap(mean_difference, [1, 2], [1, 2]) is None
    assert bootstrap(weighted_kappa, [1, 1, 1], [1, 1, 1]) is None


def test_means_of_several_judgments_count_as_equal_in_spite_of_rounding() -> None:
    assert agreement([0.1 + 0.2], [0.3]) == 1.0


@given(pairs)
def test_swapping_the_raters_changes_the_sign_of_the_bias_alone(both: list[tuple[int, int]]) -> None:
    a, b = [one for one, _ in both], [other for _, other in both]
    assert weighted_kappa(a, b) == pytest.approx(weighted_kappa(b, a))
    assert mean_difference(a, b) == pytest.approx(-(mean_difference(b, a) or 0.0))
    assert agreement(a, b) == agreement(b, a)
    kappa = weighted_kappa(a, b)
    assert kappa is None or -1 - 1e-9 <= kappa <= 1 + 1e-9


@given(pairs, st.integers(2, 9))
def test_the_unit_of_the_scale_does_not_matter(both: list[tuple[int, int]], unit: int) -> None:
    a, b = [one for one, _ in both], [other for _, other in both]
    scaled = weighted_kappa([one * unit for one in a], [one * unit for one in b])
    assert scaled == pytest.approx(weighted_kappa(a, b))


def test_an_interval_holds_its_value_and_is_the_same_twice() -> None:
    found = bootstrap(weighted_kappa, A * 4, B * 4)
    assert found == bootstrap(weighted_kappa, A * 4, B * 4)
    assert found is not None and found.low < 0.7272 < found.high and found.high - found.low < 0.5
    wide = bootstrap(weighted_kappa, A, B)
    assert wide is not None and wide.high - wide.low > found.high - found.low


def test_ratings_come_in_pairs() -> None:
    with pytest.raises(UsageError, match="got 2 and 1"):
        weighted_kappa([1, 2], [1])
