"""`plural job`: list, show, rerun, resume, compare."""

import json
from typing import Any

import pytest

FAULT = "! Verifier growth's reward raised on 6 steps in 4 Trials, which earned it no reward"


def test_jobs_are_listed_newest_first(garden: Any, plural: Any) -> None:
    new = garden.run("slow", benchmark=False)
    lines = plural("job", "list").out.splitlines()
    assert lines[0].split() == ["job", "started", "source", "agents", "status", "trials", "score"]
    assert [line.split()[0] for line in lines[1:]] == [new, "job_both"]
    assert "beds@1.0.0  slow, quick  succeeded  8/8     0.667, 1.000" in lines[2]
    rows = plural("job", "list", "--json").json
    assert rows[1]["scores"] == {"slow": pytest.approx(2 / 3), "quick": 1.0}
    assert [row["job_id"] for row in rows] == [new, "job_both"]


def test_without_jobs_there_is_a_hint(garden: Any, plural: Any) -> None:
    said = plural("job", "list", "--directory", "elsewhere")
    assert said.out == "" and "No Jobs in elsewhere; run one with: plural run" in said.err


def test_a_job_is_shown_with_its_leaderboard_trials_and_faults(garden: Any, plural: Any) -> None:
    said = plural("job", "show", "job_b")
    assert said.out.startswith("Job      job_both\nSource   beds@1.0.0: beds/small, beds/large\n")
    assert "Agents   slow, quick\nStatus   succeeded, 8 of 8 Trials\n" in said.out
    assert "1   quick  1.000" in said.out
    assert len([line for line in said.out.splitlines() if line.startswith("trl_")]) == 8
    assert FAULT in said.err
    assert "  there: KeyError: 3 (at verify.py:6)" in said.err


def test_a_job_is_shown_as_json(garden: Any, plural: Any) -> None:
    shown = plural("job", "show", "job_both", "--json").json
    assert shown["status"] == "succeeded"
    assert shown["pins"]["attempts"] == 2
    assert len(shown["trial_results"]) == 8
    assert [(fault["count"], fault["trials"]) for fault in shown["faults"]] == [(6, 4)]


def test_a_fault_that_was_made_good_is_shown_no_more(garden: Any, plural: Any) -> None:
    garden.edit("verifiers/growth/verify.py", "2: 0.5}", "2: 0.5, 3: 1.0}")
    plural("verifier", "apply", "growth", "--job", "job_both")
    assert plural("job", "show", "job_both").err.strip() == "Records  .plural/jobs/job_both"


def test_a_fault_that_was_made_worse_is_shown(garden: Any, plural: Any) -> None:
    garden.edit("verifiers/growth/verify.py", "{1: 0.25, 2: 0.5}", "{2: 0.5}")
    plural("verifier", "apply", "growth", "--job", "job_both", code=1)
    assert "raised on 8 steps in 4 Trials" in plural("job", "show", "job_both").err


def test_a_job_of_that_id_may_not_be_there(garden: Any, plural: Any) -> None:
    said = plural("job", "show", "job_bth", code=2)
    assert "there is no Job 'job_bth'" in said.err and "did you mean 'job_both'?" in said.err
    error = plural("job", "show", "x", "--json", code=2).json["error"]
    assert error["type"] == "UnknownName"


def test_a_rerun_repeats_what_was_pinned_whatever_was_edited(garden: Any, plural: Any) -> None:
    garden.edit("harnesses/hands/play.py", 'seat.act("plant", count=count)', "raise RuntimeError")
    garden.edit("tasks/beds/rows.jsonl", '"wanted": 6', '"wanted": 600')
    said = plural("job", "rerun", "job_both")
    [new, old] = garden.store.jobs()
    assert (new.pins()["rerun_of"], old.id) == ("job_both", "job_both")
    assert f"Job {new.id} repeats Job job_both with its own inputs." in said.err
    assert new.pins()["tasks"] == old.pins()["tasks"]
    assert new.result()["leaderboard"]["rows"][0]["score"] == 1.0
    assert "Rerun of job_both" in plural("job", "show", new.id).out


def test_a_rerun_below_the_score_asked_for_ends_with_1(garden: Any, plural: Any) -> None:
    shown = plural("job", "rerun", "job_both", "--min-score", "0.9", "--json", code=1).json
    assert shown["below_min_score"] == ["slow"]


def test_resume_runs_only_what_is_missing(garden: Any, plural: Any) -> None:
    folder = garden.store.job("job_both")
    ids = folder.trial_ids()
    lost = folder.trial(ids[0])
    lost.result_path.unlink()
    folder.result_path.unlink()
    kept = {name: folder.trial(name).result_path.stat().st_mtime_ns for name in ids[1:]}
    assert "interrupted" in plural("job", "list").out
    shown = plural("job", "show", "job_both")
    assert "Status   interrupted, 7 of 8 Trials" in shown.out
    assert "Go on with: plural job resume job_both" in shown.err
    plural("job", "resume")
    assert lost.finished() and (lost.path / "interrupted-1").is_dir()
    assert {name: folder.trial(name).result_path.stat().st_mtime_ns for name in ids[1:]} == kept
    assert "succeeded, 8 of 8" in plural("job", "show", "job_both").out


def test_without_an_unfinished_job_there_is_nothing_to_resume(garden: Any, plural: Any) -> None:
    assert "every Job in .plural/jobs has ended" in plural("job", "resume", code=2).err


def test_a_job_that_runs_elsewhere_is_not_resumed(garden: Any, plural: Any) -> None:
    with garden.store.job("job_both").lock():
        assert "runs in another process" in plural("job", "resume", "job_both", code=5).err
        assert "running" in plural("job", "list").out


def test_two_agents_of_a_job_are_compared(garden: Any, plural: Any) -> None:
    said = plural("job", "compare", "job_both", "job_both", "-a", "quick", "-a", "slow")
    assert "beds/small  1.000  1.000  +0.000" in said.out
    assert "beds/large  1.000  0.333  +0.667" in said.out
    assert "A is quick, B is slow" in said.out
    assert "difference +0.333, p = 1" in said.out
    assert "wins 1, ties 1, losses 0" in said.out


def test_two_jobs_of_one_agent_are_told_apart(garden: Any, plural: Any) -> None:
    new = garden.run("slow", seed=7)
    shown = plural("job", "compare", "job_both", new, "--agent", "slow", "--json").json
    assert (shown["a"], shown["b"]) == ("slow (job_both)", f"slow ({new})")
    assert (shown["difference"], shown["ties"]) == (0.0, 2)
    assert shown["jobs"] == ["job_both", new]


def test_one_agent_is_chosen_where_a_job_has_several(garden: Any, plural: Any) -> None:
    new = garden.run("slow")
    said = plural("job", "compare", new, "job_both", code=2)
    assert "Job job_both has several Agents; choose with --agent: slow, quick." in said.err
    assert "A is slow, B is quick" in plural("job", "compare", new, "job_both", "-a", "quick").out
    missing = plural("job", "compare", new, "job_both", "-a", "quik", code=2).err
    assert "Job job_both has no Agent 'quik'; did you mean 'quick'?" in missing
    many = plural("job", "compare", new, "job_both", *("-a", "slow") * 3, code=2).err
    assert "one of each Job; got 3." in many


def test_jobs_of_changed_tasks_are_compared_only_on_demand(garden: Any, plural: Any) -> None:
    garden.edit("tasks/beds/rows.jsonl", '"wanted": 6', '"wanted": 4')
    new = garden.run("slow")
    refused = plural("job", "compare", "job_both", new, "-a", "slow", code=2).err
    assert "ran other versions of 1 Task: beds/large; add --anyway" in refused
    said = plural("job", "compare", "job_both", new, "-a", "slow", "--anyway")
    assert "beds/large  0.333  0.500  -0.167" in said.out
    assert "! Not the same Tasks: beds/large" in said.err


def test_a_job_without_finished_trials_cannot_be_compared(garden: Any, plural: Any) -> None:
    folder = garden.store.job("job_both")
    for trial in folder.trials():
        if trial.result()["agent"] == "slow":
            trial.result_path.unlink()
    said = plural("job", "compare", "job_both", "job_both", "-a", "slow", code=2)
    assert "Job job_both has no finished Trial of Agent 'slow' yet." in said.err


def test_a_job_from_code_that_is_gone_says_why_it_cannot_be_repeated(garden: Any, plural: Any) -> None:
    path = garden.store.job("job_both").pins_path
    pins = json.loads(path.read_text())
    path.write_text(json.dumps({**pins, "rerunnable": False, "why_not": ["play is defined at a prompt"]}))
    said = plural("job", "rerun", "job_both", code=2)
    assert "cannot be repeated from its record: play is defined at a prompt" in said.err


def test_a_job_without_a_benchmark_counts_its_tasks_once(garden: Any, plural: Any) -> None:
    said = plural("run", "--task", "small", "--agent", "quick", code=0)
    assert said.out.startswith("no Benchmark (1 Task)\n")
    assert "1 Tasks" not in said.out + said.err
    job = plural("job", "list", "--json").json[0]
    assert job["source"] == "1 Task"
    shown = plural("job", "show", job["job_id"]).out
    assert "Source   1 Task: beds/small" in shown and "no Benchmark (1 Task)" in shown


def test_a_comparison_of_one_task_counts_one(garden: Any, plural: Any) -> None:
    plural("run", "--task", "small", "--agent", "slow", "--agent", "quick", code=0)
    job = plural("job", "list", "--json").json[0]["job_id"]
    assert "1 Task in common" in plural("job", "compare", job, job, "-a", "slow", "-a", "quick").out


def test_more_than_two_agents_cannot_be_compared(garden: Any, plural: Any) -> None:
    chosen = ["-a", "slow", "-a", "quick", "-a", "slow"]
    said = plural("job", "compare", "job_both", "job_both", *chosen, code=2)
    assert "--agent names one Agent, or one of each Job; got 3." in said.err
