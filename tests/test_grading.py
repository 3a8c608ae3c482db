"""What every Verifier says of an attempt becomes the Trial's score, or the reason why there is none."""

from typing import Any, ClassVar

from plural_gym.episode import Episode, recorded_apps
from plural_gym.errors import Fault, GradingFault, MachineError
from plural_gym.grading import AttemptGrading, Grades, grade, grade_rows
from plural_gym.step import TaskView
from plural_gym.verifier import Verifier, VerifierOutput


class Says(Verifier):
    """A kind whose grade is what it was built with."""

    kind: ClassVar[str] = "says"
    said: Any = None
    raised: Any = None

    @property
    def scores(self) -> bool:
        return True

    def grade(self, grading: Any) -> Any:
        if self.raised is not None:
            raise self.raised
        return self.said

    def identity(self) -> dict[str, Any]:
        return {"kind": self.kind}


EPISODE = Episode(TaskView("t", ""), recorded_apps({}), ())


def graded(*verifiers: Verifier) -> Grades:
    def run(verifier: Verifier, episode: Episode) -> VerifierOutput:
        return VerifierOutput(score=1.0)

    return grade(verifiers, lambda verifier: AttemptGrading(EPISODE, None, run, verifier))


def test_scores_are_combined_by_weight() -> None:
    one = Says(name="one", said=VerifierOutput(score=1.0), weight=3)
    two = Says(name="two", said=VerifierOutput(score=0.0))
    assert graded(one, two).score == 0.75


def test_a_kind_without_a_grade_of_its_own_runs_its_check() -> None:
    class Runs(Says):
        grade = Verifier.grade

    assert graded(Runs(name="runs")).given["runs"] == VerifierOutput(score=1.0)


def test_a_score_that_a_person_has_yet_to_give_leaves_the_trials_score_open_and_is_no_fault() -> None:
    grades = graded(Says(name="one", said=VerifierOutput(score=1.0)), Says(name="person"))
    assert (grades.score, grades.awaited, grades.faults) == (None, ("person",), [])


def test_the_fault_of_a_verifier_is_neither_a_zero_nor_left_out() -> None:
    grades = graded(
        Says(name="one", said=VerifierOutput(score=1.0)), Says(name="bad", raised=GradingFault("no score"))
    )
    assert (grades.score, grades.unreached) == (None, False)
    assert [(fault.where, fault.message) for fault in grades.faults] == [("verifier bad check", "no score")]
    (_, row) = grade_rows([Says(name="one"), Says(name="bad")], grades.given)
    assert (row["score"], row["fault"]["message"]) == (None, "no score")


def test_what_could_not_be_reached_is_the_machines_failure() -> None:
    grades = graded(Says(name="far", raised=MachineError("no connection")))
    assert (grades.score, grades.unreached) == (None, True)
    assert isinstance(grades.given["far"], Fault)
