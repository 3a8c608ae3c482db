"""Ranking: what counts, as what, and what is left unknown."""

import json
import re
from typing import Any

import pytest

from plural_gym.benchmark import Benchmark
from plural_gym.environment import Environment
from plural_gym.errors import DefinitionError, UnknownName, UsageError
from plural_gym.task import Task, TaskSet
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier

WORLD = Environment(name="world")


def check(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=1.0)


GRADER = DeterministicVerifier(name="grader", check=check)


def task(name: str, **fields: Any) -> Task:
    values: dict[str, Any] = {"instructions": "Answer.", "environment": WORLD, "verifiers": (GRADER,)}
    return Task(name=name, **{**values, **fields})


def exam(*names: str, **fields: Any) -> Benchmark:
    return Benchmark(name="exam", version="1.0.0", tasks=[task(name) for name in names], **fields)


def row(agent: str, task: str, score: float | None, attempt: int = 1, **fields: Any) -> dict[str, Any]:
    return {"agent": agent, "task": task, "attempt": attempt, "score": score, "failure": "none", **fields}


def rows(agent: str, **scores: float | None) -> list[dict[str, Any]]:
    return [row(agent, name, score) for name, score in scores.items()]


def test_attempts_are_averaged_within_a_task_and_then_tasks_by_weight() -> None:
    board = exam("a", "b", weights={"a": 3.0}).leaderboard(
        [row("x", "a", 1.0, 1), row("x", "a", 0.0, 2), row("x", "a", 0.5, 3), row("x", "b", 1.0)]
    )
    (only,) = board.rows
    assert only.score == pytest.approx((3 * 0.5 + 1.0) / 4)
    assert only.success_rate == pytest.approx((3 * 1 / 3 + 1) / 4)
    assert (only.rank, only.coverage, only.trials, only.complete) == (1, 1.0, 4, True)
    assert only.spread == pytest.approx(0.5)


def test_a_failure_of_the_agent_counts_zero_or_is_left_out() -> None:
    trials = [row("x", "a", 1.0, 1), row("x", "a", None, 2, failure="agent"), *rows("x", b=1.0)]
    assert exam("a", "b").leaderboard(trials).rows[0].score == 0.75
    assert exam("a", "b", agent_failure="exclude").leaderboard(trials).rows[0].score == 1.0
    assert exam("a").leaderboard([row("x", "a", None, failure="timeout")]).rows[0].score == 0.0
    assert exam("a").leaderboard([row("x", "a", 0.4, failure="agent")]).rows[0].score == 0.4


def test_an_excluded_failure_that_was_all_leaves_the_task_unknown() -> None:
    (only,) = exam("a", agent_failure="exclude").leaderboard([row("x", "a", None, failure="agent")]).rows
    assert (only.rank, only.score, only.coverage, only.success_rate) == (None, None, 0.0, None)


@pytest.mark.parametrize("failure", ["environment", "infrastructure", "grader"])
def test_other_failures_are_left_out_and_shown(failure: str) -> None:
    (only,) = exam("a").leaderboard([row("x", "a", 1.0, 1), row("x", "a", None, 2, failure=failure)]).rows
    assert only.score == 1.0 and only.failures == {failure: 1} and only.trials == 2


def test_a_task_without_a_score_is_unknown_and_never_ranks_above_a_complete_one() -> None:
    board = exam("a", "b").leaderboard([*rows("partial", a=1.0, b=None), *rows("whole", a=0.1, b=0.1)])
    whole, partial = board.rows
    assert (whole.agent, whole.rank) == ("whole", 1)
    assert (partial.agent, partial.rank, partial.score, partial.coverage) == ("partial", None, 1.0, 0.5)
    assert partial.waiting == 1 and not partial.complete
    assert "? some Tasks have no score; the place is unknown." in str(board)


def test_equal_scores_share_a_rank() -> None:
    board = exam("a").leaderboard([*rows("z", a=1.0), *rows("y", a=1.0), *rows("x", a=0.5)])
    assert [(line.agent, line.rank) for line in board.rows] == [("y", 1), ("z", 1), ("x", 3)]


def test_an_interval_needs_five_tasks() -> None:
    names = [f"t{number}" for number in range(5)]
    trials = [row("x", name, float(index % 2)) for index, name in enumerate(names)]
    found = exam(*names).leaderboard(trials).rows[0].interval
    assert found is not None and 0 <= found.low < 0.4 < found.high <= 1
    assert exam(*names[:4]).leaderboard(trials[:4]).rows[0].interval is None


def test_an_agent_that_cannot_be_told_from_the_first_is_tied_with_it() -> None:
    names = [f"t{number}" for number in range(10)]
    trials = [row("best", name, 1.0) for name in names]
    trials += [row("near", name, float(index > 0)) for index, name in enumerate(names)]
    trials += [row("far", name, 0.0) for name in names]
    board = exam(*names).leaderboard(trials)
    assert [line.tied_with_first for line in board.rows] == [True, True, False]
    assert board.rows[0].p_value is None and board.rows[2].p_value == pytest.approx(2 * 2 / 2**10)
    assert "2≈" in str(board) and "1≈" not in str(board)


def test_a_success_is_a_score_of_one_unless_a_threshold_is_set() -> None:
    trials = [row("x", "a", 0.9, 1), row("x", "a", 1.0, 2)]
    assert exam("a").leaderboard(trials).rows[0].success_rate == 0.5
    assert exam("a", success_threshold=0.9).leaderboard(trials).rows[0].success_rate == 1.0
    failed = [row("x", "a", None, failure="agent")]
    assert exam("a", success_threshold=-1.0).leaderboard(failed).rows[0].success_rate == 0.0


def test_cost_is_the_mean_of_those_that_reported_it() -> None:
    trials = [
        row("x", "a", 1.0, 1, cost_usd=0.2, seconds=3.0),
        row("x", "a", 1.0, 2, cost_usd=None, seconds=1.0),
        row("x", "a", 1.0, 3, cost_usd=0.4, seconds=2.0),
    ]
    (only,) = exam("a").leaderboard(trials).rows
    assert only.cost_usd == pytest.approx(0.3) and (only.cost_count, only.seconds) == (2, 2.0)
    assert "$0.3000 (2 of 3)" in str(exam("a").leaderboard(trials))
    (silent,) = exam("a").leaderboard(rows("x", a=1.0)).rows
    assert (silent.cost_usd, silent.cost_count, silent.seconds) == (None, 0, None)


def unstyled(page: str) -> str:
    return re.sub(" style='[^']*'", "", page)


def test_a_leaderboard_is_text_html_and_json() -> None:
    board = exam("a", "b").leaderboard(
        [*rows("<b>", a=1.0, b=1.0), row("<b>", "a", None, 2, failure="agent")]
    )
    assert str(board).splitlines()[0] == "exam 1.0.0 (2 Tasks)"
    page = unstyled(board._repr_html_())
    assert "&lt;b&gt;" in page and "<b>" not in page and "1 agent" in page
    values = json.loads(json.dumps(board.to_json()))
    assert values["rows"][0]["agent"] == "<b>" and values["rows"][0]["interval"] is None
    assert str(exam("a").leaderboard([])).startswith("exam 1.0.0 (1 Task)")
    assert "<caption>exam 1.0.0 (1 Task)</caption>" in unstyled(exam("a").leaderboard([])._repr_html_())


def test_a_spread_is_rounded_in_json_alone() -> None:
    board = exam("a").leaderboard([row("x", "a", score, at) for at, score in enumerate((0.1, 0.3, 0.8), 1)])
    (only,) = board.rows
    assert only.spread is not None and only.spread != round(only.spread, 12)
    assert board.to_json()["rows"][0]["spread"] == round(only.spread, 12)


def test_a_comparison_is_text_and_html() -> None:
    outcome = exam("a", "b").compare(rows("<b>", a=1.0, b=None), rows("y", a=0.5, b=1.0))
    assert str(outcome).splitlines()[0] == "<b> against y, 1 Task in common"
    page = unstyled(outcome._repr_html_())
    assert "<caption>&lt;b&gt; against y, 1 Task in common</caption>" in page and "<b>" not in page
    assert "<tr><td>a</td><td>1.000</td><td>0.500</td><td>+0.500</td></tr>" in page
    assert "<div>only y has a score for: b</div>" in page


ROW_FAULTS = [
    ([{"task": "a"}], "a row needs 'agent' as text, and has None."),
    ([{"agent": "x", "task": 1}], "a row needs 'task' as text, and has 1."),
    (rows("x", zz=1.0), "Task 'zz' is not in the Benchmark; it has: a, b."),
    ([row("x", "a", 1.0, failure="agnt")], "failure 'agnt' of 'a' does not exist; did you mean 'agent'?"),
    (rows("x", a=1.0) * 2, "attempt 1 of 'x' at 'a' stands twice; pass one row a Trial."),
]


@pytest.mark.parametrize(("trials", "message"), ROW_FAULTS)
def test_rows_that_do_not_fit_the_exam_are_refused(trials: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        exam("a", "b").leaderboard(trials)
    assert str(caught.value) == message


def test_a_comparison_pairs_by_task_and_names_what_only_one_side_has() -> None:
    found = exam("a", "b", "c", "d").compare(rows("x", a=1.0, b=0.5, c=1.0), rows("y", a=0.0, b=0.5, d=1.0))
    assert [(one.task, one.difference) for one in found.tasks] == [("a", 1.0), ("b", 0.0)]
    assert found.difference == 0.5 and (found.wins, found.ties, found.losses) == (1, 1, 0)
    assert (found.only_in_a, found.only_in_b, found.interval) == (("c",), ("d",), None)
    assert found.p_value == 1.0
    assert str(found).splitlines() == [
        "x against y, 2 Tasks in common",
        "difference +0.500, p = 1",
        "wins 1, ties 1, losses 0",
        "only x has a score for: c",
        "only y has a score for: d",
    ]
    assert json.loads(json.dumps(found.to_json()))["tasks"][0] == {
        "task": "a",
        "a": 1.0,
        "b": 0.0,
        "difference": 1.0,
    }


def test_weights_count_in_a_comparison() -> None:
    found = exam("a", "b", weights={"a": 3.0}).compare(rows("x", a=1.0, b=0.0), rows("y", a=0.0, b=1.0))
    assert found.difference == pytest.approx(0.5)


def test_five_common_tasks_give_a_comparison_an_interval() -> None:
    scores = {name: 1.0 for name in "abcde"}
    found = exam(*"abcde").compare(rows("x", **scores), rows("y", **(scores | {"a": 0.0})))
    assert found.interval is not None and "[+0.000" in str(found)


def test_without_a_common_task_there_is_no_difference() -> None:
    found = exam("a", "b").compare(rows("x", a=1.0), rows("y", b=1.0))
    assert (found.difference, found.p_value, found.wins) == (None, None, 0)


def test_a_comparison_takes_one_agent_a_side() -> None:
    two = [*rows("x", a=1.0), *rows("y", a=1.0)]
    with pytest.raises(UsageError, match="the first holds x, y"):
        exam("a").compare(two, rows("z", a=1.0))
    with pytest.raises(UsageError, match="the second holds none"):
        exam("a").compare(rows("z", a=1.0), [])


DEFINITION_FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"tasks": []}, "a Benchmark needs at least one Task."),
    ({"tasks": ["a"]}, "tasks holds 'a', which is no Task."),
    ({"tasks": "a"}, "tasks is a sequence of Tasks, got 'a'."),
    ({"tasks": [task("a"), task("a")]}, "two Tasks are named 'a'."),
    ({"weights": {"a": 0.0}}, "weight of 'a' must be a finite number > 0, got 0."),
    ({"weights": {"alph": 1.0}}, "weights: there is no Task 'alph'; did you mean 'alpha'?"),
    ({"weights": {"f/b": 1.0, "b": 1.0}}, "weights name the Task 'f/b' twice."),
    ({"version": None}, "version: Input should be a valid string, got None."),
]


@pytest.mark.parametrize(("fields", "message"), DEFINITION_FAULTS)
def test_a_benchmark_that_contradicts_itself_is_refused(fields: dict[str, Any], message: str) -> None:
    tasks = [task("a"), task("alpha"), task("f/b")]
    with pytest.raises(DefinitionError) as caught:
        Benchmark(**{"name": "exam", "version": "1.0.0", "tasks": tasks, **fields})
    assert message in str(caught.value)


def test_a_task_set_stays_unbuilt_and_is_found_by_short_name() -> None:
    def build(name: str) -> Task:
        raise AssertionError(name)

    benchmark = Benchmark(
        name="exam", version="1.0.0", tasks=TaskSet(["w/a", "w/b"], build), weights={"a": 2.0}
    )
    assert benchmark.weights == {"w/a": 2.0} and benchmark.task_set.names == ("w/a", "w/b")
    with pytest.raises(UnknownName):
        benchmark.task_set.full_name("c")


def test_identity_covers_tasks_order_weights_and_rules() -> None:
    base = exam("a", "b")
    assert base.content_hash == exam("a", "b", purpose="p", success_threshold=1.0).content_hash
    hashes = {
        base.content_hash,
        exam("b", "a").content_hash,
        exam("a").content_hash,
        exam("a", "b", weights={"b": 2.0}).content_hash,
        exam("a", "b", agent_failure="exclude").content_hash,
        exam("a", "b", success_threshold=0.5).content_hash,
        Benchmark(
            name="exam", version="1.0.0", tasks=[task("a"), task("b", instructions="Other.")]
        ).content_hash,
    }
    assert len(hashes) == 7
