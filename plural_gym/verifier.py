"""Verifier: the grader of a Task; its output, rubric criteria, and the arithmetic of scores.

The kinds lie in `verifiers/`. Scoring rules are the specification's: each criterion's range is normalised to
0..1 and weighted within its Verifier; each Verifier's weight is its share of the Trial's score; only `check`
counts.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

from pydantic import AfterValidator, Field, PrivateAttr, field_validator, model_validator

from plural_gym.errors import DefinitionError, Fault, GradingFault, UsageError
from plural_gym.identity import content_hash
from plural_gym.records.strict_json import legible
from plural_gym.word import Number, Word

if TYPE_CHECKING:
    from plural_gym.command import Command, Ran
    from plural_gym.episode import Episode
    from plural_gym.model import Completion, ModelChoice, ModelRequest
    from plural_gym.review import Rubric

Hook = Literal["check", "reward", "hindsight"]


class VerifierOutput(Word):
    """What a check answers."""

    score: float = Field(allow_inf_nan=False)
    """Any finite number, usually 0 to 1."""
    scores: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = Field(default_factory=dict)
    """Extra measurements, for people to read."""
    evidence: tuple[str, ...] = ()
    """The result in words."""
    feedback: str | None = None

    @field_validator("evidence", mode="before")
    @classmethod
    def _one_line_is_a_list(cls, value: Any) -> Any:
        lines = (value,) if isinstance(value, str) else value
        return tuple(map(legible, lines)) if isinstance(lines, list | tuple) else lines

    @field_validator("feedback", mode="before")
    @classmethod
    def _can_be_written(cls, value: Any) -> Any:
        return legible(value)


class RubricCriterion(Word):
    """One quality a person or a model scores, with what each score means."""

    name: str = Field(min_length=1)
    description: str = ""
    min_score: Number = Field(default=0.0, allow_inf_nan=False)
    max_score: Number = Field(default=1.0, allow_inf_nan=False)
    weight: Number = Field(default=1.0, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _range_is_not_empty(self) -> "RubricCriterion":
        if self.min_score >= self.max_score:
            raise ValueError(
                f"criterion {self.name!r}: min_score {self.min_score:g} is not below "
                f"max_score {self.max_score:g}"
            )
        return self


def _named_apart(criteria: tuple[RubricCriterion, ...]) -> tuple[RubricCriterion, ...]:
    names = [criterion.name for criterion in criteria]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise ValueError(f"two criteria are named {doubled!r}; scores are given by name")
    return criteria


Criteria = Annotated[tuple[RubricCriterion, ...], Field(min_length=1), AfterValidator(_named_apart)]
"""What a rubric consists of: at least one criterion, no two of one name."""


def rubric_score(criteria: Sequence[RubricCriterion], scores: Mapping[str, float]) -> float:
    """The weighted mean of criteria, each normalised to 0..1 by its range.

    Raises:
        UsageError: a criterion has no score, a score has no criterion, or one is out of its range.
    """
    names = [criterion.name for criterion in criteria]
    for name in scores:
        if name not in names:
            raise UsageError(f"no criterion is named {name!r}; there are: {', '.join(names)}.")
    shares: list[tuple[float, float | None]] = []
    for criterion in criteria:
        if criterion.name not in scores:
            raise UsageError(f"criterion {criterion.name!r} has no score.")
        value = scores[criterion.name]
        if not criterion.min_score <= value <= criterion.max_score:
            raise UsageError(
                f"score {value:g} of {criterion.name!r} is outside "
                f"{criterion.min_score:g}..{criterion.max_score:g}."
            )
        # Halved, which loses nothing, so that no difference overflows.
        low, high = criterion.min_score / 2, criterion.max_score / 2
        shares.append((criterion.weight, (value / 2 - low) / (high - low)))
    return combine(shares) or 0.0


def combine(scores: Iterable[tuple[float, float | None]]) -> float | None:
    """The Trial's score from (weight, score) of every Verifier that scores: the weighted mean.

    None, unknown, as soon as one score is unknown: neither 0 nor the mean of the rest.

    Raises:
        GradingFault: the mean is no finite number.
    """
    pairs = list(scores)
    if not pairs or any(score is None for _, score in pairs):
        return None
    try:
        total = math.fsum(weight for weight, _ in pairs)
        mean = math.fsum(weight * score for weight, score in pairs if score is not None) / total
    except (OverflowError, ValueError):
        mean = math.inf
    if not math.isfinite(mean):
        # Weights and scores near the largest float: by shares of the heaviest, which hardly ever overflow.
        heaviest = max(weight for weight, _ in pairs)
        total = math.fsum(weight / heaviest for weight, _ in pairs)
        mean = sum(weight / heaviest / total * score for weight, score in pairs if score)
    if not math.isfinite(mean):
        raise GradingFault("the weighted mean of the Verifiers' scores is no finite number.")
    return mean


def total_reward(episode: Any) -> VerifierOutput:
    """As `check`: the score is the sum of the Verifier's own step rewards, hindsight excluded.

    The host recognises it; it has no meaning when called by hand.
    """
    raise UsageError(
        "total_reward is named as a check: DeterministicVerifier(check=total_reward, reward=...)."
    )


class Grading(Protocol):
    """What a Verifier may use to grade one finished attempt."""

    @property
    def episode(self) -> "Episode":
        """The full record of the attempt."""
        ...

    @property
    def artifacts(self) -> Path | None:
        """The folder of the files the Agent produced; None where none were kept."""
        ...

    def run_check(self) -> VerifierOutput | Fault:
        """What the Verifier's own check function says, run beside the Apps in a process that can be ended."""
        ...

    def run_command(self, command: "Command") -> "Ran":
        """How a program ended that was run on a copy of the evidence.

        Raises:
            GradingFault: it cannot be run.
            MachineError: there is no place or no process for it.
        """
        ...

    def complete(self, request: "ModelRequest") -> "Completion":
        """What a model answers; recorded with the Trial, and apart from what the Agent used.

        Raises:
            RequestRefused: the endpoint does not take the request.
            MachineError: it cannot be reached.
        """
        ...


class Verifier(Word):
    """A grader of finished attempts, and where it has a reward function, of single actions.

    A kind says through `functions` which author code it runs beside the Apps, through `scores` whether
    it counts in a Trial's score, and through `grade` how it comes to one.
    """

    kind: ClassVar[str]

    name: str = Field(min_length=1)
    version: str = "0.1.0"
    title: str = ""
    description: str = ""
    weight: Number = Field(default=1.0, gt=0, allow_inf_nan=False)
    """Share of the Trial's score. Never scales a step reward."""
    _folder: Path | None = PrivateAttr(default=None)
    _hash: str | None = PrivateAttr(default=None)

    @property
    def scores(self) -> bool:
        """Whether it has a check, so that its score counts."""
        raise NotImplementedError

    def grade(self, grading: Grading) -> VerifierOutput | Fault | None:
        """Its score of one finished attempt; None where a person has yet to give it.

        Asked only where `scores`. The fault of author code is returned, never a score of 0.

        Raises:
            GradingFault: what it was given cannot be graded.
            MachineError: what it grades with could not be reached; the Trial may be run again.
        """
        return grading.run_check()

    @property
    def rubric(self) -> "Rubric | None":
        """What a person is asked, where `grade` leaves the score to one; None where it never does."""
        return None

    def functions(self) -> dict[Hook, Callable[..., Any]]:
        """Author code that runs beside the Apps, by hook."""
        return {}

    def models(self) -> "tuple[ModelChoice, ...]":
        """The models that it asks, so that a missing key is found before a Job runs."""
        return ()

    @property
    def runs_again(self) -> bool:
        """Whether it can be run on a stored Trial: it has functions, a program, or a model to ask."""
        return bool(self.functions() or self.models())

    def timeouts_s(self) -> dict[Hook, float]:
        """Seconds after which a worker gives a hook up."""
        return {}

    def identity(self) -> dict[str, Any]:
        """What its content hash covers; name, title and version left out."""
        raise NotImplementedError

    @property
    def content_hash(self) -> str:
        """Identity of how it grades, its code included."""
        if self._hash is None:
            self._hash = content_hash("verifier", self.identity())
        return self._hash

    @property
    def folder(self) -> Path | None:
        """Its folder in a project; None where it was built in Python."""
        return self._folder


def check_verifiers(verifiers: Sequence[Verifier], where: str) -> None:
    """Hold a Task's Verifiers to the rules that concern them together.

    Raises:
        DefinitionError: two of one name, or none that scores.
    """
    seen: set[str] = set()
    for verifier in verifiers:
        if verifier.name in seen:
            raise DefinitionError(
                f"{where}: two Verifiers are named {verifier.name!r}; scores are recorded by name."
            )
        seen.add(verifier.name)
    if not any(verifier.scores for verifier in verifiers):
        raise DefinitionError(
            f"{where}: no Verifier scores; attach at least one with a check "
            f"(has: {', '.join(seen) or 'none'})."
        )
