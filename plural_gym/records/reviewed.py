"""A Trial's summary with the reviews that are in.

`TrialFolder.result` reads every summary through here. So from the moment a review lies in its file, no reader
sees the Trial wait for it, wherever the process that recorded it was killed on its way to `result.json`.

A Trial that waits names in `awaits` the Verifiers whose review is missing, and in `hindsight_due` those whose
late credit follows the last one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from plural_gym.errors import RecordError

AWAITING = "awaiting_review"
"""Status of a Trial whose score a person has yet to give."""


def awaited(result: Mapping[str, Any]) -> list[str]:
    """Names of the Verifiers whose review a Trial waits for; none where it does not wait."""
    return list(result.get("awaits") or []) if result.get("status") == AWAITING else []


def credit_due(result: Mapping[str, Any]) -> list[str]:
    """Names of the Verifiers whose hindsight may run now and has not: the last review is in."""
    return [] if result.get("status") == AWAITING else list(result.get("hindsight_due") or [])


def with_reviews(result: dict[str, Any], reviews: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary of a Trial that waits, with the reviews that it lacks.

    Each raises `revision` by one. The last one brings the Trial's score and its end, `succeeded`.

    Raises:
        RecordError: a review lacks a field.
    """
    try:
        for review in sorted(reviews, key=lambda review: review["last"]):
            if review["verifier"]["name"] in awaited(result):
                result = _with_review(result, review)
    except (KeyError, TypeError) as error:
        raise RecordError(
            f"a review of Trial {result.get('trial_id')} is damaged: {error}. Restore it from a copy."
        ) from error
    return result


def _with_review(result: Mapping[str, Any], review: Mapping[str, Any]) -> dict[str, Any]:
    name = review["verifier"]["name"]
    given = {key: review[key] for key in ("score", "scores", "feedback")}
    given["review"] = {key: review[key] for key in ("reviewer", "submitted")}
    seats = result["seats"]
    failed = [seat["seat"] for seat in seats if seat is not None and seat["failure"] != "none"]
    changed = {
        **result,
        "scores": [
            {**row, **given} if row["verifier"] == name and row.get("seat") not in failed else row
            for row in result["scores"]
        ],
        "awaits": [other for other in result["awaits"] if other != name],
        "revision": (result.get("revision") or 0) + 1,
    }
    if review["last"]:
        known = review["seat_scores"]
        changed |= {
            "status": "succeeded",
            "score": review["trial_score"],
            "seats": [seat and {**seat, "score": known.get(seat["seat"])} for seat in seats],
        }
    return changed
