"""Grading: what every Verifier says of one finished attempt, and the Trial's score.

`execution.py` comes here when an attempt has been played, `replay.py` when a stored one is judged anew. How a
kind grades is its own (`Verifier.grade`); here it gets what it needs for that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from plural_gym.episode import Episode
from plural_gym.errors import Fault, GradingFault, MachineError
from plural_gym.verifier import Verifier, VerifierOutput, combine

Grade = VerifierOutput | Fault | None
"""What a Verifier says: its output, the fault of its code, or None while a person has yet to say it."""


@dataclass(frozen=True, slots=True)
class AttemptGrading:
    """What one Verifier may use to grade one attempt; see `verifier.Grading`."""

    episode: Episode
    artifacts: Path | None
    """The folder of the Trial's artifacts; None where no files were kept."""
    run: Callable[[Verifier, Episode], VerifierOutput | Fault]
    """Runs the check function of a Verifier in a process of its own."""
    verifier: Verifier

    def run_check(self) -> VerifierOutput | Fault:
        return self.run(self.verifier, self.episode)


@dataclass(slots=True)
class Grades:
    """What all Verifiers of a Trial said."""

    given: dict[str, Grade] = field(default_factory=dict)
    """By Verifier's name; those that score."""
    faults: list[Fault] = field(default_factory=list)
    """What failed in grading, the combination of scores included."""
    score: float | None = None
    """The Trial's score; None: unknown, or awaited."""
    unreached: bool = False
    """Whether the machine, not the Verifiers' code, is why something is missing."""

    @property
    def awaited(self) -> tuple[str, ...]:
        """Names of the Verifiers whose score a person has yet to give."""
        return tuple(name for name, grade in self.given.items() if grade is None)


def grade(verifiers: Sequence[Verifier], grading_of: Callable[[Verifier], AttemptGrading]) -> Grades:
    """Let every Verifier that scores grade the attempt, and combine what they say."""
    grades = Grades()
    scoring = [verifier for verifier in verifiers if verifier.scores]
    for verifier in scoring:
        try:
            said: Grade = verifier.grade(grading_of(verifier))
        except MachineError as error:
            said = Fault.of(error, f"verifier {verifier.name} check")
            grades.unreached = True
        except GradingFault as error:
            said = Fault.of(error, f"verifier {verifier.name} check")
        grades.given[verifier.name] = said
        if isinstance(said, Fault):
            grades.faults.append(said)
    try:
        grades.score = combine(
            (verifier.weight, score_of(grades.given[verifier.name])) for verifier in scoring
        )
    except GradingFault as error:
        grades.faults.append(Fault.of(error, "the Trial's score"))
    return grades


def score_of(grade: Grade) -> float | None:
    """The score of a grade; None where it has none."""
    return grade.score if isinstance(grade, VerifierOutput) else None


def grade_rows(verifiers: Iterable[Verifier], given: Mapping[str, Grade]) -> list[dict[str, Any]]:
    """The `scores` of `result.json`: one row for each Verifier that scores."""
    return [_row(verifier, given.get(verifier.name)) for verifier in verifiers if verifier.scores]


def _row(verifier: Verifier, given: Grade) -> dict[str, Any]:
    row: dict[str, Any] = {
        "verifier": verifier.name,
        "version": verifier.version,
        "kind": verifier.kind,
        "weight": verifier.weight,
        "score": score_of(given),
        "scores": {},
        "evidence": [],
        "feedback": None,
        "fault": None,
    }
    if isinstance(given, VerifierOutput):
        row |= {"scores": given.scores, "evidence": list(given.evidence), "feedback": given.feedback}
    elif given is not None:
        row["fault"] = fault_row(given)
    return row


def fault_row(fault: Fault) -> dict[str, Any]:
    """A Fault as records show it: all but its traceback, which is for the logs."""
    row = asdict(fault)
    del row["trace"]
    return row
