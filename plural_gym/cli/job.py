"""`plural job`: list, show, rerun, resume and compare Jobs."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli.run import Watch, fault_lines, finish
from plural_gym.cli.terminal import (
    DirectoryOption,
    JsonOption,
    ProjectOption,
    counted,
    jobs_directory,
    open_project,
    print_json,
    print_table,
    say,
    shown,
)
from plural_gym.errors import MachineError, UsageError, suggest

if TYPE_CHECKING:
    from plural_gym.job import JobResult
    from plural_gym.leaderboard import Comparison
    from plural_gym.ranking import Rules
    from plural_gym.records.job_folder import JobFolder, JobStore
    from plural_gym.trial import Trial

TRIALS_SHOWN = 100
TASKS_SHOWN = 5

JobArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A Job's id, or how it begins.", show_default=False)
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


# --- shared with the other nouns ---


def job_store(directory: Path | None, project: Path | None) -> "JobStore":
    """Where Jobs are kept; a project is needed only where no directory is named."""
    from plural_gym.records.job_folder import JobStore

    return JobStore(directory if directory is not None else jobs_directory(open_project(project), None))


def find_job(job_id: str, directory: Path | None, project: Path | None) -> "JobFolder":
    """One Job by its id or how it begins. Raises UnknownName."""
    return job_store(directory, project).find(job_id)


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
        "source": result.exam,
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
        rows = [_trial_row(trial) for trial in trials]
        record = {**summary, "status": status, "faults": faults, "source": result.exam, "pins": pins}
        print_json({**record, "folder": str(folder.path), "trial_results": rows})
        return
    _show_head(result, pins, status, summary)
    if summary["finished"]:
        typer.echo()
        typer.echo(str(result.leaderboard))
    typer.echo()
    show_trials(trials)
    for line in fault_lines(faults):
        say(line)
    say(f"Records  {shown(folder.path)}")
    if status == "interrupted":
        say(f"Go on with: plural job resume {folder.id}{also(directory)}")


def _show_head(result: "JobResult", pins: Mapping[str, Any], status: str, summary: Mapping[str, Any]) -> None:
    names = [task["name"] for task in pins["tasks"]]
    listed = ", ".join(names[:TASKS_SHOWN]) + (", ..." if len(names) > TASKS_SHOWN else "")
    agents = [
        agent["name"] + (f" ({agent['model']})" if agent.get("model") else "") for agent in pins["agents"]
    ]
    lines = [
        ("Job", result.id),
        ("Source", f"{result.exam}: {listed}"),
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


def _trial_row(trial: "Trial") -> dict[str, Any]:
    if not trial.folder.result_path.exists():
        return {"trial_id": trial.id, "status": trial.status}
    keys = ("trial_id", "task", "agent", "attempt", "status", "failure", "score", "return", "stop_reason")
    return {key: trial.result[key] for key in (*keys, "n_steps", "seconds")}


def show_trials(trials: Sequence["Trial"]) -> None:
    """The table of a Job's Trials."""
    rows = []
    for row in map(_trial_row, trials[:TRIALS_SHOWN]):
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
        typer.Argument(metavar="[ID]", help="A Job's id; by default the newest unfinished Job."),
    ] = None,
    concurrency: ConcurrencyOption = None,
    min_score: MinScoreOption = None,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a Job that was interrupted; runs only what is missing."""
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
        if _status(folder, known) == "interrupted":
            return folder
    raise UsageError(f"every Job in {shown(store.root)} has ended; name one, or start one with: plural run")


# --- compare ---


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A Job's id.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="B", help="Another's, or the same.", show_default=False)],
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", "-a", help="Whose results, where a Job has several. Twice: of A, then of B."),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also where Tasks are not the same.")] = False,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two Jobs Task by Task: the mean difference, its interval, and whether chance explains it."""
    from plural_gym.job import JobResult
    from plural_gym.ranking import contrast

    store = job_store(directory, project)
    a, b = JobResult(store.find(first)), JobResult(store.find(second))
    changed = _changed_tasks(a.folder, b.folder)
    if changed and not anyway:
        raise UsageError(
            f"Jobs {a.id} and {b.id} ran other versions of {counted(len(changed), 'Task')}: "
            f"{', '.join(changed)}; add --anyway to compare them all the same."
        )
    chosen = agent or []
    if len(chosen) > 2:
        raise UsageError(f"--agent names one Agent, or one of each Job; got {len(chosen)}.")
    names = [_agent_of(a, chosen[:1]), _agent_of(b, chosen[-1:])]
    rows = [
        [row for row in result.rows() if row["agent"] == name]
        for result, name in zip((a, b), names, strict=True)
    ]
    for result, name, found in zip((a, b), names, rows, strict=True):
        if not found:
            raise UsageError(f"Job {result.id} has no finished Trial of Agent {name!r} yet.")
    outcome = contrast(rows[0], rows[1], _rules(a.rules, b.rules))
    labels = [
        f"{name} ({result.id})" if names[0] == names[1] else name
        for name, result in zip(names, (a, b), strict=True)
    ]
    outcome = dataclasses.replace(outcome, a=labels[0], b=labels[1])
    if as_json:
        print_json({**outcome.to_json(), "jobs": [a.id, b.id], "changed_tasks": changed})
        return
    _show_comparison(outcome)
    if changed:
        say(f"! Not the same Tasks: {', '.join(changed)}")


def _show_comparison(outcome: "Comparison") -> None:
    if outcome.tasks:
        print_table(
            ["task", "A", "B", "A - B"],
            [[one.task, number(one.a), number(one.b), f"{one.difference:+.3f}"] for one in outcome.tasks],
        )
        typer.echo()
    typer.echo(f"A is {outcome.a}, B is {outcome.b}")
    typer.echo(str(outcome))


def _changed_tasks(a: "JobFolder", b: "JobFolder") -> list[str]:
    """Tasks of both Jobs whose content differs."""
    first, second = (
        {task["name"]: task["content_hash"] for task in folder.pins()["tasks"]} for folder in (a, b)
    )
    return [name for name in first if name in second and first[name] != second[name]]


def _agent_of(result: "JobResult", chosen: Sequence[str]) -> str:
    names = [agent["name"] for agent in result.folder.pins()["agents"]]
    if len(names) == 1 and (not chosen or chosen[0] not in names):
        return str(names[0])
    if not chosen:
        raise UsageError(f"Job {result.id} has several Agents; choose with --agent: {', '.join(names)}.")
    if chosen[0] not in names:
        raise UsageError(f"Job {result.id} has no Agent {chosen[0]!r}; {suggest(chosen[0], names)}")
    return chosen[0]


def _rules(a: "Rules", b: "Rules") -> "Rules":
    """A's rules over the Tasks of both; where B's differ, every Task counts alike."""
    tasks = tuple(dict.fromkeys((*a.tasks, *b.tasks)))
    same = a.weights == b.weights
    return dataclasses.replace(a, tasks=tasks, weights=a.weights if same else {})
