"""Review: a person's judgement of one finished attempt, the rubric that it follows, and what waits for one.

A Human Verifier brings the rubric (`verifiers/human.py`), the Trial's summary keeps it, and `reviewing.py`
records what people say. Here is what all of that is, and how it is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

from pydantic import Field

from plural_gym.errors import DefinitionError, RecordError, UsageError
from plural_gym.receipt import Pin
from plural_gym.records.job_folder import JOBS, JobFolder, JobStore
from plural_gym.records.reviewed import AWAITING, awaited
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.verifier import Criteria, rubric_score
from plural_gym.word import Word

SCHEMA = "plural.review/1"


class Rubric(Word):
    """What a person is asked: how to judge the work, and the qualities to score."""

    instructions: str = ""
    criteria: Criteria

    def scores(self, given: float | Mapping[str, float]) -> dict[str, float]:
        """The score of each criterion, from one a criterion, or from a bare one where there is one criterion.

        Raises:
            UsageError: a criterion without a score, a score without a criterion or out of its range, or a
                bare score for several criteria.
        """
        if not isinstance(given, Mapping):
            if len(self.criteria) > 1:
                raise UsageError(
                    f"the rubric has {len(self.criteria)} criteria; give each its own score: {self.ranges}."
                )
            given = {self.criteria[0].name: given}
        scores = {name: _number(name, value) for name, value in given.items()}
        self.score(scores)
        return scores

    def score(self, scores: Mapping[str, float]) -> float:
        """Scores of all criteria as one, 0 to 1: each brought to 0 to 1 by its range, then weighted."""
        return rubric_score(self.criteria, scores)

    @property
    def ranges(self) -> str:
        """`accuracy (0 to 2), tone (1 to 5)`."""
        return ", ".join(f"{one.name} ({one.min_score:g} to {one.max_score:g})" for one in self.criteria)


class Review(Word):
    """One person's judgement of one Trial for one Human Verifier. Recorded once, never changed."""

    schema_version: str = SCHEMA
    trial_id: str
    job_id: str
    verifier: Pin
    """The Human Verifier as it was when the Trial ran."""
    reviewer: str
    """Who judged: a name as it was given, or that of the account on this machine."""
    submitted: float
    """Unix time in seconds."""
    scores: dict[str, float]
    """By criterion, as the reviewer gave them."""
    score: float = Field(allow_inf_nan=False)
    """0 to 1: the Verifier's score by its rubric."""
    last: bool
    """Whether it was the last one that the Trial waited for."""
    trial_score: float | None = None
    """The Trial's score, which the last review makes known."""
    seat_scores: dict[str, float | None] = Field(default_factory=dict)
    """In a party, the score of every seat, which the last review makes known."""
    feedback: str | None = None
    """Notes for the record."""


@dataclass(frozen=True, slots=True)
class PendingReview:
    """A judgement that a person has yet to give."""

    trial_id: str
    job_id: str
    verifier: str
    """Name of the Human Verifier."""
    folder: TrialFolder = field(compare=False, repr=False)
    """Where the evidence lies."""


def reviews_of(folder: TrialFolder) -> list[Review]:
    """The reviews of a Trial, by Verifier. RecordError where one is damaged."""
    found = []
    for record in folder.reviews():
        try:
            found.append(Review(**record))
        except DefinitionError as error:
            raise RecordError(f"{folder.reviews_path}: {error}") from error
    return found


def rubrics_of(folder: TrialFolder) -> dict[str, Rubric]:
    """The rubric of every Human Verifier of a finished Trial, by its name.

    Raises:
        UsageError: the Trial has not finished, has failed, or has no Human Verifier.
    """
    if not folder.result_path.exists():
        raise UsageError(f"Trial {folder.id} has not finished; it can be reviewed once it has.")
    result = folder.result()
    if result["failure"] != "none":
        raise UsageError(f"Trial {folder.id} failed ({result['failure']}); it waits for no review.")
    rows = result["scores"]
    found = {row["verifier"]: Rubric(**row["rubric"]) for row in rows if row.get("rubric")}
    if not found:
        listed = ", ".join(dict.fromkeys(row["verifier"] for row in rows)) or "none"
        raise UsageError(f"Trial {folder.id} has no Human Verifier; its scores come from: {listed}.")
    return found


def pending_reviews(directory: str | Path = JOBS, *, job_id: str | None = None) -> list[PendingReview]:
    """What waits for a person, in all Jobs of a folder or in one; newest Job first, in the Job's order.

    Args:
        directory: where Jobs are kept.
        job_id: a Job's id, or how it begins.
    """
    store = JobStore(directory)
    jobs = store.jobs() if job_id is None else [store.find(job_id)]
    return [one for job in jobs if _may_wait(job) for one in _pending(job)]


def _may_wait(job: JobFolder) -> bool:
    """Whether a Job can hold a Trial that waits. Of one that has ended, its summary knows."""
    if job.running() or not job.result_path.exists():
        return True
    known = job.result()
    ended = known["finished"] == known["trials"] and "infrastructure" not in known["failures"]
    return not ended or AWAITING in known["by_status"]


def _pending(job: JobFolder) -> list[PendingReview]:
    """What waits in one Job; by Task, then Agent, then attempt."""
    pins = job.pins()
    tasks, agents = ([pin["name"] for pin in pins[words]] for words in ("tasks", "agents"))
    places = {name: place for place, name in enumerate(tasks)}, {name: n for n, name in enumerate(agents)}
    found = []
    for folder in job.trials():
        result = folder.result() if folder.result_path.exists() else {}
        names = awaited(result)
        if names:
            task, agent = places[0].get(result["task"], 0), places[1].get(result["agent"], 0)
            one = [PendingReview(folder.id, job.id, name, folder) for name in names]
            found.append((task, agent, result["agent"], result["attempt"], folder.id, one))
    return [one for *_, waiting in sorted(found, key=lambda entry: entry[:5]) for one in waiting]


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UsageError(f"the score of {name!r} is {value!r}, which is no number.")
    return float(value)
