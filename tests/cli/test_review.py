"""`plural review`: list, show and submit; and what other commands say of Trials that wait."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plural_gym import reviewing
from plural_gym.job import Job
from plural_gym.project import Project
from plural_gym.records.job_folder import JobStore
from plural_gym.records.trial_folder import TrialFolder

TASTE = """name: taste
version: 0.2.0
kind: human
weight: 3
instructions: |
  Look at the bed.
  Then score it.
criteria:
  - name: beauty
    description: |
      0: bare.
      2: lush.
    min_score: 0
    max_score: 2
"""
ORDER = """name: order
version: 0.1.0
kind: human
instructions: Look at the rows.
criteria:
  - {name: rows, description: "0: none. 1: straight."}
  - {name: "space between", description: "1: none. 5: enough.", min_score: 1, max_score: 5, weight: 2}
"""


@pytest.fixture(scope="module")
def _reviewed(_played: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reviewed") / "garden"
    shutil.copytree(_played, root)
    for name, text in (("taste", TASTE), ("order", ORDER)):
        (root / f"verifiers/{name}").mkdir()
        (root / f"verifiers/{name}/verifier.yaml").write_text(text)
    shutil.copytree(root / "tasks/beds", root / "tasks/plots")
    text = (root / "tasks/beds/task.yaml").read_text()
    for name, verifiers in (("beds", "grown, growth, taste"), ("plots", "grown, taste, order")):
        own = text.replace("name: beds", f"name: {name}").replace("grown, growth", verifiers)
        (root / f"tasks/{name}/task.yaml").write_text(own)
    project = Project.open(root)
    Job(
        [project.tasks.get("beds/small"), project.tasks.get("plots/large")],
        [project.agents["slow"]],
        directory=root / ".plural/jobs",
        job_id="job_w",
    ).run()
    return root


@pytest.fixture
def waiting(_reviewed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose Job `job_w` waits for reviews; it is the current folder."""
    root = tmp_path / "waiting"
    shutil.copytree(_reviewed, root)
    monkeypatch.chdir(root)
    monkeypatch.setenv("LOGNAME", "grace")
    return root


def trial(task: str) -> TrialFolder:
    job = JobStore(".plural/jobs").job("job_w")
    [found] = [folder for folder in job.trials() if folder.result()["task"] == task]
    return found


@pytest.fixture
def one(waiting: Path) -> str:
    """Id of the Trial that waits for one person."""
    return trial("beds/small").id


@pytest.fixture
def two(waiting: Path) -> str:
    """Id of the Trial that waits for two."""
    return trial("plots/large").id


# --- what other commands say ---


def test_a_run_that_ends_in_waiting_is_done_and_says_what_comes_next(waiting: Path, plural: Any) -> None:
    said = plural("run", "--task", "beds/small", "--agent", "slow", "--min-score", "0.5")
    [job] = [job.id for job in JobStore(".plural/jobs").jobs()[:1]]
    assert "awaiting_review  -\n" in said.err
    assert "Awaiting review: 1 Trial\n" in said.err
    assert f"Next     plural review list --job {job}\n" in said.err
    assert "1 (1 waiting)" in said.out and "0.000" not in said.out
    again = plural("run", "--task", "beds/small", "--agent", "slow", "--json").json
    assert (again["status"], again["below_min_score"]) == ("awaiting_review", [])


def test_a_waiting_job_and_trial_say_so(one: str, plural: Any) -> None:
    assert "awaiting_review" in plural("job", "list").out
    said = plural("job", "show", "job_w")
    assert "Status   awaiting_review, 2 of 2 Trials\n" in said.out
    assert said.err.endswith("Waiting for reviews: plural review list --job job_w\n")
    said = plural("trial", "show", one)
    assert "Status     awaiting_review\n" in said.out and "Score      -\n" in said.out
    assert "grown@0.1.0 (deterministic): 1.000\n" in said.out
    assert "taste@0.2.0 (human, weight 3): waits for a review\n" in said.out
    assert f"Artifacts  .plural/jobs/job_w/trials/{one}/artifacts\n" in said.out
    assert said.err == f"What a reviewer is asked: plural review show {one}\n"


def test_a_reviewed_trial_shows_who_said_what(one: str, plural: Any) -> None:
    plural("review", "submit", one, "--score", "1", "--feedback", "A little bare.", "--reviewer", "Ada")
    out = plural("trial", "show", one).out
    assert "Score      0.625\n" in out and "Status     succeeded\n" in out
    assert "taste@0.2.0 (human, weight 3): 0.500\n  beauty 1\n  by Ada at 20" in out
    assert "\n  A little bare.\n" in out


def test_a_verifier_that_is_a_person_cannot_be_tried(waiting: Path, plural: Any) -> None:
    said = plural("verifier", "try", "taste", "--job", "job_w", code=2)
    assert "Verifier 'taste' of kind 'human' has no code to run again" in said.err
    assert "weight" in plural("verifier", "show", "taste").out
    plural("validate")


def test_an_oracle_that_waits_for_a_person_is_not_said_to_fail(waiting: Path, plural: Any) -> None:
    text = Path("tasks/beds/task.yaml").read_text()
    Path("tasks/beds/task.yaml").write_text(text + "oracle: slow\n")
    said = plural("task", "validate", "beds", "--run", "--limit", "1", "--strict")
    assert "does not solve it" not in said.err


# --- list and show ---


def test_the_list_holds_ids_and_nothing_else(one: str, two: str, plural: Any) -> None:
    said = plural("review", "list")
    assert [line.split() for line in said.out.splitlines()] == [
        ["trial", "job", "verifier"],
        [one, "job_w", "taste"],
        [two, "job_w", "taste"],
        [two, "job_w", "order"],
    ]
    assert said.err == "What is asked: plural review show TRIAL_ID\n"
    rows = plural("review", "list", "--json").json
    assert rows[0] == {"trial_id": one, "job_id": "job_w", "verifier": "taste"}
    assert plural("review", "list", "--job", "job_w", "--json").json == rows
    assert plural("review", "list", "--job", "job_both", "--json").json == []
    assert plural("review", "list", "--job", "job_both").err == "No Trial waits for a review.\n"
    assert "there is no Job 'job_x'" in plural("review", "list", "--job", "job_x", code=2).err


def test_jobs_elsewhere_are_named_by_their_directory(
    one: str, plural: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(".plural/jobs", tmp_path / "jobs")
    monkeypatch.chdir(tmp_path)
    said = plural("review", "list", "--directory", "jobs")
    assert said.err == "What is asked: plural review show TRIAL_ID --directory jobs\n"
    assert (
        f"plural trial show {one} --directory jobs\n"
        in plural("review", "show", one, "--directory", "jobs").out
    )
    assert plural("review", "submit", one, "--score", "2", "--directory", "jobs").out.endswith("1.000.\n")


def test_a_reviewer_is_shown_what_is_asked_and_where_the_evidence_lies(
    one: str, two: str, plural: Any
) -> None:
    said = plural("review", "show", one[:12])
    assert said.out == (
        f"Trial      {one}\nJob        job_w\nStatus     awaiting_review\n"
        "\ntaste@0.2.0: waits for a review\n  Look at the bed.\n  Then score it.\n"
        "  - beauty: 0 to 2\n      0: bare.\n      2: lush.\n"
        f"\nEvidence   plural trial show {one}\n"
        f"Artifacts  .plural/jobs/job_w/trials/{one}/artifacts\n"
    )
    assert said.err == f"Submit     plural review submit {one} --score SCORE --feedback TEXT\n"
    several = plural("review", "show", two)
    assert "  - space between: 1 to 5, weight 2\n" in several.out
    assert f"plural review submit {two} --verifier taste --score SCORE" in several.err


def test_what_others_scored_is_not_shown_to_a_reviewer(two: str, plural: Any) -> None:
    plural("review", "submit", two, "--verifier", "taste", "--score", "1", "--feedback", "so-so")
    said = plural("review", "show", two)
    assert "taste@0.2.0: reviewed by grace at 20" in said.out
    assert "order@0.1.0: waits for a review" in said.out
    assert "0.5" not in said.out and "so-so" not in said.out
    assert "--verifier order --score rows=SCORE --score 'space between=SCORE'" in said.err
    shown = plural("review", "show", two, "--json").json
    assert [(row["verifier"], row["status"]) for row in shown["verifiers"]] == [
        ("taste", "reviewed"),
        ("order", "awaiting_review"),
    ]
    assert set(shown["verifiers"][0]["review"]) == {"reviewer", "submitted"}
    assert shown["verifiers"][1]["criteria"][1]["max_score"] == 5.0
    assert shown["artifacts"].endswith(f"{two}/artifacts")


def test_a_trial_without_a_person_has_nothing_to_show(waiting: Path, plural: Any) -> None:
    graded = next(iter(JobStore(".plural/jobs").job("job_both").trials())).id
    assert (
        "has no Human Verifier; its scores come from: grown" in plural("review", "show", graded, code=2).err
    )
    assert "there is no Trial 'trl_zz'" in plural("review", "show", "trl_zz", code=2).err


# --- submit ---


def test_a_bare_score_finishes_a_trial_that_waits_for_one_criterion(one: str, plural: Any) -> None:
    said = plural("review", "submit", one, "--score", "2")
    assert said.out == (
        f"Review of Trial {one} for taste recorded.\nThe Trial succeeded, with the score 1.000.\n"
    )
    assert said.err == ""
    assert trial("beds/small").reviews()[0]["reviewer"] == "grace"
    rows = [row for row in plural("job", "show", "job_w", "--json").json["trial_results"]]
    assert [row["score"] for row in rows] == [1.0, None]
    assert [row["trial_id"] for row in plural("review", "list", "--json").json] == [rows[1]["trial_id"]] * 2


def test_several_criteria_and_several_people(two: str, plural: Any) -> None:
    scores = ("--score", "space between=3", "--score", "rows=1")
    said = plural("review", "submit", two, "--verifier", "order", *scores, "--json").json
    assert said["review"]["scores"] == {"space between": 3.0, "rows": 1.0}
    assert said["review"]["score"] == pytest.approx((1.0 + 2 * 0.5) / 3)
    assert (said["status"], said["score"], said["awaits"]) == ("awaiting_review", None, ["taste"])
    last = plural("review", "submit", two, "--verifier", "taste", "--score", "beauty=0")
    assert "The Trial succeeded, with the score " in last.out and last.err == ""


def test_a_trial_that_waits_on_says_for_whom(two: str, plural: Any) -> None:
    said = plural("review", "submit", two, "--verifier", "taste", "--score", "1")
    assert said.err == "The Trial still waits for: order.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the score: --score VALUE"),
        (["--score", "good"], "--score 'good' is no number; write a score such as 2 or 0.5."),
        (["--score", "2,5"], "--score '2,5' is no number"),
        (["--score", "beauty="], "--score 'beauty=' is no number"),
        (["--score", "3"], "score 3 of 'beauty' is outside 0..2."),
        (["--score", "-1"], "score -1 of 'beauty' is outside 0..2."),
        (["--score", "nan"], "score nan of 'beauty' is outside 0..2."),
        (["--score", "1e999"], "score inf of 'beauty' is outside 0..2."),
        (["--score", "1", "--score", "2"], "--score '1' names no criterion"),
        (["--score", "beauty=1", "--score", "beauty=2"], "criterion 'beauty' has two scores; give one."),
        (["--score", "beuty=1"], "no criterion is named 'beuty'; there are: beauty."),
        (["--score", "1", "--verifier", "tatse"], "has no Human Verifier 'tatse'; did you mean 'taste'?"),
        (["--score", "1", "--verifier", "grown"], "has no Human Verifier 'grown'; it has: taste."),
    ],
)
def test_a_review_that_cannot_be_taken_is_said_and_recorded_nowhere(
    one: str, plural: Any, arguments: list[str], message: str
) -> None:
    assert message in plural("review", "submit", one, *arguments, code=2).err
    assert trial("beds/small").reviews() == []


def test_with_several_people_the_verifier_has_to_be_named(two: str, plural: Any) -> None:
    said = plural("review", "submit", two, "--score", "1", code=2)
    assert "has 2 Human Verifiers; name one: taste, order." in said.err
    plural("review", "submit", two, "--verifier", "taste", "--score", "1")
    assert "name one: taste, order." in plural("review", "submit", two, "--score", "rows=1", code=2).err
    said = plural("review", "submit", two, "--verifier", "order", "--score", "1", code=2)
    assert "give each its own score: rows (0 to 1), space between (1 to 5)." in said.err


def test_a_second_review_is_refused(one: str, plural: Any) -> None:
    plural("review", "submit", one, "--score", "2")
    said = plural("review", "submit", one, "--score", "0", "--json", code=2).json
    assert "has its review for 'taste' already, by grace at 20" in said["error"]["message"]
    assert said["error"]["exit_code"] == 2


def test_trials_are_found_by_how_they_begin_in_all_jobs(one: str, plural: Any) -> None:
    assert "could be 10 Trials" in plural("review", "submit", "trl_", "--score", "1", code=2).err
    near = one[:-1] + ("0" if one[-1] != "0" else "1")
    assert f"did you mean '{one}'?" in plural("review", "submit", near, "--score", "1", code=2).err
    plural("review", "submit", f"job_w/{one[:9]}", "--score", "1")


def test_a_trial_in_use_ends_with_5(one: str, plural: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewing, "WAIT_S", 0.1)
    with trial("beds/small").lock():
        said = plural("review", "submit", one, "--score", "1", code=5)
    assert f"Trial {one} is in use by another process" in said.err and "Try again in a moment." in said.err


def test_code_that_is_gone_is_told_with_the_command_that_gives_its_credit(one: str, plural: Any) -> None:
    shutil.rmtree(".plural/jobs/job_w/inputs/verifiers/grown")
    Path("verifiers/grown").rename("grown")
    said = plural("review", "submit", one, "--score", "2")
    assert "The Trial succeeded, with the score 1.000.\n" in said.out
    assert "! Verifier grown's hindsight failed in 1 Trial, which earned it no credit\n" in said.err
    command = f"plural verifier apply grown --job job_w --trial {one}"
    assert f"give its credit later with: {command} (at the Job's inputs)\n" in said.err
    Path("grown").rename("verifiers/grown")
    plural(*command.split()[1:])
    said = plural("trial", "show", one)
    assert "grown (hindsight)" in said.out and said.err == ""


def test_the_projects_own_code_stands_in_for_lost_inputs(one: str, plural: Any) -> None:
    shutil.rmtree(".plural/jobs/job_w/inputs/verifiers/grown")
    assert plural("review", "submit", one, "--score", "2").err == ""
    assert [row["value"] for row in trial("beds/small").rewards("review")] == [0.5]


def test_hosted_reviews_need_what_is_not_here(waiting: Path, plural: Any) -> None:
    said = plural("review", "list", "--hosted", code=4)
    assert "need plural auth login and a selected project" in said.err
    assert "Leave --hosted out to review the Trials on this machine." in said.err
    plural("review", "submit", "asg_1", "--hosted", "--score", "quality=2", code=4)
    assert plural("review", "list", "--hosted", "--json", code=4).json["error"]["exit_code"] == 4


@pytest.mark.parametrize("verb", ["list", "show", "submit"])
def test_every_verb_explains_itself(verb: str, plural: Any) -> None:
    assert "--json" in plural("review", verb, "--help").out


# --- real processes ---


def test_of_two_commands_at_once_one_ends_with_0_and_the_other_with_2(one: str) -> None:
    command = [sys.executable, "-m", "plural_gym", "review", "submit", one, "--score"]
    started = [
        subprocess.Popen([*command, score], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for score in ("0", "2")
    ]
    said = [process.communicate(timeout=120) for process in started]
    assert sorted(process.returncode for process in started) == [0, 2], said
    [loser] = [err for process, (_, err) in zip(started, said, strict=True) if process.returncode]
    assert "has its review for 'taste' already" in loser
    [review] = trial("beds/small").reviews()
    assert review["scores"]["beauty"] == (0.0 if started[0].returncode == 0 else 2.0)


KILLED = """
import os, signal, sys
from plural_gym import reviewing
from plural_gym.cli.main import app

def killed(*given):
    os.kill(os.getpid(), signal.SIGKILL)

reviewing._settle_trial = killed
app(["review", "submit", sys.argv[1], "--score", "2"])
"""


@pytest.mark.parametrize("command", ["review list", "job list", "trial show ID", "job show job_w"])
def test_any_look_at_records_finishes_what_a_killed_submission_left(
    one: str, plural: Any, command: str
) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, one], check=False).returncode == -9
    job = JobStore(".plural/jobs").job("job_w")
    assert job.result()["by_status"] == {"awaiting_review": 2} and job.unsettled()
    said = plural(*command.replace("ID", one).split())
    assert said.err.startswith("A review in Job job_w was interrupted; doing what follows from it.\n")
    assert job.result()["by_status"] == {"succeeded": 1, "awaiting_review": 1} and not job.unsettled()
    assert [row["value"] for row in trial("beds/small").rewards("review")] == [0.5]


def test_a_look_that_cannot_finish_it_says_so_and_shows_it_all_the_same(one: str, plural: Any) -> None:
    subprocess.run([sys.executable, "-c", KILLED, one], check=False)
    ledger = JobStore(".plural/jobs").job("job_w").ledger_path
    shutil.rmtree(ledger)
    ledger.touch()
    said = plural("trial", "show", one)
    assert "Score      1.000\n" in said.out
    assert "! Reviews of Job job_w count, but its ledger and summary could not be written: " in said.err
