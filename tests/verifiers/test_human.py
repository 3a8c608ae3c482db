"""The Verifier that asks a person."""

from typing import Any

import pytest

from plural_gym import kinds
from plural_gym.episode import Episode, recorded_apps
from plural_gym.errors import DefinitionError
from plural_gym.grading import AttemptGrading, grade
from plural_gym.step import TaskView
from plural_gym.testing import check_verifier
from plural_gym.verifier import RubricCriterion, VerifierOutput
from plural_gym.verifiers.human import HumanVerifier

TONE = RubricCriterion(name="tone", description="0: rude. 2: polite.", max_score=2)
EPISODE = Episode(TaskView("t", ""), recorded_apps({}), ())


def human(**fields: Any) -> HumanVerifier:
    return HumanVerifier(
        **{"name": "person", "instructions": "Read the reply.", "criteria": [TONE], **fields}
    )


def test_it_counts_in_the_score_and_never_gives_one_itself() -> None:
    def run(verifier: Any, episode: Episode) -> VerifierOutput:
        raise AssertionError("a person is asked, not code")

    made = human()
    grades = grade([made], lambda verifier: AttemptGrading(EPISODE, None, run, verifier))
    assert made.scores and made.functions() == {} and not made.runs_again
    assert (grades.score, grades.awaited, grades.faults) == (None, ("person",), [])
    check_verifier(made, ())


def test_its_rubric_is_what_the_reviewer_is_asked() -> None:
    rubric = human().rubric
    assert (rubric.instructions, rubric.criteria) == ("Read the reply.", (TONE,))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"criteria": []}, "criteria: .* at least 1 item"),
        ({"criteria": [TONE, TONE]}, "two criteria are named 'tone'; scores are given by name"),
        ({"instructions": ""}, "instructions: .* at least 1 character"),
        ({"weight": 0}, "weight"),
        ({"model": "a/b"}, "model is no field"),
    ],
)
def test_a_rubric_that_nobody_could_fill_in_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=f"HumanVerifier 'person'.*{message}"):
        human(**fields)


def test_its_identity_is_what_is_asked_and_its_weight() -> None:
    same = human(name="other", version="2.0.0", title="T", description="D")
    assert same.content_hash == human().content_hash
    for changed in (
        {"instructions": "Read it twice."},
        {"weight": 2},
        {"criteria": [TONE.model_copy(update={"description": "0: cold. 2: warm."})]},
        {"criteria": [TONE.model_copy(update={"max_score": 3})]},
    ):
        assert human(**changed).content_hash != human().content_hash


def test_a_project_declares_it_by_its_kind(workshop: Any) -> None:
    workshop.write(
        "verifiers/person/verifier.yaml",
        """
        name: person
        version: 0.1.0
        kind: human
        instructions: Read the reply.
        weight: 2
        criteria:
          - name: tone
            description: "0: rude. 2: polite."
            min_score: 0
            max_score: 2
        """,
    )
    made = workshop.project.verifiers["person"]
    assert type(made) is kinds.load("plural.verifiers", "human") is HumanVerifier
    assert made.content_hash == human(weight=2).content_hash
