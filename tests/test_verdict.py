"""A judge's answer: lenient around the JSON, strict in it; a score is never guessed."""

import json
from typing import Any

import jsonschema
import pytest

from plural_gym.verdict import Malformed, read_verdict, verdict_schema
from plural_gym.verifier import RubricCriterion

CRITERIA = (
    RubricCriterion(name="policy", description="0: no. 2: yes.", max_score=2),
    RubricCriterion(name="tone", min_score=-1, max_score=1),
)
GOOD: dict[str, Any] = {
    "policy": {"reason": "It cites §4.", "score": 2},
    "tone": {"reason": "Curt.", "score": -0.5},
}
TEXT = json.dumps(GOOD)


@pytest.mark.parametrize(
    "answer",
    [
        TEXT,
        json.dumps(GOOD, indent=2),
        f"```json\n{TEXT}\n```",
        f"Here is my verdict:\n\n{TEXT}\n\nI hope this helps {{and more}}.",
        f'<think>perhaps {{"policy": {{"reason": "no", "score": 0}}}}</think>\n{TEXT}',
        f"The set {{1, 2}} of rules... {TEXT}",
        f"\ufeff {TEXT}\n",
        f"[{TEXT}]",
    ],
)
def test_whatever_stands_around_it_the_verdict_is_read(answer: str) -> None:
    verdict = read_verdict(answer, CRITERIA)
    assert verdict.scores == {"policy": 2.0, "tone": -0.5}
    assert verdict.reasons == {"policy": "It cites §4.", "tone": "Curt."}


def changed(**criteria: Any) -> str:
    return json.dumps({name: one for name, one in {**GOOD, **criteria}.items() if one is not None})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ("I would give it a 2.", "it holds no JSON object"),
        ("[2, 1]", "it holds no JSON object"),
        (TEXT[:-5], "its JSON is broken"),
        (TEXT.replace(",", ";"), "its JSON is broken"),
        (f'{{"draft": {TEXT}, ', "its JSON is broken"),
        (f"{TEXT} {TEXT}", "it holds several JSON objects; one is wanted"),
        (f"{{}} {TEXT}", "it holds several JSON objects"),
        ("{}", "it has no 'policy' and no 'tone'; the criteria are: policy, tone"),
        (changed(tone=None), "it has no 'tone'"),
        (
            changed(extra={"reason": "x", "score": 1}),
            "'extra' is no criterion; the criteria are: policy, tone",
        ),
        (changed(policy=2), "'policy' is 2; it must be an object with 'reason' and 'score' alone"),
        (changed(policy={"score": 2}), "it must be an object with 'reason' and 'score' alone"),
        (changed(policy={"reason": "x", "score": 2, "confidence": 1}), "'reason' and 'score' alone"),
        (changed(policy={"reason": "x", "score": "2"}), "the score of 'policy' is '2', which is no number"),
        (changed(policy={"reason": "x", "score": True}), "the score of 'policy' is True, which is no number"),
        (changed(policy={"reason": "x", "score": None}), "is None, which is no number"),
        (
            changed(policy={"reason": "x", "score": 2.01}),
            "the score of 'policy' is 2.01; it must be from 0 to 2",
        ),
        (changed(policy={"reason": "x", "score": -1}), "it must be from 0 to 2"),
        (changed(tone={"reason": "x", "score": 10**400}), "it must be from -1 to 1"),
        (changed(policy={"reason": " ", "score": 1}), "the reason of 'policy' is ' '; it must be a text"),
        (changed(policy={"reason": 3, "score": 1}), "the reason of 'policy' is 3"),
        (TEXT.replace("2}", "NaN}"), "NaN is no number"),
        (TEXT.replace("2}", "1e999}"), "it must be from 0 to 2"),
        (TEXT.replace('"score": 2', '"score": 0, "score": 2'), "'score' stands in it twice"),
        (TEXT[:-1] + f", {TEXT[1:]}", "'policy' stands in it twice"),
        ('{"policy":' * 100_000, "its JSON"),
    ],
)
def test_what_is_no_verdict_is_told_and_never_repaired(answer: str, why: str) -> None:
    with pytest.raises(Malformed) as malformed:
        read_verdict(answer, CRITERIA)
    assert why in str(malformed.value) and len(str(malformed.value)) < 400


def test_the_schema_takes_what_is_read_and_nothing_else() -> None:
    schema = verdict_schema(CRITERIA)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(GOOD, schema)
    for wrong in (
        {},
        {**GOOD, "extra": 1},
        {**GOOD, "tone": {"reason": "x", "score": 2}},
        {**GOOD, "tone": 1},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
    # The order is what makes a model reason before it scores.
    assert list(schema["properties"]["policy"]["properties"]) == ["reason", "score"]
