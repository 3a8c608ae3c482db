"""`plural trial`: list and show."""

import json
from typing import Any

import pytest
from rich.console import Console


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
        ["1", "plant(count=0)", *["rejected:", "plant", "at", "least", "one"], "-"],
        ["2", "plant(count=1)", "1", "grow", "0.250"],
        ["3", "plant(count=1)", "2", "grow", "0.250", "0.500"],
        ["sum", "0.500", "0.500"],
    ]
    assert "grown (hindsight)" in said.out
    for what, file in (
        ("Steps      ", "steps.jsonl"),
        ("Rewards    ", "rewards.jsonl"),
        ("Trajectory ", "trajectory.json"),
        ("Artifacts  ", "artifacts"),
    ):
        assert f"{what}.plural/jobs/job_both/trials/{trial.id}/{file}\n" in said.out
    assert f"Logs       .plural/jobs/job_both/trials/{trial.id}/logs\n" in said.out
    assert said.err == ""


def test_a_reward_that_failed_is_marked_and_told_with_its_line(trials: Any, plural: Any) -> None:
    said = plural("trial", "show", trials["quick", "beds/large"].id)
    rows = [line.split() for line in said.out.splitlines() if " plant(" in line]
    assert ["fault" in row for row in rows] == [False, True, True]
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
    assert [step["action"] for step in shown["steps"]] == ["plant"] * 3
    assert shown["steps"][2]["states"] == {"bed": {"plants": 2, "wanted": 2}}
    assert shown["logs"].endswith(f"{trial.id}/logs")
    for file in ("steps", "rewards"):
        assert shown[f"{file}_path"].endswith(f"{trial.id}/{file}.jsonl")
    assert shown["trajectory_path"].endswith(f"{trial.id}/trajectory.json")


def test_what_is_long_is_shortened_unless_it_is_wanted_in_full(garden: Any, plural: Any) -> None:
    garden.edit(
        "environments/garden/app.py", 'return f"{self.state.plants} grow"', 'return "grow\\n" + "g" * 300'
    )
    job = garden.run("slow", benchmark=False)
    [trial, *_] = garden.store.job(job).trial_ids()
    shortened = plural("trial", "show", trial).out
    lines = [line for line in shortened.splitlines() if "plant(count=1)" in line]
    assert len(lines) == 2 and all(len(line) <= 120 and "grow ggg" in line and "…" in line for line in lines)
    full = plural("trial", "show", trial, "--full").out
    assert "g" * 300 in full and "…" not in full


def test_a_line_has_room_in_a_narrow_terminal(
    garden: Any, trials: Any, plural: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plural_gym.cli.steps.stdout", lambda: Console(width=70))
    out = plural("trial", "show", trials["slow", "beds/small"].id).out
    lines = [line for line in out.splitlines() if "plant(" in line]
    assert "rejected: plant at l…" in lines[0]
    assert all(len(line) <= 70 for line in lines)


def test_long_arguments_leave_room_for_the_observation(garden: Any, plural: Any) -> None:
    garden.edit("harnesses/hands/play.py", "count=0", "count=0, note='n' * 300")
    job = garden.run("slow", benchmark=False)
    [trial, *_] = garden.store.job(job).trial_ids()
    [line] = [line for line in plural("trial", "show", trial).out.splitlines() if "nnnn" in line]
    assert len(line) <= 120 and "rejected: plant: note " in line


def test_an_action_at_which_the_app_failed_is_marked_as_a_fault(garden: Any, plural: Any) -> None:
    garden.edit("environments/garden/app.py", "self.state.plants += count", "raise KeyError(count)")
    job = garden.run("slow", benchmark=False)
    [trial, *_] = garden.store.job(job).trial_ids()
    said = plural("trial", "show", trial)
    assert "rejected: plant at least one" in said.out
    assert "fault: app bed: KeyError: 1 (at app.py:15)" in said.out


def test_what_the_agent_saw_first_has_a_line_of_its_own(garden: Any, plural: Any) -> None:
    garden.edit(
        "environments/garden/app.py",
        "    def terminated",
        "    def reset(self, task):\n        return 'bare soil'\n\n    def terminated",
    )
    job = garden.run("slow", benchmark=False)
    [trial, *_] = garden.store.job(job).trial_ids()
    assert "\n0                     bare soil\n" in plural("trial", "show", trial).out


def test_rewards_of_an_apply_run_are_told_with_its_id(garden: Any, trials: Any, plural: Any) -> None:
    trial = trials["quick", "beds/small"]
    assert "plural verifier apply" not in plural("trial", "show", trial.id).out
    garden.edit("verifiers/growth/verify.py", "2: 0.5}", "2: 0.5, 3: 1.0}")
    run = plural("verifier", "apply", "growth", "--job", "job_both", "--json").json["run_id"]
    out = plural("trial", "show", trial.id).out
    assert f"growth: given by plural verifier apply, run {run}\n" in out.partition(" sum ")[2]


def test_a_check_that_returns_nothing_is_told_as_what_it_returned(garden: Any, plural: Any) -> None:
    garden.edit("verifiers/grown/verify.py", "return VerifierOutput(", "VerifierOutput(")
    job = garden.run("slow", benchmark=False)
    [trial, *_] = garden.store.job(job).trial_ids()
    said = plural("trial", "show", trial)
    told = "check returned None, which is no VerifierOutput (at verify.py:3)"
    assert f"  ! {told}\n" in said.out
    assert f"! Verifier grown's check failed in 1 Trial, which got no score\n  there: {told}\n" in said.err
    assert "raised" not in said.err and "GradingFault" not in said.err


def test_a_trial_of_that_id_may_not_be_there(trials: Any, plural: Any) -> None:
    assert "there is no Trial 'trl_zz'" in plural("trial", "show", "trl_zz", code=2).err
    assert "could be 8 Trials" in plural("trial", "show", "trl_", code=2).err


def test_rewards_of_two_versions_stand_apart(garden: Any, trials: Any, plural: Any) -> None:
    garden.edit("verifiers/growth/verifier.yaml", "version: 0.1.0", "version: 0.2.0")
    garden.edit("verifiers/growth/verify.py", "return None", "return -1.0")
    plural("verifier", "apply", "growth", "--job", "job_both", code=1)
    said = plural("trial", "show", trials["slow", "beds/small"].id)
    assert "growth@0.1.0" in said.out and "growth@0.2.0" in said.out
    [sums] = [line.split() for line in said.out.splitlines() if " sum " in line]
    assert sums == ["sum", "0.500", "0.500", "-0.500"]


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
