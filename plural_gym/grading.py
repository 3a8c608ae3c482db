"""Grading: what every Verifier says of one finished attempt, and the Trial's score.

`execution.py` comes here when an attempt has been played, `replay.py` when a stored one is judged anew. How a
kind grades is its own (`Verifier.grade`); here it gets what it needs for that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from plural_gym.command import Command, Ran
from plural_gym.episode import Episode
from plural_gym.errors import CredentialMissing, Fault, GradingFault, MachineError
from plural_gym.gateway.client import shared
from plural_gym.host.commands import run_command
from plural_gym.model import NOTHING_USED, Completion, ModelRequest, ModelUsage
from plural_gym.verifier import Verifier, VerifierOutput, combine

Grade = VerifierOutput | Fault | None
"""What a Verifier says: its output, the fault of its code, or None while a person has yet to say it."""


def _unrecorded(request: ModelRequest, verifier: str, seat: str | None) -> Completion:
    return shared().complete(request, purpose="judge", verifier=verifier, seat=seat)


@dataclass(frozen=True, slots=True)
class AttemptGrading:
    """What one Verifier may use to grade one attempt; see `verifier.Grading`."""

    episode: Episode
    artifacts: Path | None
    """The folder of the Trial's artifacts; None where no files were kept."""
    run: Callable[[Verifier, Episode], VerifierOutput | Fault]
    """Runs the check function of a Verifier in a process of its own."""
    verifier: Verifier
    log: Path | None = None
    """Where the output of commands is kept; None: nowhere."""
    commands: Callable[[Command, Episode, Path | None, Path | None], Ran] = run_command
    """Runs a command on the evidence; by default on this machine."""
    ask: Callable[[ModelRequest, str, str | None], Completion] = _unrecorded
    """Asks a model, for a Verifier by name and a seat; by default without a record."""
    used: list[ModelUsage] = field(default_factory=list)
    """Of every model call that was answered."""

    def run_check(self) -> VerifierOutput | Fault:
        return self.run(self.verifier, self.episode)

    def run_command(self, command: Command) -> Ran:
        return self.commands(command, self.episode, self.artifacts, self.log)

    def complete(self, request: ModelRequest) -> Completion:
        completion = self.ask(request, self.verifier.name, self.episode.seat)
        self.used.append(completion.usage)
        return completion


@dataclass(slots=True)
class Grades:
    """What all Verifiers of a Trial said."""

    given: dict[str, Grade] = field(default_factory=dict)
    """By Verifier's name; those that score."""
    usage: dict[str, ModelUsage] = field(default_factory=dict)
    """By Verifier's name; those that called a model. It is never part of the Agent's usage."""
    faults: list[Fault] = field(default_factory=list)
    """What failed in grading, the combination of scores included."""
    score: float | None = None
    """The Trial's score; None: unknown, or awaited."""
    unreached: bool = False
    """Whether the machine, not the Verifiers' code, is why something is missing."""

    def known_score(self) -> float | None:
        """The score; raises MachineError where it is missing since something could not be reached."""
        if self.unreached:
            raise MachineError("; ".join(str(fault) for fault in self.faults))
        return self.score

    @property
    def awaited(self) -> tuple[str, ...]:
        """Names of the Verifiers whose score a person has yet to give."""
        return tuple(name for name, grade in self.given.items() if grade is None)


def grade(verifiers: Sequence[Verifier], grading_of: Callable[[Verifier], AttemptGrading]) -> Grades:
    """Let every Verifier that scores grade the attempt, and combine what they say."""
    grades = Grades()
    scoring = [verifier for verifier in verifiers if verifier.scores]
    for verifier in scoring:
        grading = grading_of(verifier)
        try:
            said: Grade = verifier.grade(grading)
        except (MachineError, CredentialMissing) as error:
            said = Fault.of(error, f"verifier {verifier.name} check")
            grades.unreached = True
        except GradingFault as error:
            said = Fault.of(error, f"verifier {verifier.name} check")
        grades.given[verifier.name] = said
        if grading.used:
            grades.usage[verifier.name] = sum(grading.used, NOTHING_USED)
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


def grade_rows(
    verifiers: Iterable[Verifier],
    given: Mapping[str, Grade],
    usage: Mapping[str, ModelUsage] | None = None,
) -> list[dict[str, Any]]:
    """The `scores` of `result.json`: a row for each Verifier that scores, with what its model calls used."""
    used = usage or {}
    return [
        _row(verifier, given.get(verifier.name), used.get(verifier.name))
        for verifier in verifiers
        if verifier.scores
    ]


def _row(verifier: Verifier, given: Grade, usage: ModelUsage | None) -> dict[str, Any]:
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
    if verifier.rubric is not None:
        row |= {"rubric": verifier.rubric.model_dump(mode="json"), "review": None}
    if isinstance(given, VerifierOutput):
        row |= {"scores": given.scores, "evidence": list(given.evidence), "feedback": given.feedback}
    elif given is not None:
        row["fault"] = fault_row(given)
    if usage is not None:
        row["usage"] = asdict(usage)
    return row


def fault_row(fault: Fault) -> dict[str, Any]:
    """A Fault as records show it: all but its traceback, which is for the logs."""
    row = asdict(fault)
    del row["trace"]
    return row


def fault_rows(faults: Iterable[Fault]) -> list[dict[str, Any]]:
    """Faults alike as one row with their count, in order of first appearance."""
    rows: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for fault in faults:
        key = (fault.where, fault.type, fault.message, fault.at)
        rows.setdefault(key, {**fault_row(fault), "count": 0})["count"] += 1
    return list(rows.values())
