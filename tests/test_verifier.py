"""Verifier: outputs, rubrics, the arithmetic of scores, and what may stand on one Task."""

import math
from typing import Any

import pytest

from plural_gym.environment import Environment
from plural_gym.errors import DefinitionError, UsageError
from plural_gym.task import Task
from plural_gym.verifier import (
    RubricCriterion,
    Verifier,
    VerifierOutput,
    combine,
    rubric_score,
    total_reward,
)
from plural_gym.verifiers.deterministic import DeterministicVerifier

TWO = [
    RubricCriterion(name="policy", min_score=0, max_score=2),
    RubricCriterion(name="clarity", min_score=0, max_score=2, weight=3),
]


def check(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=1.0)


def reward(step: Any) -> float:
    return 0.5


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, None, "high"])
def test_a_score_is_a_finite_number(score: Any) -> None:
    with pytest.raises(DefinitionError, match="VerifierOutput: score"):
        VerifierOutput(score=score)


def test_a_score_may_lie_outside_0_and_1() -> None:
    assert VerifierOutput(score=-3).score == -3.0 and VerifierOutput(score=1200).score == 1200.0
    assert VerifierOutput(score=1, evidence="one line").evidence == ("one line",)


def test_criteria_are_normalised_and_weighted() -> None:
    assert rubric_score(TWO, {"policy": 1, "clarity": 2}) == 0.875
    shifted = [RubricCriterion(name="a", min_score=-5, max_score=5)]
    assert rubric_score(shifted, {"a": 0}) == 0.5 and rubric_score(shifted, {"a": -5}) == 0.0


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"policy": 1}, "criterion 'clarity' has no score"),
        (
            {"policy": 1, "clarity": 1, "charm": 1},
            "no criterion is named 'charm'; there are: policy, clarity",
        ),
        ({"policy": 3, "clarity": 1}, r"score 3 of 'policy' is outside 0..2"),
        ({"policy": math.nan, "clarity": 1}, "is outside"),
    ],
)
def test_rubric_scores_must_fit_the_criteria(scores: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rubric_score(TWO, scores)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"min_score": 2, "max_score": 2}, "min_score 2 is not below max_score 2"),
        ({"weight": 0}, "weight"),
        ({"max_score": math.inf}, "max_score"),
    ],
)
def test_a_criterion_has_a_range_and_a_weight(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        RubricCriterion(name="a", **fields)


def test_the_trials_score_is_the_weighted_mean() -> None:
    assert combine([(1, 1.0), (2, 0.875), (1, 0.5)]) == 0.8125
    assert combine([(3, -1.0), (1, 5.0)]) == 0.5
    assert combine([(1, 0.1)] * 10) == 0.1
    assert combine([(1, 1.5e308)] * 2) == 1.5e308 == -(combine([(1, -1.5e308)] * 2) or 0)


@pytest.mark.parametrize("scores", [[], [(1, None)], [(1, 1.0), (5, None)]])
def test_one_unknown_score_makes_the_trials_unknown(scores: list[tuple[float, float | None]]) -> None:
    assert combine(scores) is None


def build(*verifiers: Verifier) -> Task:
    return Task(name="t", instructions="", environment=Environment(name="e"), verifiers=verifiers)


def test_a_task_needs_a_verifier_that_scores() -> None:
    rewarding = DeterministicVerifier(name="rewarding", reward=reward)
    with pytest.raises(DefinitionError, match=r"Task 't': no Verifier scores.*\(has: rewarding\)"):
        build(rewarding)
    with pytest.raises(DefinitionError, match=r"\(has: none\)"):
        build()
    assert build(rewarding, DeterministicVerifier(name="scoring", check=check)).verifiers[0] == rewarding


def test_verifiers_of_one_task_have_names_of_their_own() -> None:
    with pytest.raises(DefinitionError, match="two Verifiers are named 'v'"):
        build(DeterministicVerifier(name="v", check=check), DeterministicVerifier(name="v", check=check))


def test_total_reward_is_named_and_never_called() -> None:
    with pytest.raises(UsageError, match="total_reward is named as a check"):
        total_reward(None)


class Kind(Verifier):
    kind = "stranger"


def test_a_kind_without_code_runs_nothing_beside_the_apps() -> None:
    made = Kind(name="k")
    assert (made.functions(), made.timeouts_s(), made.folder) == ({}, {}, None)
    for call in (lambda: made.scores, lambda: made.identity(), lambda: made.content_hash):
        with pytest.raises(NotImplementedError):
            call()


@pytest.mark.parametrize("value", [True, 0, -1, float("nan"), float("inf"), 86_401])
def test_a_timeout_is_a_number_of_seconds_up_to_a_day(value: Any) -> None:
    from plural_gym.app import action

    for field in ("timeout_s", "reward_timeout_s"):
        with pytest.raises(DefinitionError, match=field):
            DeterministicVerifier(name="v", check=lambda episode: None, **{field: value})
    with pytest.raises(DefinitionError, match="action 'look': timeout_s is a number of seconds above 0"):

        @action(timeout_s=value)
        def look(self: Any) -> None: ...


def test_true_is_neither_a_weight_nor_a_limit() -> None:
    from plural_gym.environment import Limits

    with pytest.raises(DefinitionError, match="weight is a number, not True"):
        DeterministicVerifier(name="v", check=lambda episode: None, weight=True)
    for field in ("turns", "seconds", "cost_usd"):
        with pytest.raises(DefinitionError, match=f"{field} is a number, not True"):
            Limits(**{field: True})


def test_rubrics_of_the_largest_ranges_and_weights_have_a_score() -> None:
    largest = 1.7e308
    criteria = [
        RubricCriterion(name=name, min_score=-largest, max_score=largest, weight=1e308) for name in "ab"
    ]
    assert rubric_score(criteria, {"a": largest, "b": -largest}) == pytest.approx(0.5)


def test_text_that_no_file_can_hold_is_escaped() -> None:
    output = VerifierOutput(score=1, evidence=["\ud83d"], feedback="\ud83d")
    assert (output.evidence, output.feedback) == (("\\ud83d",), "\\ud83d")
