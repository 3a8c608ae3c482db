"""From a person's review to the score, the late credit and every summary; once, and through any kill."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from plural_gym import refs, reviewing
from plural_gym.agent import Agent
from plural_gym.environment import Environment
from plural_gym.errors import MachineError, RecordError, UnknownName, UsageError
from plural_gym.job import Job, JobResult
from plural_gym.records import ledger
from plural_gym.records.job_folder import JobFolder
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.relabel import apply_verifier
from plural_gym.review import pending_reviews
from plural_gym.reviewing import settle, submit_review
from plural_gym.task import Task, TaskSet
from plural_gym.trial import Trial
from plural_gym.verifier import RubricCriterion
from plural_gym.verifiers.deterministic import DeterministicVerifier
from plural_gym.verifiers.human import HumanVerifier

CODE = """
from plural import App, Episode, HindsightTrial, State, Step, VerifierOutput, action

class Count(State):
    n: int = 0

class Counter(App):
    state: Count

    @action
    def add(self, by: int = 1) -> int:
        "Add to the count."
        self.state.n += by
        return self.state.n

def half(episode: Episode) -> VerifierOutput:
    return VerifierOutput(score=0.5, evidence=["half of it"])

def growth(step: Step) -> float:
    return 0.25

def last(trial: HindsightTrial):
    yield trial.credit(trial.steps("add")[-1]["event_id"], trial.score)

def play(task, seat):
    seat.act("add")
    seat.act("add", by=2)
    return "done"
"""
TONE = RubricCriterion(name="tone", description="0: rude. 2: polite.", max_score=2)
FACTS = RubricCriterion(name="facts", max_score=4, weight=3)


def human(name: str = "person", *criteria: RubricCriterion, weight: float = 1) -> HumanVerifier:
    return HumanVerifier(name=name, instructions="Read it.", criteria=criteria or (TONE,), weight=weight)


class Desk:
    """Author code in a file, and Tasks made of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        (root / "code.py").write_text(CODE, encoding="utf-8")

    def __getattr__(self, name: str) -> Any:
        return refs.load(f"code.py:{name}", self.root)

    def half(self, **hooks: Any) -> DeterministicVerifier:
        known = {"check": self.__getattr__("half"), "reward": self.growth, "hindsight": self.last}
        return DeterministicVerifier(name="half", **{**known, **hooks})

    def task(self, name: str, *verifiers: Any) -> Task:
        environment = Environment(name="counter", apps={"counter": self.Counter})
        return Task(name=name, instructions="Count.", environment=environment, verifiers=verifiers)

    def run(self, directory: Path, *tasks: Task, play: Any = None, **options: Any) -> JobFolder:
        agent = Agent(name="ada", harness=play or self.play)
        return Job(tasks=tasks, agents=[agent], directory=directory, **options).run().folder


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk") / "code")


@pytest.fixture(scope="module")
def played(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Job of two Trials: `one` waits for one person, `two` for two."""
    root = tmp_path_factory.mktemp("played")
    tasks = [
        desk.task("one", desk.half(), human(weight=3)),
        desk.task("two", desk.half(), human(weight=3), human("expert", FACTS, TONE, weight=2)),
    ]
    desk.run(root / "jobs", *tasks, job_id="job_a")
    return root / "jobs"


@pytest.fixture
def job(played: Path, tmp_path: Path) -> JobFolder:
    shutil.copytree(played, tmp_path / "jobs")
    return JobFolder(tmp_path / "jobs/job_a")


def trial_of(job: JobFolder, task: str) -> Trial:
    [found] = [trial for trial in JobResult(job).trials if trial.task == task]
    return found


def late(trial: Trial) -> list[dict[str, Any]]:
    return [row for row in trial.folder.rewards() if row["kind"] == "hindsight"]


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


def episodes(job: JobFolder) -> dict[str, dict[str, Any]]:
    return {row["task"]: row for row in ledger.read(job, "episodes").to_pylist()}


# --- waiting ---


def test_a_trial_that_code_has_graded_waits_for_the_person(job: JobFolder) -> None:
    trial = trial_of(job, "one")
    result = trial.result
    assert (trial.status, trial.score, result["failure"]) == ("awaiting_review", None, "none")
    assert [(row["verifier"], row["kind"], row["score"]) for row in result["scores"]] == [
        ("half", "deterministic", 0.5),
        ("person", "human", None),
    ]
    assert result["scores"][0]["evidence"] == ["half of it"]
    assert result["scores"][1]["rubric"]["criteria"][0]["max_score"] == 2.0
    assert late(trial) == [] and len(trial.rewards) == 2
    assert result["awaits"] == ["person"] and result["hindsight_due"] == ["half"]
    summary = job.result()
    assert (summary["status"], summary["by_status"]) == ("awaiting_review", {"awaiting_review": 2})
    [row] = JobResult(job).leaderboard.rows
    assert (row.score, row.waiting, row.rank) == (None, 2, None)
    waiting = [(one.trial_id, one.verifier) for one in pending_reviews(job.path.parent)]
    assert waiting == [
        (trial.id, "person"),
        (trial_of(job, "two").id, "person"),
        (trial_of(job, "two").id, "expert"),
    ]


def test_a_job_that_goes_on_leaves_what_waits_alone(job: JobFolder) -> None:
    before = contents(job.trials_path)
    Job.open(job).run()
    assert contents(job.trials_path) == before
    again = Job.open(job, fresh=True).run()
    assert again.summary()["by_status"] == {"awaiting_review": 2}


def test_a_trial_that_failed_waits_for_nobody(desk: Desk, tmp_path: Path) -> None:
    def raises(*given: Any) -> Any:
        raise KeyError("no")

    graded = desk.run(tmp_path / "jobs", desk.task("t", desk.half(check=raises), human()))
    played = desk.run(tmp_path / "jobs", desk.task("t", desk.half(), human()), play=raises)
    for job, failure in ((graded, "grader"), (played, "agent")):
        [trial] = JobResult(job).trials
        assert (trial.status, trial.result["failure"], trial.score) == ("failed", failure, None)
        assert "awaits" not in trial.result
        with pytest.raises(UsageError, match=rf"failed \({failure}\); it waits for no review"):
            submit_review(trial, 1)
    assert len(late(JobResult(graded).trials[0])) == 1, "a failed grading does not keep hindsight waiting"
    assert pending_reviews(tmp_path / "jobs") == []


# --- one review ---


def test_the_last_review_scores_the_trial_and_lets_hindsight_credit_it(job: JobFolder) -> None:
    trial = trial_of(job, "one")
    before = contents(trial.folder.path)
    review = submit_review(trial, 2, feedback="Clear.", reviewer=" Ada \n L. ")
    assert (review.score, review.scores, review.trial_score) == (1.0, {"tone": 2.0}, (0.5 + 3 * 1.0) / 4)
    assert (review.reviewer, review.feedback, review.trial_id) == ("Ada L.", "Clear.", trial.id)
    assert review.verifier == trial.receipt.verifiers[1]
    assert (trial.status, trial.score, trial.reviews) == ("succeeded", 0.875, [review])
    row = trial.result["scores"][1]
    assert (row["score"], row["scores"], row["feedback"]) == (1.0, {"tone": 2.0}, "Clear.")
    assert row["review"] == {"reviewer": "Ada L.", "submitted": review.submitted}
    [credit] = late(trial)
    assert (credit["value"], credit["source"], credit["run_id"]) == (0.875, "review", "review")
    assert (credit["verifier"], credit["turn"], credit["status"]) == ("half", 2, "ok")
    assert credit["code_sha256"] == trial.receipt.verifiers[0].content_hash
    assert trial.finished and trial.result["hindsight_due"] == [] and trial.result["return"] == 0.5
    after = contents(trial.folder.path)
    for name, content in before.items():
        if name == "rewards.jsonl":
            assert after[name].startswith(content)
        elif name != "result.json":
            assert after[name] == content, name
    assert set(after) - set(before) == {"reviews/person.json"}


def test_a_review_reaches_the_jobs_summary_and_its_ledger(job: JobFolder) -> None:
    submit_review(trial_of(job, "one"), 2)
    summary = job.result()
    assert summary["by_status"] == {"succeeded": 1, "awaiting_review": 1}
    assert summary["leaderboard"]["rows"][0]["score"] == 0.875
    found = episodes(job)
    assert (found["one"]["score"], found["one"]["status"]) == (0.875, "succeeded")
    assert [row["score"] for row in found["one"]["scores"]] == [0.5, 1.0]
    assert (found["two"]["score"], found["two"]["status"]) == (None, "awaiting_review")
    rows = ledger.read(job, "rewards").to_pylist()
    assert [row["value"] for row in rows if row["source"] == "review"] == [0.875]
    assert job.unsettled() == {}


def test_with_several_people_the_last_one_finishes_the_trial(job: JobFolder) -> None:
    trial = trial_of(job, "two")
    first = submit_review(trial, {"facts": 4, "tone": 0}, verifier="expert")
    assert (first.score, first.last, first.trial_score) == (0.75, False, None)
    assert (trial.status, trial.score, trial.result["awaits"]) == ("awaiting_review", None, ["person"])
    assert late(trial) == [] and episodes(job)["two"]["scores"][2]["score"] == 0.75
    [*_, waiting] = pending_reviews(job.path.parent)
    last = submit_review(waiting, 1)
    assert (last.verifier.name, last.last) == ("person", True)
    assert trial.score == last.trial_score == (0.5 + 3 * 0.5 + 2 * 0.75) / 6
    assert [row["value"] for row in late(trial)] == [trial.score]
    assert [review.verifier.name for review in trial.reviews] == ["expert", "person"]


def test_who_judged_is_the_account_unless_a_name_is_given(
    job: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    assert submit_review(trial_of(job, "one"), 1, reviewer="  ").reviewer == "grace"

    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert submit_review(trial_of(job, "two"), 1, verifier="person").reviewer == f"uid {os.getuid()}"


def test_a_review_holds_whatever_text_was_given(job: JobFolder) -> None:
    trial = trial_of(job, "one")
    submit_review(trial, 1, feedback="half \ud800 of it\nand more")
    assert trial.reviews[0].feedback == "half \\ud800 of it\nand more"


@pytest.mark.parametrize(
    ("task", "score", "options", "error", "message"),
    [
        ("two", 1, {}, UsageError, "has 2 Human Verifiers; name one: person, expert"),
        ("one", 1, {"verifier": "persn"}, UnknownName, "no Human Verifier 'persn'; did you mean 'person'"),
        ("one", 1, {"verifier": "half"}, UnknownName, "no Human Verifier 'half'; it has: person"),
        ("one", 3, {}, UsageError, r"score 3 of 'tone' is outside 0\.\.2"),
        ("one", {"tune": 1}, {}, UsageError, "no criterion is named 'tune'; there are: tone"),
        ("two", 1, {"verifier": "expert"}, UsageError, r"facts \(0 to 4\), tone \(0 to 2\)"),
        ("two", {"facts": 1}, {"verifier": "expert"}, UsageError, "criterion 'tone' has no score"),
    ],
)
def test_a_review_that_does_not_fit_records_nothing(
    job: JobFolder, task: str, score: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    before = contents(job.path)
    with pytest.raises(error, match=message):
        submit_review(trial_of(job, task), score, **options)
    assert contents(job.path) == before


def test_a_review_is_never_replaced(job: JobFolder) -> None:
    trial = trial_of(job, "one")
    submit_review(trial, 2, reviewer="ada")
    before = contents(job.path)
    with pytest.raises(
        UsageError, match=r"has its review for 'person' already, by ada at 20.*never replaced"
    ):
        submit_review(trial, 0, reviewer="grace")
    assert contents(job.path) == before
    with pytest.raises(RecordError, match=r"person\.json: written already, and written only once"):
        trial.folder.write_review("person", {})


def test_a_trial_without_human_verifiers_waits_for_nobody(desk: Desk, tmp_path: Path) -> None:
    job = desk.run(tmp_path / "jobs", desk.task("t", desk.half()))
    [trial] = JobResult(job).trials
    assert trial.status == "succeeded" and len(late(trial)) == 1
    with pytest.raises(UsageError, match="has no Human Verifier; its scores come from: half"):
        submit_review(trial, 1)


def test_a_trial_outside_of_a_job_is_refused(job: JobFolder, tmp_path: Path) -> None:
    folder = TrialFolder(shutil.copytree(trial_of(job, "one").folder.path, tmp_path / "a/b/c"))
    with pytest.raises(RecordError, match="there is no such record"):
        submit_review(Trial(folder), 1)
    assert folder.reviews() == []


def test_any_name_of_a_verifier_makes_one_file(desk: Desk, tmp_path: Path) -> None:
    name = "Is it polite? ../a/b"
    job = desk.run(tmp_path / "jobs", desk.task("t", human(name)))
    [trial] = JobResult(job).trials
    submit_review(trial, 2)
    assert trial.score == 1.0 and trial.reviews[0].verifier.name == name
    assert len(list(trial.folder.reviews_path.iterdir())) == 1


# --- hindsight after the review ---


def test_code_that_is_not_there_any_more_is_told_and_run_later(job: JobFolder) -> None:
    trial = trial_of(job, "one")
    kept = job.path / "kept"
    shutil.move(job.inputs_path / "verifiers/half", kept)
    submit_review(trial, 2)
    assert (trial.status, trial.score) == ("succeeded", 0.875)
    [row] = late(trial)
    assert (row["status"], row["value"], row["error_type"]) == ("error", None, "GradingFault")
    later = f"give its credit later with: plural verifier apply half --job job_a --trial {trial.id}"
    assert row["error_message"].startswith("it could not run: ") and row["error_message"].endswith(later)
    [fault] = trial.result["faults"]
    assert (fault["where"], fault["count"]) == ("verifier half hindsight", 1)
    assert job.result()["faults"][0]["message"] == row["error_message"]
    shutil.move(kept, job.inputs_path / "verifiers/half")
    task, _ = reviewing_task(job, "one")
    apply_verifier(task.verifiers[0], job, trial_ids=[trial.id])
    credits = [one for one in trial.rewards if one["kind"] == "hindsight"]
    assert [(one["value"], one["source"]) for one in credits] == [(0.875, "apply")]


def reviewing_task(job: JobFolder, name: str) -> tuple[Task, TaskSet]:
    from plural_gym.project import Project

    tasks = Project(job.inputs_path).tasks
    return tasks.get(name), tasks


def test_code_that_is_another_now_is_not_run_in_its_place(job: JobFolder) -> None:
    [file] = (job.inputs_path / "verifiers/half").glob("*.py")
    file.write_text(file.read_text().replace("trial.score)", "99.0)"))
    trial = trial_of(job, "one")
    submit_review(trial, 2)
    [row] = late(trial)
    assert row["status"] == "error"
    assert "Verifier 'half' of Task 'one' has changed since the Trial ran" in row["error_message"]


def test_tasks_at_hand_stand_in_for_inputs_that_cannot_be_loaded(desk: Desk, job: JobFolder) -> None:
    shutil.rmtree(job.inputs_path)
    trial = trial_of(job, "one")
    submit_review(trial, 2, tasks=TaskSet.of([desk.task("one", desk.half(), human(weight=3))]))
    assert [row["value"] for row in late(trial)] == [0.875]


def test_hindsight_that_raises_costs_its_credit_alone(desk: Desk, tmp_path: Path) -> None:
    def raises(trial: Any) -> Any:
        raise KeyError("late")

    other = DeterministicVerifier(name="other", hindsight=desk.last)
    task = desk.task("t", desk.half(hindsight=raises), other, human())
    job = desk.run(tmp_path / "jobs", task)
    [trial] = JobResult(job).trials
    logs = contents(trial.folder.logs_path)
    submit_review(trial, 0, tasks=TaskSet.of([task]))
    assert (trial.status, trial.score) == ("succeeded", 0.25)
    assert [(row["verifier"], row["status"], row["value"]) for row in late(trial)] == [
        ("half", "error", None),
        ("other", "ok", 0.25),
    ]
    [fault] = trial.result["faults"]
    assert (fault["type"], fault["message"]) == ("KeyError", "'late'")
    assert contents(trial.folder.logs_path) == logs


def test_apply_on_a_trial_that_waits_leaves_hindsight_for_the_review(job: JobFolder) -> None:
    trial = trial_of(job, "one")
    task, _ = reviewing_task(job, "one")
    outcome = apply_verifier(task.verifiers[0], job, trial_ids=[trial.id])
    assert "hindsight waits for the reviewed score" in outcome.trials[0].notes[0]
    assert late(trial) == [] and trial.status == "awaiting_review"
    submit_review(trial, 2)
    assert [row["value"] for row in late(trial)] == [0.875]


# --- several at once ---


def test_a_review_may_come_while_its_job_runs(desk: Desk, tmp_path: Path) -> None:
    go, reached = threading.Event(), threading.Event()

    def play(task: Any, seat: Any) -> None:
        if reached.is_set():
            go.wait(60)
        reached.set()
        seat.act("add")

    tasks = [desk.task(name, desk.half(), human()) for name in ("first", "second")]
    running = Job(
        tasks=tasks,
        agents=[Agent(name="ada", harness=play)],
        concurrency=1,
        directory=tmp_path / "jobs",
        job_id="job_r",
    )
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        for _ in range(600):
            waiting = pending_reviews(tmp_path / "jobs")
            if waiting:
                break
            time.sleep(0.05)
        submit_review(waiting[0], 2, tasks=TaskSet.of(tasks))
        trial = Trial(waiting[0].folder)
        assert (trial.status, trial.score) == ("succeeded", 0.75)
        assert thread.is_alive() and not running.folder.result_path.exists()
        assert list(running.folder.unsettled().values()) == [trial.id], "the Job has yet to hear of it"
    finally:
        go.set()
        thread.join()
    assert running.folder.unsettled() == {}
    assert running.folder.result()["by_status"] == {"succeeded": 1, "awaiting_review": 1}
    assert {name: row["score"] for name, row in episodes(running.folder).items()} == {
        "first": 0.75,
        "second": None,
    }


def test_a_trial_in_use_is_waited_for_and_then_told(job: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(job, "one")
    monkeypatch.setattr(reviewing, "WAIT_S", 0.2)
    with trial.folder.lock(), pytest.raises(MachineError, match=r"in use by another process.*Try again"):
        submit_review(trial, 2)
    assert trial.reviews == [] and job.unsettled() == {}
    monkeypatch.setattr(reviewing, "WAIT_S", 30.0)
    held = threading.Event()

    def hold() -> None:
        with trial.folder.lock():
            held.set()
            time.sleep(0.3)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    assert submit_review(trial, 2).score == 1.0
    holder.join()


RACE = """
import os, sys
from plural_gym.errors import UsageError
from plural_gym.records.job_folder import JobFolder
from plural_gym.reviewing import submit_review
from plural_gym.trial import Trial

for line in sys.stdin:
    path, trial_id, verifier, score = line.split()
    trial = Trial(JobFolder(path).trial(trial_id))
    try:
        submit_review(trial, float(score), verifier=verifier, reviewer=str(os.getpid()))
    except UsageError as error:
        print("refused", "already" in str(error), flush=True)
    else:
        print("recorded", os.getpid(), flush=True)
"""


@pytest.fixture
def reviewers() -> Any:
    """Two processes; each reviews what it is told on a line."""
    made = [
        subprocess.Popen(
            [sys.executable, "-c", RACE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for _ in range(2)
    ]
    yield made
    for process in made:
        process.communicate(timeout=60)


def at_once(reviewers: Any, *lines: str) -> list[str]:
    for process, line in zip(reviewers, lines, strict=True):
        process.stdin.write(line + "\n")
    return [process.stdout.readline().strip() for process in reviewers]


def test_of_two_submissions_at_once_exactly_one_is_recorded(
    job: JobFolder, reviewers: Any, tmp_path: Path
) -> None:
    name = trial_of(job, "two").id
    for turn in range(25):
        copy = JobFolder(shutil.copytree(job.path, tmp_path / f"round-{turn}" / job.id))
        said = at_once(reviewers, f"{copy.path} {name} person 0", f"{copy.path} {name} person 2")
        [winner] = [index for index, line in enumerate(said) if line.startswith("recorded")]
        assert said[1 - winner] == "refused True"
        [review] = Trial(copy.trial(name)).reviews
        assert (review.reviewer, review.score) == (said[winner].split()[1], float(winner))
        assert copy.result()["by_status"] == {"awaiting_review": 2} and copy.unsettled() == {}


def test_of_two_people_at_once_both_are_recorded_and_one_finishes_the_trial(
    desk: Desk, reviewers: Any, tmp_path: Path
) -> None:
    job = desk.run(tmp_path / "jobs", desk.task("t", human("a"), human("b")), job_id="job_b")
    [name] = job.trial_ids()
    for turn in range(25):
        copy = JobFolder(shutil.copytree(job.path, tmp_path / f"round-{turn}" / job.id))
        said = at_once(reviewers, f"{copy.path} {name} a 1", f"{copy.path} {name} b 2")
        assert [line.split()[0] for line in said] == ["recorded", "recorded"]
        trial = Trial(copy.trial(name))
        assert (trial.status, trial.score) == ("succeeded", 0.75)
        assert sorted(review.last for review in trial.reviews) == [False, True]
        assert copy.result()["by_status"] == {"succeeded": 1} and copy.unsettled() == {}
        assert episodes(copy)["t"]["score"] == 0.75


# --- killed on the way ---

KILLED = """
import os, signal, sys
from plural_gym.records.job_folder import JobFolder
from plural_gym.reviewing import submit_review
from plural_gym.trial import Trial

path, trial_id, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
steps = [0]

def killing(real):
    def step(*given, **more):
        if steps[0] == left:
            os.kill(os.getpid(), signal.SIGKILL)
        steps[0] += 1
        return real(*given, **more)
    return step

for name in ("link", "replace", "unlink"):
    setattr(os, name, killing(getattr(os, name)))
submit_review(Trial(JobFolder(path).trial(trial_id)), 2, feedback="Clear.", reviewer="ada")
"""


def outcome(job: JobFolder) -> dict[str, Any]:
    """All that the record says, times apart."""
    trial = trial_of(job, "one")
    result = json.loads(trial.folder.result_path.read_text())
    result["scores"][1]["review"].pop("submitted")
    rewards = [{**row, "ts": 0} for row in trial.folder.rewards()]
    [review] = [review.model_dump(exclude={"submitted"}) for review in trial.reviews]
    sealed = [{**row, "ts": 0} for row in ledger.read(job, "rewards").to_pylist()]
    return {
        "result": result,
        "rewards": rewards,
        "review": review,
        "job": job.result(),
        "episodes": episodes(job),
        "sealed": sorted(sealed, key=str),
        "files": sorted(name for name in contents(job.path) if not name.startswith("ledger/")),
    }


@pytest.mark.slow
def test_a_submission_killed_at_any_step_is_recorded_or_not_and_heals_itself(
    job: JobFolder, tmp_path: Path
) -> None:
    name = trial_of(job, "one").id

    def submitted(place: Path, left: int) -> tuple[JobFolder, int]:
        copy = JobFolder(shutil.copytree(job.path, place / "job_a"))
        arguments = [sys.executable, "-c", KILLED, str(copy.path), name, str(left)]
        return copy, subprocess.run(arguments, check=False).returncode

    whole, code = submitted(tmp_path / "whole", 10_000)
    assert code == 0
    expected = outcome(whole)
    killed = 0
    while True:
        copy, code = submitted(tmp_path / f"kill-{killed}", killed)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
        recorded = copy.trial(name).review_path("person").exists()
        # Every reader agrees at once, before anything was repaired.
        trial, [row] = trial_of(copy, "one"), JobResult(copy).leaderboard.rows
        assert (trial.status, trial.score) == (
            ("succeeded", 0.875) if recorded else ("awaiting_review", None)
        )
        assert (row.score, row.waiting) == ((0.875, 1) if recorded else (None, 2))
        assert len(pending_reviews(copy.path.parent)) == (2 if recorded else 3)
        assert JobResult(copy).summary()["by_status"].get("succeeded") == (1 if recorded else None)
        if recorded:
            with pytest.raises(UsageError, match="already, by ada"):
                submit_review(trial, 1)
        for _ in range(2):  # healing twice is healing once
            settle(copy)
            if not recorded:
                break
            assert outcome(copy) == expected, killed
        assert copy.unsettled() == {}
        if not recorded:
            submit_review(trial, 2, feedback="Clear.", reviewer="ada")
            assert outcome(copy) == expected, killed
    assert killed >= 8


def test_what_the_disk_refuses_after_the_review_is_told_and_made_up_for(job: JobFolder) -> None:
    trial = trial_of(job, "one")
    kept = job.ledger_path.rename(job.path / "kept")
    job.ledger_path.touch()
    with pytest.raises(MachineError, match=r"the review of Trial .* is recorded and counts; what follows"):
        submit_review(trial, 2)
    assert (trial.status, trial.score) == ("succeeded", 0.875)
    assert list(job.unsettled().values()) == [trial.id]
    job.ledger_path.unlink()
    kept.rename(job.ledger_path)
    settle(job)
    assert job.unsettled() == {} and job.result()["by_status"]["succeeded"] == 1
    assert episodes(job)["one"]["score"] == 0.875


def test_settling_leaves_alone_what_somebody_is_at_work_on(job: JobFolder) -> None:
    trial = trial_of(job, "one")
    job.note_unsettled(trial.id)
    job.note_unsettled("gone")
    with trial.folder.lock():
        settle(job)
        assert list(job.unsettled().values()) == [trial.id]
    with job.lock():
        settle(job)
        assert list(job.unsettled().values()) == [trial.id]
    settle(job)
    assert job.unsettled() == {}
