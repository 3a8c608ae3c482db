"""Verdict: what a judge says of one attempt, criterion by criterion; and how its words are read.

Lenient about what stands around the JSON, strict about what stands in it. A score is never guessed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from plural_gym.verifier import RubricCriterion

_SHOWN = 120


class Malformed(ValueError):
    """What a judge said is no verdict; the message says why, for the judge to read."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judgment."""

    scores: Mapping[str, float]
    """By criterion, each in its own range."""
    reasons: Mapping[str, str]
    """By criterion, in the judge's words."""


def verdict_schema(criteria: Sequence[RubricCriterion]) -> dict[str, Any]:
    """The JSON Schema of a verdict: for each criterion its reason, then its score."""

    def one(criterion: RubricCriterion) -> dict[str, Any]:
        low, high = criterion.min_score, criterion.max_score
        return {
            "type": "object",
            "properties": {
                "reason": {"type": "string"},
                "score": {"type": "number", "minimum": low, "maximum": high},
            },
            "required": ["reason", "score"],
            "additionalProperties": False,
        }

    return {
        "type": "object",
        "properties": {criterion.name: one(criterion) for criterion in criteria},
        "required": [criterion.name for criterion in criteria],
        "additionalProperties": False,
    }


def read_verdict(text: str, criteria: Sequence[RubricCriterion]) -> Verdict:
    """The verdict in a judge's answer.

    Around its one JSON object there may stand anything: a fence, a greeting, thoughts.

    Raises:
        Malformed: there is no such object, or several, a criterion is missing or unknown, a score is no
            number or out of range, a reason is missing.
    """
    given = _only_object(text)
    names = [criterion.name for criterion in criteria]
    missing = [name for name in names if name not in given]
    if missing:
        raise Malformed(
            f"it has no {' and no '.join(map(repr, missing))}; the criteria are: {', '.join(names)}"
        )
    unknown = [name for name in given if name not in names]
    if unknown:
        raise Malformed(f"{_short(unknown[0])} is no criterion; the criteria are: {', '.join(names)}")
    scores: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for criterion in criteria:
        scores[criterion.name], reasons[criterion.name] = _judged(criterion, given[criterion.name])
    return Verdict(scores, reasons)


def _judged(criterion: RubricCriterion, given: Any) -> tuple[float, str]:
    name = criterion.name
    if not isinstance(given, dict) or set(given) != {"reason", "score"}:
        raise Malformed(f"{name!r} is {_short(given)}; it must be an object with 'reason' and 'score' alone")
    score, reason = given["score"], given["reason"]
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise Malformed(f"the score of {name!r} is {_short(score)}, which is no number")
    if not criterion.min_score <= score <= criterion.max_score:
        low, high = criterion.min_score, criterion.max_score
        raise Malformed(f"the score of {name!r} is {_short(score)}; it must be from {low:g} to {high:g}")
    if not isinstance(reason, str) or not reason.strip():
        raise Malformed(f"the reason of {name!r} is {_short(reason)}; it must be a text")
    return float(score), reason.strip()


def _only_object(text: str) -> dict[str, Any]:
    """The one JSON object in a text. Raises Malformed where there is none, or another."""
    # What a model thought before it answered is no part of the answer.
    answer = text.rpartition("</think>")[2]
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)
    found: dict[str, Any] | None = None
    start = answer.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(answer, start)
        except RecursionError:
            raise Malformed("its JSON is nested too deeply") from None
        except json.JSONDecodeError as error:
            if answer[start + 1 : error.pos].strip():
                # An object begins here. What stands inside a broken one may be anything but the verdict.
                raise Malformed(f"its JSON is broken: {error.msg} at character {error.pos - start}") from None
            start = answer.find("{", start + 1)
            continue
        if found is not None:
            raise Malformed("it holds several JSON objects; one is wanted")
        found, start = value, answer.find("{", end)
    if found is None:
        raise Malformed("it holds no JSON object" if answer.strip() else "it is empty")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"{_short(twice)} stands in it twice")
    return made


def _no_number(constant: str) -> NoReturn:
    raise Malformed(f"{constant} is no number")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
