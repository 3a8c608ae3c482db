"""`plural trial`: list the Trials of a Job, and show one with all that its record says."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli import completion
from plural_gym.cli.records import (
    also,
    current_faults,
    fault_lines,
    fault_said,
    find_job,
    job_store,
    number,
    show_trials,
    when,
)
from plural_gym.cli.steps import show_steps
from plural_gym.cli.terminal import (
    DirectoryOption,
    JsonOption,
    ProjectOption,
    counted,
    print_json,
    say,
    shown,
)

if TYPE_CHECKING:
    from plural_gym.trial import Trial


def register(app: typer.Typer) -> None:
    """Add these verbs to the noun `trial`."""
    app.command("list")(list_)
    app.command("show")(show)


def list_(
    job: Annotated[
        str,
        typer.Option(
            "--job", metavar="ID", help="The Job, or how its id begins.", autocompletion=completion.jobs
        ),
    ],
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the Trials of a Job."""
    from plural_gym.job import JobResult

    result = JobResult(find_job(job, directory, project))
    trials = result.trials
    if as_json:
        print_json(
            [trial.result if trial.folder.result_path.exists() else _unfinished(trial) for trial in trials]
        )
        return
    if not trials:
        say(f"Job {result.id} has no Trials yet.")
    show_trials(trials)


def show(
    trial: Annotated[
        str, typer.Argument(metavar="ID", help="A Trial's id, or how it begins.", show_default=False)
    ],
    full: Annotated[
        bool, typer.Option("--full", help="Arguments and observations in full, however long.")
    ] = False,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a Trial: scores with evidence, what the Agent did with its rewards, and where the files are."""
    from plural_gym.trial import Trial

    found = Trial(job_store(directory, project).find_trial(trial))
    folder = found.folder
    files = {
        "steps": folder.steps_path,
        "rewards": folder.rewards_path,
        "trajectory": folder.trajectory_path,
    }
    written = {what: path for what, path in files.items() if path.exists()}
    places = {
        "folder": str(folder.path),
        "artifacts": str(folder.artifacts_path),
        "logs": str(folder.logs_path),
        **{f"{what}_path": str(path) for what, path in written.items()},
    }
    if not folder.result_path.exists():
        _show_unfinished(found, places, directory, as_json)
        return
    faults = current_faults([found])
    if as_json:
        record = {**found.result, "faults": faults, "steps": found.steps, "rewards": found.rewards}
        print_json({**record, "artifact_files": folder.artifacts(), **places})
        return
    result = found.result
    _show_head(result)
    for row in result["scores"]:
        _show_score(row, result["status"])
    show_steps(found, full)
    for line in fault_lines(faults):
        say(line)
    kept = len(folder.artifacts())
    typer.echo()
    for what, path in written.items():
        typer.echo(f"{what.capitalize():<11}{shown(path)}")
    typer.echo(f"Artifacts  {shown(folder.artifacts_path)}" + (f" ({counted(kept, 'file')})" if kept else ""))
    typer.echo(f"Logs       {shown(folder.logs_path)}")
    if result["status"] == "awaiting_review":
        say(f"What a reviewer is asked: plural review show {folder.id}{also(directory)}")


def _unfinished(trial: "Trial") -> dict[str, Any]:
    """What can be said of a Trial that has no result."""
    known = trial.receipt if trial.folder.receipt_path.exists() else None
    return {
        "trial_id": trial.id,
        "status": trial.status,
        "job_id": None if known is None else known.job_id,
        "task": None if known is None else known.task.name,
        "agent": None if known is None else known.agent.name,
        "attempt": None if known is None else known.attempt,
    }


def _show_unfinished(
    trial: "Trial", places: Mapping[str, str], directory: Path | None, as_json: bool
) -> None:
    record = _unfinished(trial)
    if as_json:
        print_json({**record, **places})
        return
    for key, value in record.items():
        if value is not None:
            typer.echo(f"{key.removesuffix('_id').capitalize():<11}{value}")
    typer.echo(f"{'Logs':<11}{shown(trial.folder.logs_path)}")
    if record["status"] == "interrupted" and record["job_id"]:
        say(f"Go on with: plural job resume {record['job_id']}{also(directory)}")


def _show_head(result: Mapping[str, Any]) -> None:
    status = result["status"] + (f" (failure: {result['failure']})" if result["failure"] != "none" else "")
    usage = result["usage"]
    took = f"{counted(result['n_steps'], 'step')}, {result['seconds']:.1f} s"
    if usage.get("cost_usd") is not None:
        took += f", ${usage['cost_usd']:.4f}"
    lines = [
        ("Trial", result["trial_id"]),
        ("Job", result["job_id"]),
        ("Task", f"{result['task']}, attempt {result['attempt']}"),
        ("Agent", result["agent"]),
        ("Status", status),
        ("Stopped by", result["stop_reason"]),
        ("Score", number(result["score"])),
        ("Took", took),
        ("Ended", when(result["ended"])),
        ("Answer", "-" if result["answer"] is None else _one_line(result["answer"])),
    ]
    for word, text in lines:
        typer.echo(f"{word:<11}{text}")


def _one_line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _show_score(row: Mapping[str, Any], status: str) -> None:
    """One Verifier: its score, extra measurements, evidence, and what failed."""
    typer.echo()
    weight = f", weight {row['weight']:g}" if row["weight"] != 1 else ""
    fault = row["fault"]
    review = row.get("review")
    missing = "waits for a review" if "review" in row and status == "awaiting_review" else "no score"
    score = "fault" if fault else missing if row["score"] is None else number(row["score"])
    typer.echo(f"{row['verifier']}@{row['version']} ({row['kind']}{weight}): {score}")
    if row["scores"]:
        typer.echo("  " + ", ".join(f"{name} {value:g}" for name, value in row["scores"].items()))
    for line in row["evidence"]:
        typer.echo(f"  {line}")
    if review:
        typer.echo(f"  by {review['reviewer']} at {when(review['submitted'])}")
    if row.get("feedback"):
        typer.echo(f"  {row['feedback']}")
    if fault:
        typer.echo(f"  ! {fault_said(fault)}")
