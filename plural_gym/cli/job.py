"""`plural job`: list, show, rerun and resume Jobs; `compare` lies in a module of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli import completion
from plural_gym.cli.compare import compare
from plural_gym.cli.records import (
    also,
    board_text,
    current_faults,
    fault_lines,
    find_job,
    job_store,
    number,
    show_trials,
    source,
    trial_row,
    when,
)
from plural_gym.cli.run import Watch, finish
from plural_gym.cli.terminal import (
    DirectoryOption,
    JsonOption,
    ProjectOption,
    counted,
    print_json,
    print_table,
    say,
    shown,
)
from plural_gym.errors import MachineError, UsageError

if TYPE_CHECKING:
    from plural_gym.job import JobResult
    from plural_gym.records.job_folder import JobFolder, JobStore

TASKS_SHOWN = 5

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="A Job's id, or how it begins.", show_default=False, autocompletion=completion.jobs
    ),
]
ConcurrencyOption = Annotated[
    int | None, typer.Option("--concurrency", "-n", min=1, help="Trials at once; by default one a processor.")
]
MinScoreOption = Annotated[
    float | None, typer.Option("--min-score", help="End with code 1 if an Agent scores below this.")
]


def register(app: typer.Typer) -> None:
    """Add these verbs to the noun `job`."""
    app.command("list")(list_)
    app.command("show")(show)
    app.command("rerun")(rerun)
    app.command("resume")(resume)
    app.command("compare")(compare)


# --- list and show ---


def list_(
    directory: DirectoryOption = None, project: ProjectOption = None, as_json: JsonOption = False
) -> None:
    """List Jobs, newest first."""
    store = job_store(directory, project)
    rows = [_summary(folder) for folder in store.jobs()]
    if as_json:
        print_json(rows)
        return
    if not rows:
        say(f"No Jobs in {shown(store.root)}; run one with: plural run")
        return
    print_table(
        ["job", "started", "source", "agents", "status", "trials", "score"],
        [
            [
                row["job_id"],
                when(row["created"]),
                row["source"],
                ", ".join(row["agents"]),
                row["status"],
                f"{row['finished']}/{row['trials']}",
                ", ".join(number(score) for score in row["scores"].values()),
            ]
            for row in rows
        ],
    )


def _summary(folder: "JobFolder") -> dict[str, Any]:
    """One Job in a few words; of a Job that has ended, from its summary alone."""
    from plural_gym.job import JobResult

    pins, result = folder.pins(), JobResult(folder)
    total = len(pins["tasks"]) * len(pins["agents"]) * pins["attempts"]
    known = folder.result() if folder.result_path.exists() else None
    finished = known["finished"] if known else sum(1 for _ in result.results())
    scores = {row["agent"]: row["score"] for row in known["leaderboard"]["rows"]} if known else {}
    return {
        "job_id": folder.id,
        "created": pins.get("created"),
        "source": source(result),
        "agents": [agent["name"] for agent in pins["agents"]],
        "mode": pins["mode"],
        "status": _status(folder, known),
        "trials": total,
        "finished": finished,
        "scores": {agent["name"]: scores.get(agent["name"]) for agent in pins["agents"]},
        "rerun_of": pins["rerun_of"],
    }


def _status(folder: "JobFolder", known: Mapping[str, Any] | None) -> str:
    """`running`, `interrupted`, or how it ended."""
    if folder.running():
        return "running"
    if known is None or known["finished"] < known["trials"]:
        return "interrupted"
    return str(known["status"])


def show(
    job: JobArgument,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a Job: what ran, the leaderboard, every Trial, and what went wrong."""
    from plural_gym.job import JobResult

    folder = find_job(job, directory, project)
    result, pins = JobResult(folder), folder.pins()
    summary = result.summary()
    known = folder.result() if folder.result_path.exists() else None
    trials = result.trials
    faults = current_faults(trials)
    status = _status(folder, known)
    if as_json:
        rows = [trial_row(trial) for trial in trials]
        record = {**summary, "status": status, "faults": faults, "source": source(result), "pins": pins}
        print_json({**record, "folder": str(folder.path), "trial_results": rows})
        return
    _show_head(result, pins, status, summary)
    if summary["finished"]:
        typer.echo()
        typer.echo(board_text(result))
    typer.echo()
    show_trials(trials)
    for line in fault_lines(faults):
        say(line)
    say(f"Records  {shown(folder.path)}")
    if status == "interrupted":
        say(f"Go on with: plural job resume {folder.id}{also(directory)}")
    if "awaiting_review" in summary["by_status"]:
        say(f"Waiting for reviews: plural review list --job {folder.id}{also(directory)}")


def _show_head(result: "JobResult", pins: Mapping[str, Any], status: str, summary: Mapping[str, Any]) -> None:
    names = [task["name"] for task in pins["tasks"]]
    listed = ", ".join(names[:TASKS_SHOWN]) + (", ..." if len(names) > TASKS_SHOWN else "")
    agents = [
        agent["name"] + (f" ({agent['model']})" if agent.get("model") else "") for agent in pins["agents"]
    ]
    lines = [
        ("Job", result.id),
        ("Source", f"{source(result)}: {listed}"),
        ("Agents", ", ".join(agents)),
        ("Status", f"{status}, {summary['finished']} of {counted(summary['trials'], 'Trial')}"),
        ("Started", when(pins.get("created"))),
    ]
    if summary["failures"]:
        lines.append(("Failed", ", ".join(f"{count} {kind}" for kind, count in summary["failures"].items())))
    if pins["rerun_of"]:
        lines.append(("Rerun of", pins["rerun_of"]))
    for word, text in lines:
        typer.echo(f"{word:<9}{text}")


# --- rerun and resume ---


def rerun(
    job: JobArgument,
    concurrency: ConcurrencyOption = None,
    min_score: MinScoreOption = None,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Repeat a Job as a new one, with the inputs it was pinned to, whatever was edited since."""
    from plural_gym.job import Job

    folder = find_job(job, directory, project)
    watch = Watch()
    again = Job.open(folder, concurrency=concurrency, progress=watch, fresh=True)
    if not as_json:
        say(f"Job {again.id} repeats Job {folder.id} with its own inputs.")
    finish(again, watch, min_score, as_json)


def resume(
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help="A Job's id; by default the newest with Trials unfinished or failed by the machine.",
            autocompletion=completion.jobs,
        ),
    ] = None,
    concurrency: ConcurrencyOption = None,
    min_score: MinScoreOption = None,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a Job that was interrupted, or failed by the machine; runs only what is missing."""
    from plural_gym.job import Job

    store = job_store(directory, project)
    folder = store.find(job) if job is not None else _newest_unfinished(store)
    if folder.running():
        raise MachineError(f"Job {folder.id} runs in another process; wait until it has ended.")
    watch = Watch()
    finish(Job.open(folder, concurrency=concurrency, progress=watch), watch, min_score, as_json)


def _newest_unfinished(store: "JobStore") -> "JobFolder":
    for folder in store.jobs():
        known = folder.result() if folder.result_path.exists() else None
        failed = known is not None and known["failures"].get("infrastructure")
        if failed or _status(folder, known) == "interrupted":
            return folder
    raise UsageError(f"every Job in {shown(store.root)} has ended; name one, or start one with: plural run")
