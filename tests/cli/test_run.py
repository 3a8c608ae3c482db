import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plural_gym.cli.main import app
from plural_gym.cli.run import choose_tasks, fault_lines
from plural_gym.errors import UnknownName
from plural_gym.shipped import project as shipped
from plural_gym.shipped import root

runner = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert runner.invoke(app, ["init", str(tmp_path)]).exit_code == 0
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    return runner.invoke(app, ["run", *arguments])


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


# what to run


def test_tasks_are_named_by_name_folder_pattern_and_split() -> None:
    tasks = shipped().tasks
    assert choose_tasks(tasks, ["crane"]).names == ("wordle/crane",)
    assert choose_tasks(tasks, ["wordle/cran*", "crane"]).names[:1] == ("wordle/crane",)
    assert len(choose_tasks(tasks, ["support-desk"])) == 24
    test = choose_tasks(tasks, ["support-desk"], "test", 3)
    assert len(test) == 3
    assert {task.split for task in test} == {"test"}


def test_a_task_that_is_named_twice_is_played_once() -> None:
    chosen = choose_tasks(shipped().tasks, ["ticket-1", "support-desk/ticket-1", "support-desk/ticket-[12]"])
    assert chosen.names == ("support-desk/ticket-1", "support-desk/ticket-2")


@pytest.mark.parametrize(
    ("pattern", "told"),
    [("crain", "did you mean"), ("nothing/*", "there are Tasks of: .*support-desk, .*wordle")],
)
def test_a_pattern_that_matches_nothing_says_what_there_is(pattern: str, told: str) -> None:
    with pytest.raises(UnknownName, match=told):
        choose_tasks(shipped().tasks, [pattern])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--benchmark NAME (there are: three-numbers) or --task NAME"),
        (["--task", "low"], "--agent NAME (there are: counter, halver)"),
        (["--task", "low", "--benchmark", "three-numbers"], "exclude each other"),
        (["--benchmark", "three-numbers", "--limit", "1"], "--split and --limit choose among --task"),
        (["--benchmark", "three-number", "--agent", "halver"], "did you mean 'three-numbers'?"),
        (["--task", "low", "--agent", "halfer"], "did you mean 'halver'?"),
        (["--task", "low", "--split", "test", "--agent", "halver"], "no Task is in the split 'test'"),
    ],
)
def test_a_wrong_choice_ends_with_2_and_says_what_there_is(
    project: Path, arguments: list[str], told: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert not (project / ".plural").exists()


def test_a_broken_task_folder_is_the_error_where_its_task_is_asked_for(project: Path) -> None:
    edit(project / "tasks/higher-lower/task.yaml", "oracle:", "orakel:")
    result = run("--task", "low", "--agent", "halver")
    assert result.exit_code == 3
    assert result.stderr.startswith("tasks/higher-lower/task.yaml:7: unknown key 'orakel'; did you mean")


def test_a_broken_verifier_is_told_before_a_job_is_made(project: Path) -> None:
    edit(project / "verifiers/found/verifier.yaml", "verify.py:found", "verify.py:fond")
    result = run("--task", "low", "--agent", "halver")
    assert result.exit_code == 3
    assert "verifiers/found/verifier.yaml:5: check 'verify.py:fond' not found" in result.stderr
    assert "Job" not in result.stderr
    assert not (project / ".plural").exists()


# what comes of it


def test_a_run_tells_its_job_first_and_where_the_records_lie_last(project: Path) -> None:
    result = run("--task", "higher-lower/*", "--agent", "halver", "--attempts", "2")
    assert result.exit_code == 0, result.output
    lines = result.stderr.splitlines()
    job_id = lines[0].removeprefix("Job ")
    assert lines[1].startswith("3 Tasks | Agent halver, 2 attempts | 6 Trials, ")
    assert lines[2].startswith("1/6  trl_") and lines[7].endswith("mean 1.000")
    assert lines[-3:] == [
        f"Records  .plural/jobs/{job_id}",
        f"Ledger   .plural/jobs/{job_id}/ledger",
        f"Next     plural job show {job_id}",
    ]
    assert (project / ".plural" / "jobs" / job_id / "ledger").is_dir()
    assert "halver" in result.stdout and "Job" not in result.stdout


def test_records_can_be_kept_elsewhere_and_the_hint_says_so(project: Path) -> None:
    result = run("--task", "low", "--agent", "halver", "--directory", "kept here")
    job_id = result.stderr.splitlines()[0].removeprefix("Job ")
    assert (project / "kept here" / job_id / "job.json").is_file()
    assert f"plural job show {job_id} --directory 'kept here'" in result.stderr


def test_a_project_can_be_named_from_anywhere(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    result = run("--task", "low", "--agent", "halver", "--project", str(project))
    assert result.exit_code == 0
    assert len(list((project / ".plural" / "jobs").iterdir())) == 1


def test_json_is_the_jobs_summary_and_nothing_else(project: Path) -> None:
    result = run("--task", "low", "--agent", "halver", "--json")
    assert result.stderr == ""
    told = json.loads(result.stdout)
    assert (told["status"], told["trials"], told["finished"]) == ("succeeded", 1, 1)
    assert told["leaderboard"]["rows"][0]["score"] == 1.0
    assert Path(told["folder"]).is_dir() and Path(told["ledger"]).is_dir()


def test_a_score_below_the_least_ends_with_1(project: Path) -> None:
    result = run(
        "--benchmark", "three-numbers", "--agent", "halver", "--agent", "counter", "--min-score", "0.9"
    )
    assert result.exit_code == 1
    assert "Below --min-score 0.9: counter" in result.stderr
    assert run("--benchmark", "three-numbers", "--agent", "halver", "--min-score", "0.9").exit_code == 0


def test_a_reward_that_raises_is_told_with_its_line_and_fails_nothing(project: Path) -> None:
    edit(project / "verifiers/found/verify.py", 'step.current_state["number"]', 'step.current_state["done"]')
    result = run("--task", "low", "--task", "middle", "--agent", "halver")
    assert result.exit_code == 0
    assert (
        "! Verifier found's reward raised on 7 steps in 2 Trials, which earned it no reward\n"
        "  there: KeyError: 'done' (at verify.py:21)\n"
    ) in result.stderr


def test_a_check_that_raises_fails_its_trials_and_ends_with_1(project: Path) -> None:
    edit(project / "verifiers/found/verify.py", 'episode.state["guesses"]', 'episode.state["guess"]')
    result = run("--task", "low", "--agent", "halver", "--min-score", "0.5")
    assert result.exit_code == 1
    assert "failed (grader)" in result.stderr
    assert "Failed: 1 grader" in result.stderr
    assert "! Verifier found's check raised in 1 Trial, which got no score" in result.stderr
    assert "Below --min-score 0.5: halver" in result.stderr


def test_an_app_and_a_harness_that_raise_are_told_as_theirs(project: Path) -> None:
    edit(project / "harnesses/guesser/play.py", "while not seat.finished:", "while seat.finish:")
    result = run("--task", "low", "--agent", "halver")
    assert result.exit_code == 1
    assert "! Harness guesser raised in 1 Trial, which ended there" in result.stderr
    assert "AttributeError" in result.stderr and "(at play.py:9)" in result.stderr
    edit(project / "harnesses/guesser/play.py", "while seat.finish:", "while not seat.finished:")
    edit(project / "environments/higher-lower/app.py", 'return "found"', 'raise KeyError("found")')
    result = run("--task", "low", "--agent", "halver")
    assert result.exit_code == 1
    assert "! App game raised in 1 Trial, which ended there" in result.stderr


def test_faults_of_every_place_have_words_of_their_own() -> None:
    rest = {"type": "KeyError", "message": "'done'", "at": "verify.py:14", "count": 12, "trials": 3}
    told = [
        fault_lines([{"where": where, **rest}])[0]
        for where in ("verifier progress reward", "verifier progress hindsight", "apps", "runtime")
    ]
    assert told == [
        "! Verifier progress's reward raised on 12 steps in 3 Trials, which earned it no reward",
        "! Verifier progress's hindsight raised in 3 Trials, which earned it no credit",
        "! apps failed in 3 Trials",
        "! runtime failed in 3 Trials",
    ]


# --dry-run


def test_a_dry_run_shows_pins_and_runs_nothing(project: Path) -> None:
    result = run("--benchmark", "three-numbers", "--agent", "halver", "--dry-run")
    assert result.exit_code == 0
    assert not (project / ".plural").exists()
    assert "Nothing was run." in result.stderr
    words = [line.split()[0] for line in result.stdout.splitlines()]
    assert words == ["input", "benchmark", "agent", "environment", "verifier", "task", "task", "task"]
    assert result.stdout.count("sha256:") == 7


def test_the_pins_of_a_dry_run_are_those_of_the_run(project: Path) -> None:
    arguments = ("--task", "low", "--agent", "halver", "--json")
    planned = json.loads(run(*arguments, "--dry-run").stdout)
    folder = Path(json.loads(run(*arguments).stdout)["folder"])
    pinned = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    for key in ("tasks", "agents", "seed", "attempts", "mode"):
        assert planned[key] == pinned[key]
    assert planned["trials"] == 1
    assert planned["verifiers"][0]["name"] == "found"


def test_a_dry_run_of_many_tasks_stays_short() -> None:
    result = run("--task", "wordle", "--agent", "solver", "--dry-run", "--project", str(root()))
    assert len(result.stdout.splitlines()) < 30
    assert "... and 3,514 Tasks more; --json lists them." in result.stderr


# the shipped project, and Ctrl-C


def test_the_shipped_benchmark_runs(tmp_path: Path) -> None:
    result = run(
        *("--benchmark", "support-desk", "--agent", "keyword", "--json"),
        *("--project", str(root()), "--directory", str(tmp_path)),
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["leaderboard"]["benchmark"].startswith("support-desk@")


def test_ctrl_c_keeps_what_has_finished_and_says_how_to_go_on(project: Path) -> None:
    slow = "import time\n\n\ndef play(task, seat, halve=True):\n    time.sleep(0.4)\n    return ''\n"
    (project / "harnesses/guesser/play.py").write_text(slow, encoding="utf-8")
    command = [sys.executable, "-m", "plural_gym", "run", "--task", "low", "--agent", "halver"]
    process = subprocess.Popen(
        [*command, "--attempts", "50", "-n", "1"], stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(3)]
    assert lines[2].startswith(" 1/50  ")
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 130
    assert time.monotonic() - began < 10
    job_id = lines[0].split()[1]
    assert "Traceback" not in told
    assert told.splitlines()[-1] == (
        f"Error: interrupted after 1 of 50 Trials; those are kept. Go on with: plural job resume {job_id}"
    )
