"""A summary reads as if every review that is in had reached it."""

from typing import Any

import pytest

from plural_gym.errors import RecordError
from plural_gym.records.reviewed import awaited, credit_due, with_reviews


def result(*humans: str, **fields: Any) -> dict[str, Any]:
    """A Trial that waits for these; `code` has given 1."""
    rows = [{"verifier": "code", "score": 1.0, "scores": {}, "feedback": None}]
    rows += [
        {"verifier": name, "score": None, "scores": {}, "feedback": None, "review": None} for name in humans
    ]
    return {
        "trial_id": "t",
        "status": "awaiting_review",
        "score": None,
        "scores": rows,
        "awaits": list(humans),
        "hindsight_due": ["code"],
        "seats": [None],
        "revision": 1,
        **fields,
    }


def review(name: str, score: float, last: bool, **fields: Any) -> dict[str, Any]:
    return {
        "verifier": {"name": name},
        "reviewer": "ada",
        "submitted": 5.0,
        "scores": {"tone": 2.0},
        "score": score,
        "feedback": "fine",
        "last": last,
        "trial_score": (1.0 + score) / 2 if last else None,
        "seat_scores": {},
        **fields,
    }


def test_the_last_review_brings_the_score_and_the_end() -> None:
    before = result("a")
    after = with_reviews(before, [review("a", 0.5, last=True)])
    assert (after["status"], after["score"], after["revision"]) == ("succeeded", 0.75, 2)
    assert after["scores"][1] == {
        "verifier": "a",
        "score": 0.5,
        "scores": {"tone": 2.0},
        "feedback": "fine",
        "review": {"reviewer": "ada", "submitted": 5.0},
    }
    assert awaited(after) == [] and credit_due(after) == ["code"]
    assert before == result("a"), "what was read is not changed"


def test_a_review_among_several_leaves_the_trial_waiting_for_the_others() -> None:
    one = with_reviews(result("a", "b"), [review("b", 0.25, last=False)])
    assert (one["status"], one["score"], one["revision"]) == ("awaiting_review", None, 2)
    assert awaited(one) == ["a"] and credit_due(one) == []
    both = with_reviews(result("a", "b"), [review("a", 0.5, last=True), review("b", 0.25, last=False)])
    assert both == with_reviews(one, [review("a", 0.5, last=True)])
    assert (both["score"], both["revision"]) == (0.75, 3)


def test_what_the_summary_holds_already_changes_nothing() -> None:
    done = with_reviews(result("a"), [review("a", 0.5, last=True)])
    assert with_reviews(done, [review("a", 0.5, last=True)]) is done
    waiting = result("a")
    assert with_reviews(waiting, [review("stranger", 0.5, last=False)]) is waiting
    assert awaited({"status": "succeeded", "awaits": ["a"]}) == credit_due({"status": "failed"}) == []


def test_in_a_party_every_seat_that_played_on_gets_the_review() -> None:
    seats = [
        {"seat": "north", "score": None, "failure": "none"},
        {"seat": "south", "score": None, "failure": "agent"},
    ]
    rows = [{"seat": seat["seat"], "verifier": "a", "score": None} for seat in seats]
    found = with_reviews(
        result("a", seats=seats, scores=rows),
        [review("a", 0.5, last=True, trial_score=None, seat_scores={"north": 0.5, "south": None})],
    )
    assert [row["score"] for row in found["scores"]] == [0.5, None]
    assert [seat["score"] for seat in found["seats"]] == [0.5, None]
    assert (found["status"], found["score"]) == ("succeeded", None)


@pytest.mark.parametrize("field", ["verifier", "score", "last", "trial_score", "reviewer"])
def test_a_review_that_lacks_a_field_is_damage(field: str) -> None:
    damaged = review("a", 0.5, last=True)
    del damaged[field]
    with pytest.raises(RecordError, match=f"a review of Trial t is damaged: '{field}'"):
        with_reviews(result("a"), [damaged])
