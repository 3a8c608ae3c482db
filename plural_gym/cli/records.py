"""What the commands over stored Jobs and Trials share: finding them, and showing what is in them."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plural_gym.cli.terminal import counted, jobs_directory, open_project, print_table, say, shown
from plural_gym.errors import PluralError

if TYPE_CHECKING:
    from plural_gym.job import JobResult
    from plural_gym.records.job_folder import JobFolder, JobStore
    from plural_gym.trial import Trial

TRIALS_SHOWN = 100
_NO_RESULT = "GradingFault"
"""The type of a fault that no code raised: a function returned what cannot be used."""


def job_store(directory: Path | None, project: Path | None) -> "JobStore":
    """Where Jobs are kept; a project is needed only where no directory is named."""
    from plural_gym.records.job_folder import JobStore

    store = JobStore(directory if directory is not None else jobs_directory(open_project(project), None))
    for job in store.jobs():
        if job.unsettled():
            _settle(job)
    return store


def _settle(job: "JobFolder") -> None:
    """Finish what a `plural review submit` that was killed left undone. The record reads as if it were."""
    from plural_gym.reviewing import settle

    if not job.running() and not all(job.trial(trial).running() for trial in job.unsettled().values()):
        say(f"A review in Job {job.id} was interrupted; doing what follows from it.")
    try:
        settle(job)
    except (PluralError, OSError) as error:
        say(f"! Reviews of Job {job.id} count, but its ledger and summary could not be written: {error}")


def find_job(job_id: str, directory: Path | None, project: Path | None) -> "JobFolder":
    """One Job by its id or how it begins. Raises UnknownName."""
    return job_store(directory, project).find(job_id)


def source(result: "JobResult") -> str:
    """What a Job ran: `name@version` of its Benchmark, or how many Tasks."""
    pins = result.folder.pins()
    pin = pins["benchmark"]
    return f"{pin['name']}@{pin['version']}" if pin else counted(len(pins["tasks"]), "Task")


def board_text(result: "JobResult") -> str:
    """A Job's leaderboard for people; without a Benchmark it says so in its heading."""
    board = result.leaderboard
    if result.folder.pins()["benchmark"] is None:
        board = dataclasses.replace(board, benchmark="no Benchmark")
    return str(board)


def also(directory: Path | None) -> str:
    """The option that a command named in a hint needs to find the same Jobs."""
    return "" if directory is None else f" --directory {shown(directory)}"


def number(value: float | None) -> str:
    """A score or reward for people; `-` where there is none."""
    return "-" if value is None else f"{value:.3f}"


def when(seconds: float | None) -> str:
    """A time for people, on the clock of this machine."""
    return "-" if seconds is None else datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def current_faults(trials: Iterable["Trial"]) -> list[dict[str, Any]]:
    """Failures of author code, alike ones as one, as `JobResult.faults` gives them.

    Those of reward and hindsight functions are read from the ledger: what `verifier apply` made good is gone.
    """
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for trial in trials:
        if not trial.folder.result_path.exists():
            continue
        for fault, times in _faults_of(trial).items():
            row = found.setdefault(
                fault,
                {
                    **dict(zip(("where", "type", "message", "at"), fault, strict=True)),
                    "count": 0,
                    "trials": 0,
                },
            )
            row["count"] += times
            row["trials"] += 1
    return list(found.values())


def _faults_of(trial: "Trial") -> dict[tuple[str, ...], int]:
    """(where, type, message, at) -> how often, in one Trial."""
    result, found = trial.result, dict[tuple[str, ...], int]()
    pinned = result["files"].get("rewards.jsonl", {}).get("bytes", 0)
    rewards = trial.folder.rewards_path
    grown = rewards.exists() and rewards.stat().st_size > pinned
    for fault in result["faults"]:
        late = fault["where"].startswith("verifier ") and fault["where"].endswith((" reward", " hindsight"))
        if not (late and grown):
            found[fault["where"], fault["type"], fault["message"], fault["at"]] = fault["count"]
    for row in trial.rewards if grown else ():
        if row["status"] == "error":
            hook = "reward" if row["kind"] == "step" else row["kind"]
            where = f"verifier {row['verifier']} {hook}"
            key = (where, row["error_type"], row["error_message"], row["error_at"])
            found[key] = found.get(key, 0) + 1
    return found


def fault_lines(faults: Sequence[Mapping[str, Any]]) -> list[str]:
    """What failed in author code, two lines a fault, from the rows of `JobResult.faults`."""
    lines = []
    for fault in faults:
        trials = counted(fault["trials"], "Trial")
        failed = "failed" if fault["type"] == _NO_RESULT else "raised"
        word, _, rest = fault["where"].partition(" ")
        name, _, hook = rest.rpartition(" ") if word == "verifier" else (rest, "", "")
        happened = f"{fault['where']} failed in {trials}"
        if hook == "reward":
            steps = counted(fault["count"], "step")
            happened = f"Verifier {name}'s reward {failed} on {steps} in {trials}, which earned it no reward"
        elif hook == "check":
            happened = f"Verifier {name}'s check {failed} in {trials}, which got no score"
        elif hook == "hindsight":
            happened = f"Verifier {name}'s hindsight {failed} in {trials}, which earned it no credit"
        elif word in ("app", "harness"):
            happened = f"{word.capitalize()} {name} raised in {trials}, which ended there"
        lines += [f"! {happened}", f"  there: {fault_said(fault)}"]
    return lines


def fault_said(fault: Mapping[str, Any]) -> str:
    """`KeyError: 'done' (at verify.py:14)`, or what a function returned where it raised nothing."""
    raised = "" if fault["type"] == _NO_RESULT else f"{fault['type']}: "
    return f"{raised}{fault['message']} (at {fault['at']})"


def trial_row(trial: "Trial") -> dict[str, Any]:
    """One Trial in a few words."""
    if not trial.folder.result_path.exists():
        return {"trial_id": trial.id, "status": trial.status}
    keys = ("trial_id", "task", "agent", "attempt", "status", "failure", "score", "return", "stop_reason")
    return {key: trial.result[key] for key in (*keys, "n_steps", "seconds")}


def show_trials(trials: Sequence["Trial"]) -> None:
    """The table of a Job's Trials."""
    rows = []
    for row in map(trial_row, trials[:TRIALS_SHOWN]):
        if "task" not in row:
            rows.append([row["trial_id"], "", "", "", row["status"], "-", "-", "", ""])
            continue
        status = row["status"] + (f" ({row['failure']})" if row["failure"] != "none" else "")
        cells = [
            row["trial_id"],
            row["task"],
            row["agent"],
            str(row["attempt"]),
            status,
            number(row["score"]),
        ]
        rows.append([*cells, number(row["return"]), row["stop_reason"] or "", f"{row['seconds']:.1f} s"])
    headings = ["trial", "task", "agent", "attempt", "status", "score", "return", "stopped by", "time"]
    if rows:
        print_table(headings, rows)
    if len(trials) > TRIALS_SHOWN:
        say(f"... and {counted(len(trials) - TRIALS_SHOWN, 'Trial')} more; --json lists them.")
