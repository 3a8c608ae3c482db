"""`plural trial`: list and show."""

import json
from typing import Any

import pytest


@pytest.fixture
def trials(garden: Any) -> dict[tuple[str, str], Any]:
    """The first attempts of `job_both` by Agent and Task."""
    found = {}
    for folder in garden.store.job("job_both").trials():
        result = folder.result()
        if result["attempt"] == 1:
            found[result["agent"], result["task"]] = folder
    return found


def test_a_trial_is_shown_with_scores_evidence_and_rewards_by_turn(trials: Any, plural: Any) -> None:
    trial = trials["slow", "beds/small"]
    said = plural("trial", "show", trial.id[:12])
    assert said.out.startswith(
        f"Trial      {trial.id}\nJob        job_both\nTask       beds/small, attempt 1\nAgent      slow\n"
        "Status     succeeded\nStopped by environment_terminated\nScore      1.000\nTook       3 steps"
    )
    assert 'Answer     {"planted": 2}\n' in said.out
    assert "grown@0.1.0 (deterministic): 1.000\n  plants 2\n  2 grow\n" in said.out
    table = [line.split() for line in said.out.partition("\nturn ")[2].splitlines()[1:5]]
    assert table == [
        ["1", "plant", "-"],
        ["2", "plant", "0.250"],
        ["3", "plant", "0.250", "0.500"],
        ["sum", "0.500", "0.500"],
    ]
    assert "grown (hindsight)" in said.out
    assert f"Artifacts  .plural/jobs/job_both/trials/{trial.id}/artifacts\n" in said.out
    assert f"Logs       .plural/jobs/job_both/trials/{trial.id}/logs\n" in said.out
    assert said.err == ""


def test_a_reward_that_failed_is_marked_and_told_with_its_line(trials: Any, plural: Any) -> None:
    said = plural("trial", "show", trials["quick", "beds/large"].id)
    rows = [line.split() for line in said.out.splitlines() if " plant " in line]
    assert [row[2] for row in rows] == ["-", "fault", "fault"]
    assert "! Verifier growth's reward raised on 2 steps in 1 Trial, which earned it no reward\n" in said.err
    assert "  there: KeyError: 3 (at verify.py:6)\n" in said.err


def test_a_check_that_failed_is_told_with_its_line(garden: Any, plural: Any) -> None:
    garden.edit("verifiers/grown/verify.py", 'found = {"plants": bed["plants"]}', 'found = bed["missing"]')
    job = garden.run("slow", benchmark=False)
    [trial, *_] = garden.store.job(job).trial_ids()
    said = plural("trial", "show", trial)
    assert "grown@0.1.0 (deterministic): fault\n  ! KeyError: 'missing' (at verify.py:6)\n" in said.out
    assert "Status     failed (failure: grader)" in said.out
    assert "! Verifier grown's check raised in 1 Trial, which" in said.err


def test_a_trial_is_shown_as_json(trials: Any, plural: Any) -> None:
    trial = trials["slow", "beds/small"]
    shown = plural("trial", "show", trial.id, "--json").json
    assert shown["score"] == 1.0
    assert shown["answer"] == {"planted": 2}
    assert [row["value"] for row in shown["rewards"] if row["kind"] == "step"] == [None, 0.25, 0.25]
    assert shown["logs"].endswith(f"{trial.id}/logs")


def test_a_trial_of_that_id_may_not_be_there(trials: Any, plural: Any) -> None:
    assert "there is no Trial 'trl_zz'" in plural("trial", "show", "trl_zz", code=2).err
    assert "could be 8 Trials" in plural("trial", "show", "trl_", code=2).err


def test_rewards_of_two_versions_stand_apart(garden: Any, trials: Any, plural: Any) -> None:
    garden.edit("verifiers/growth/verifier.yaml", "version: 0.1.0", "version: 0.2.0")
    garden.edit("verifiers/growth/verify.py", "return None", "return -1.0")
    plural("verifier", "apply", "growth", "--job", "job_both", code=1)
    said = plural("trial", "show", trials["slow", "beds/small"].id)
    assert "growth@0.1.0" in said.out and "growth@0.2.0" in said.out
    assert "sum     0.500" in said.out and "-0.500" in said.out


def test_credit_for_the_whole_trial_and_for_model_calls_has_lines_of_its_own(
    garden: Any, trials: Any, plural: Any
) -> None:
    folder = trials["slow", "beds/small"]
    [row, *_] = [row for row in folder.rewards() if row["kind"] == "hindsight"]
    call = {**row, "target": "model_call", "event_id": "x-7", "turn": None, "action": None, "value": 0.125}
    failed = {**row, "verifier": "late", "event_id": None, "turn": None, "status": "error", "value": None}
    failed |= {"error_type": "KeyError", "error_message": "'n'", "error_at": "verify.py:3"}
    with folder.rewards_path.open("a") as file:
        file.write(
            "".join(json.dumps({**one, "reward_id": str(n)}) + "\n" for n, one in enumerate((call, failed)))
        )
    said = plural("trial", "show", folder.id)
    assert "call x-7" in said.out and "0.125" in said.out
    assert "whole Trial" in said.out and "late (hindsight)" in said.out
    assert "! Verifier late's hindsight raised in 1 Trial, which earned it no credit" in said.err


def test_an_unfinished_trial_says_how_to_go_on(trials: Any, plural: Any) -> None:
    folder = trials["slow", "beds/small"]
    folder.result_path.unlink()
    said = plural("trial", "show", folder.id)
    assert (
        f"Trial      {folder.id}\nStatus     interrupted\nJob        job_both\nTask       beds/small\n"
        in said.out
    )
    assert "Go on with: plural job resume job_both\n" in said.err
    assert plural("trial", "show", folder.id, "--json").json["status"] == "interrupted"
    with folder.lock():
        assert "Status     running" in plural("trial", "show", folder.id).out


def test_the_trials_of_a_job_are_listed(trials: Any, plural: Any) -> None:
    trials["slow", "beds/small"].result_path.unlink()
    lines = plural("trial", "list", "--job", "job_both").out.splitlines()
    assert len(lines) == 9
    assert "interrupted" in lines[1]
    assert lines[3].split()[1:7] == ["beds/small", "quick", "1", "succeeded", "1.000", "-"]
    rows = plural("trial", "list", "--job", "job_both", "--json").json
    assert [row["status"] for row in rows] == ["interrupted", *["succeeded"] * 7]


def test_without_a_job_the_command_is_used_wrongly(garden: Any, plural: Any) -> None:
    assert "--job" in plural("trial", "list", code=2).err
