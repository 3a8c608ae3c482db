"""What a review is, what a rubric accepts, and what waits for a person."""

import json
from pathlib import Path
from typing import Any

import pytest

from plural_gym.errors import DefinitionError, RecordError, UnknownName, UsageError
from plural_gym.records.job_folder import JobFolder, JobStore
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.review import PendingReview, Rubric, pending_reviews, reviews_of, rubrics_of
from plural_gym.verifier import RubricCriterion

FACTS = RubricCriterion(name="facts", max_score=2, weight=3)
TONE = RubricCriterion(name="tone", min_score=1, max_score=5)
ONE = Rubric(instructions="Read.", criteria=(FACTS,))
TWO = Rubric(instructions="Read.", criteria=(FACTS, TONE))


class Store:
    """Jobs on disk whose Trials have ended as they are told to."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def job(self, name: str, *trials: dict[str, Any], summary: dict[str, Any] | None = None) -> JobFolder:
        job = JobStore(self.root).job(name)
        tasks = list(dict.fromkeys(trial.get("task", "t") for trial in reversed(trials)))
        job.create({"tasks": [{"name": task} for task in tasks], "agents": [{"name": "z"}, {"name": "a"}]})
        for number, trial in enumerate(trials):
            self.trial(job, f"{name}-{number}", trial)
        if summary is not None:
            job.write_result({"finished": 1, "trials": 1, "by_status": {}, "failures": {}, **summary})
        return job

    @staticmethod
    def trial(job: JobFolder, name: str, fields: dict[str, Any]) -> None:
        waits = fields.pop("waits", ["person"])
        rows = [{"verifier": one, "score": None, "rubric": ONE.model_dump(), "review": None} for one in waits]
        row = {"task": "t", "agent": "a", "attempt": 1, "failure": "none", "seats": [None]}
        row |= {"status": "awaiting_review", "awaits": waits, "scores": rows}
        folder = job.trial(name)
        folder.create()
        folder.seal({**row, **fields})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "jobs")


@pytest.mark.parametrize(
    ("rubric", "given", "scores", "score"),
    [
        (ONE, 2, {"facts": 2.0}, 1.0),
        (ONE, {"facts": 1}, {"facts": 1.0}, 0.5),
        (TWO, {"tone": 3, "facts": 2}, {"tone": 3.0, "facts": 2.0}, (3 * 1.0 + 0.5) / 4),
    ],
)
def test_criteria_are_brought_to_0_to_1_and_weighted(
    rubric: Rubric, given: Any, scores: dict[str, float], score: float
) -> None:
    assert rubric.scores(given) == scores
    assert rubric.score(scores) == score


@pytest.mark.parametrize(
    ("rubric", "given", "message"),
    [
        (
            TWO,
            2,
            r"the rubric has 2 criteria; give each its own score: facts \(0 to 2\), tone \(1 to 5\)\.",
        ),
        (TWO, {"facts": 2}, "criterion 'tone' has no score"),
        (ONE, {"fact": 2}, "no criterion is named 'fact'; there are: facts"),
        (ONE, 3, r"score 3 of 'facts' is outside 0\.\.2"),
        (TWO, {"facts": 1, "tone": 0.5}, r"score 0\.5 of 'tone' is outside 1\.\.5"),
        (ONE, float("nan"), r"score nan of 'facts' is outside 0\.\.2"),
        (ONE, float("inf"), r"score inf of 'facts' is outside 0\.\.2"),
        (ONE, True, "the score of 'facts' is True, which is no number"),
        (ONE, {"facts": "2"}, "the score of 'facts' is '2', which is no number"),
    ],
)
def test_a_score_that_does_not_fit_the_rubric_is_refused(rubric: Rubric, given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rubric.scores(given)


def test_a_rubric_has_criteria() -> None:
    with pytest.raises(DefinitionError, match="criteria"):
        Rubric(criteria=())


def test_what_waits_stands_by_job_task_agent_and_attempt(store: Store) -> None:
    store.job("touched", {"attempt": 2}, {"attempt": 1, "waits": ["first", "second"]})
    store.job("former", {"task": "b"}, {"task": "a", "agent": "a"}, {"task": "a", "agent": "z"})
    (store.root / "touched/job.json").touch()
    waiting = [(one.job_id, one.trial_id, one.verifier) for one in pending_reviews(store.root)]
    assert waiting == [
        ("touched", "touched-1", "first"),
        ("touched", "touched-1", "second"),
        ("touched", "touched-0", "person"),
        ("former", "former-2", "person"),
        ("former", "former-1", "person"),
        ("former", "former-0", "person"),
    ]
    assert next(iter(pending_reviews(store.root, job_id="for"))).trial_id == "former-2"
    with pytest.raises(UnknownName, match="there is no Job 'x'"):
        pending_reviews(store.root, job_id="x")


def test_what_has_ended_otherwise_or_not_at_all_waits_for_nobody(store: Store) -> None:
    job = store.job("job", {"status": "succeeded"}, {"status": "failed"}, {"waits": []})
    job.trial("unfinished").create()
    assert pending_reviews(store.root) == []
    assert pending_reviews(store.root / "none") == []


@pytest.mark.parametrize(
    ("summary", "read"),
    [
        ({}, False),
        ({"by_status": {"succeeded": 1}}, False),
        ({"by_status": {"awaiting_review": 1}}, True),
        ({"trials": 2}, True),
        ({"failures": {"infrastructure": 1}}, True),
        (None, True),
    ],
)
def test_of_a_job_that_has_ended_the_summary_says_whether_its_trials_are_read(
    store: Store, summary: dict[str, Any] | None, read: bool
) -> None:
    job = store.job("job", {}, summary=summary)
    assert len(pending_reviews(store.root)) == read
    if not read:
        with job.lock():
            assert len(pending_reviews(store.root)) == 1


def test_the_rubric_of_a_trial_is_that_of_its_record(store: Store) -> None:
    job = store.job("job", {}, {"status": "failed", "failure": "agent"}, {"waits": []})
    assert rubrics_of(job.trial("job-0")) == {"person": ONE}
    with pytest.raises(UsageError, match=r"Trial job-1 failed \(agent\); it waits for no review"):
        rubrics_of(job.trial("job-1"))
    with pytest.raises(UsageError, match="Trial job-2 has no Human Verifier; its scores come from: none"):
        rubrics_of(job.trial("job-2"))
    with pytest.raises(UsageError, match="Trial job-9 has not finished"):
        rubrics_of(job.trial("job-9"))


def test_a_review_that_was_edited_is_told_as_damage(store: Store) -> None:
    folder: TrialFolder = store.job("job", {"status": "succeeded"}).trial("job-0")
    assert reviews_of(folder) == []
    folder.write_review("person", {"reviewer": 3})
    with pytest.raises(RecordError, match=r"reviews: Review: .*trial_id is missing"):
        reviews_of(folder)
    folder.review_path("person").write_text("{")
    with pytest.raises(RecordError, match=r"person\.json: damaged"):
        folder.reviews()


def test_pending_reviews_are_equal_by_their_ids(store: Store) -> None:
    folder = store.job("job", {}).trial("job-0")
    [one] = pending_reviews(store.root)
    assert one == PendingReview("job-0", "job", "person", TrialFolder("elsewhere"))
    assert one.folder.path == folder.path
    assert json.loads(folder.result_path.read_text())["awaits"] == [one.verifier]
