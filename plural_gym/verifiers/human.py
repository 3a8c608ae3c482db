"""The Verifier that asks a person: a rubric that somebody fills in after the attempt."""

from typing import Any, ClassVar

from pydantic import Field

from plural_gym.review import Rubric
from plural_gym.verifier import Criteria, Grading, Verifier


class HumanVerifier(Verifier):
    """Asks a person to score the finished work against a rubric.

    The Trial waits at `awaiting_review` until somebody has submitted a review; see `reviewing.py`.
    """

    kind: ClassVar[str] = "human"

    instructions: str = Field(min_length=1)
    """What the reviewer is told to do before scoring."""
    criteria: Criteria
    """The qualities to score, each with its range and what its scores mean."""

    @property
    def scores(self) -> bool:
        return True

    def grade(self, grading: Grading) -> None:
        """None, always: a person has yet to give the score."""

    @property
    def rubric(self) -> Rubric:
        return Rubric(instructions=self.instructions, criteria=self.criteria)

    def identity(self) -> dict[str, Any]:
        return {"kind": self.kind, "weight": self.weight, **self.rubric.model_dump(mode="json")}
