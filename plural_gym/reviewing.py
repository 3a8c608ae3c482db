"""Reviewing: what happens when a person has judged a Trial.

`plural review submit` comes here. The review is recorded first, in a file that is made once; everything else
follows from it: the Trial's score, the credit of hindsight functions, the summaries, the ledger. Where the
process is killed on the way, `settle` does the rest, and meanwhile the record reads as if it were done
(`records/reviewed.py`).
"""

import getpass
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any

from plural_gym.errors import MachineError, PluralError, UnknownName, UsageError, suggest
from plural_gym.grading import fault_rows
from plural_gym.job import seal
from plural_gym.receipt import Pin
from plural_gym.records.atomic import clean
from plural_gym.records.job_folder import JobFolder
from plural_gym.records.reviewed import awaited, credit_due
from plural_gym.records.strict_json import legible
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.relabel import credit_reviewed
from plural_gym.review import PendingReview, Review, Rubric, rubrics_of
from plural_gym.runtime import Runtime
from plural_gym.task import TaskSet
from plural_gym.trial import Trial
from plural_gym.verifier import combine

WAIT_S = 5.0
"""How long a submission waits for another process that is at work on the Trial."""
_LOOK_S = 0.05


def submit_review(
    trial: Trial | PendingReview,
    score: float | Mapping[str, float],
    *,
    verifier: str | None = None,
    feedback: str | None = None,
    reviewer: str | None = None,
    tasks: TaskSet | None = None,
    runtime: Runtime | None = None,
) -> Review:
    """Record a person's judgement of a Trial. The last one that the Trial waits for finishes it.

    Then its score is known, and the hindsight functions of its Verifiers run, told that score.

    Args:
        trial: the Trial, or one of `pending_reviews()`, which names the Verifier, too.
        score: one a criterion by name; a bare number where the rubric has one criterion.
        verifier: the Human Verifier; needed where the Trial has several.
        feedback: notes for the record.
        reviewer: who judged; None: the account on this machine.
        tasks: where Tasks are looked up whose code the Job's own inputs do not hold.
        runtime: where hindsight functions run; None: worker processes on this machine.

    Raises:
        UsageError: the Trial waits for no such review, it has it already, or the score does not fit the
            rubric. Nothing was recorded.
        RecordError: the Trial lies in no Job's folder, or its record is damaged.
        MachineError: the Trial stays in use by another process, or the disk refuses; the message says
            whether the review was recorded.
    """
    folder = trial.folder
    job = JobFolder(folder.path.parent.parent)
    job.pins()  # a Trial that lies in no Job's folder is refused before anything is recorded
    if isinstance(trial, PendingReview):
        verifier = verifier or trial.verifier
    name, rubric = _asked(folder, verifier)
    scores = rubric.scores(score)
    with _in_hand(folder, name):
        _asked(folder, name)
        review = _review(folder, job, name, rubric, scores, feedback, reviewer)
        job.note_unsettled(folder.id)
        folder.write_review(name, review.model_dump(mode="json"))
        with _recorded(folder, name):
            _settle_trial(job, folder, tasks, runtime)
    with _recorded(folder, name):
        if not job.running():
            seal(job)
    return review


def _asked(folder: TrialFolder, verifier: str | None) -> tuple[str, Rubric]:
    """The Human Verifier that waits for a review, and its rubric. UsageError as `submit_review` says."""
    rubrics = rubrics_of(folder)
    if verifier is None:
        if len(rubrics) > 1:
            raise UsageError(
                f"Trial {folder.id} has {len(rubrics)} Human Verifiers; name one: {', '.join(rubrics)}."
            )
        [verifier] = rubrics
    if verifier not in rubrics:
        raise UnknownName(
            f"Trial {folder.id} has no Human Verifier {verifier!r}; {suggest(verifier, rubrics)}"
        )
    result = folder.result()
    given = [row["review"] for row in result["scores"] if row["verifier"] == verifier and row["review"]]
    if given:
        when = datetime.fromtimestamp(given[0]["submitted"]).strftime("%Y-%m-%d %H:%M:%S")
        raise UsageError(
            f"Trial {folder.id} has its review for {verifier!r} already, by {given[0]['reviewer']} at {when};"
            " a review is never replaced."
        )
    return verifier, rubrics[verifier]


@contextmanager
def _in_hand(folder: TrialFolder, verifier: str) -> Iterator[None]:
    """The Trial's lock, waited for a moment. MachineError where somebody else keeps it."""
    deadline = time.monotonic() + WAIT_S
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(folder.lock())
                break
            except MachineError:
                _asked(folder, verifier)
                if not folder.running():
                    raise
                if time.monotonic() > deadline:
                    raise MachineError(
                        f"Trial {folder.id} is in use by another process, such as plural verifier apply; "
                        "nothing was recorded. Try again in a moment."
                    ) from None
                time.sleep(_LOOK_S)
        yield


@contextmanager
def _recorded(folder: TrialFolder, verifier: str) -> Iterator[None]:
    """A block after the review is recorded: an error says so."""
    try:
        yield
    except (PluralError, OSError) as error:
        raise MachineError(
            f"the review of Trial {folder.id} for {verifier!r} is recorded and counts; what follows from it "
            f"could not be written, and is made up for by the next plural review list: {error}"
        ) from error


def _review(
    folder: TrialFolder,
    job: JobFolder,
    name: str,
    rubric: Rubric,
    scores: Mapping[str, float],
    feedback: str | None,
    reviewer: str | None,
) -> Review:
    """The review as it is recorded; for the holder of the Trial's lock."""
    result = folder.result()
    score = rubric.score(scores)
    last = awaited(result) == [name]
    pin = next(pin for pin in folder.receipt()["verifiers"] if pin["name"] == name)
    trial_score, seat_scores = _combined(result, name, score) if last else (None, {})
    return Review(
        trial_id=folder.id,
        job_id=job.id,
        verifier=Pin(**pin),
        reviewer=" ".join(str(legible(reviewer or "")).split()) or _account(),
        submitted=time.time(),
        scores=dict(scores),
        score=score,
        last=last,
        trial_score=trial_score,
        seat_scores=seat_scores,
        feedback=str(legible(feedback)) if feedback else None,
    )


def _combined(
    result: Mapping[str, Any], name: str, score: float
) -> tuple[float | None, dict[str, float | None]]:
    """The Trial's score once the last review is in, and in a party that of every seat.

    A person judges the whole attempt, so every seat gets the same. The Trial of a party has a score where one
    Agent has all seats.
    """
    shares: dict[str | None, list[tuple[float, float | None]]] = {}
    for row in result["scores"]:
        given = score if row["verifier"] == name else row["score"]
        shares.setdefault(row.get("seat"), []).append((row["weight"], given))
    seats = [seat for seat in result["seats"] if seat is not None]
    if not seats:
        return combine(shares[None]), {}
    by_seat = {
        seat["seat"]: combine(shares[seat["seat"]]) if seat["failure"] == "none" else None for seat in seats
    }
    alone = len({seat["agent"] for seat in seats}) == 1
    return combine((1.0, one) for one in by_seat.values()) if alone else None, by_seat


def _account() -> str:
    """The account of this process; its number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


# --- what follows from a review ---


def settle(job: JobFolder, *, tasks: TaskSet | None = None, runtime: Runtime | None = None) -> None:
    """Do what follows from reviews whose submission was killed: credit, summaries, ledger.

    Trials at which somebody is at work are left to them, and so is the ledger of a Job that runs. Cheap where
    there is nothing to do.
    """
    notes = job.unsettled()
    for trial_id in dict.fromkeys(notes.values()):
        folder = job.trial(trial_id)
        if folder.result_path.exists() and not folder.running():
            with folder.lock():
                _settle_trial(job, folder, tasks, runtime)
    if notes and not job.running():
        seal(job)


def _settle_trial(
    job: JobFolder, folder: TrialFolder, tasks: TaskSet | None, runtime: Runtime | None
) -> None:
    """Bring a Trial's summary to what its reviews say, late credit first; for the holder of its lock."""
    clean(folder.path)
    clean(folder.reviews_path)
    if folder.settled():
        return
    changes: dict[str, Any] = {}
    result = folder.result()
    if credit_due(result):
        failed = credit_reviewed(job, folder, tasks=tasks, runtime=runtime)
        changes = {"hindsight_due": [], "faults": [*result["faults"], *fault_rows(failed)]}
    folder.update(changes)
