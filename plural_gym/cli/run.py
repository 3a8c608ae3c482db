"""`plural run`: one Job from the command line, its progress, and what came of it."""

import fnmatch
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli import completion
from plural_gym.cli.progress import shown_progress
from plural_gym.cli.records import board_text, fault_lines
from plural_gym.cli.terminal import (
    DirectoryOption,
    Interrupted,
    JsonOption,
    ProjectOption,
    counted,
    jobs_directory,
    open_project,
    print_json,
    print_table,
    say,
    shown,
    unread_tasks_told,
)
from plural_gym.errors import ProjectError, UnknownName, UsageError

if TYPE_CHECKING:
    from plural_gym.agent import Agent
    from plural_gym.benchmark import Benchmark
    from plural_gym.job import Job, Progress
    from plural_gym.leaderboard import Leaderboard
    from plural_gym.project import Project
    from plural_gym.task import TaskSet

_PINS_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add `run` to the command line."""
    app.command("run", rich_help_panel="Run")(run)


def run(
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            "-t",
            help="A Task, a folder of Tasks, or a pattern as 'wordle/*'. Repeat it.",
            autocompletion=completion.task,
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", "-b", help="A Benchmark.", autocompletion=completion.benchmark),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", "-a", help="Who plays. Repeat it.", autocompletion=completion.agent),
    ] = None,
    seat: Annotated[
        list[str] | None,
        typer.Option("--seat", "-s", help="In a party, who sits where, as 'north=solver'. Once a seat."),
    ] = None,
    round_robin: Annotated[
        bool, typer.Option("--round-robin", help="In a party: the Agents against one another, in every seat.")
    ] = False,
    split: Annotated[
        str | None, typer.Option("--split", help="Of the --task Tasks, only those of this split.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Of the --task Tasks, only the first so many.")
    ] = None,
    attempts: Annotated[int, typer.Option("--attempts", min=1, help="Tries for each Agent and Task.")] = 1,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", "-n", min=1, help="Trials at once; by default one a processor, up to 8."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Repeats all randomness of the Apps.")] = 0,
    min_score: Annotated[
        float | None, typer.Option("--min-score", help="End with code 1 if an Agent scores below this.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show plan and pins, run nothing.")] = False,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run Agents on Tasks or on a Benchmark, and show the leaderboard.

    plural run --benchmark wordle-ten --agent solver --agent novice
    """
    found = open_project(project)
    exam, tasks = _what(found, benchmark, task or [], split, limit)
    line_up = _line_up(found, seat or [], bool(agent) or round_robin)
    agents = [] if line_up else _agents(found, agent or [])
    from plural_gym.job import Job

    watch = Watch()
    job = Job(
        tasks,
        agents,
        seats="round-robin" if round_robin else line_up,
        benchmark=exam,
        attempts=attempts,
        concurrency=concurrency,
        seed=seed,
        directory=jobs_directory(found, directory),
        progress=watch,
    )
    list(job.tasks)  # what is wrong with one of them is told before the Job has an id that anybody reads
    if dry_run:
        _show_plan(job, as_json)
        return
    finish(job, watch, min_score, as_json)


class Watch:
    """A Job's `progress` callback, given before it is known how progress is shown."""

    def __init__(self) -> None:
        self.done = 0
        """Finished Trials so far."""
        self.tell: Callable[[Progress], None] | None = None

    def __call__(self, progress: "Progress") -> None:
        self.done = progress.done
        if self.tell is not None:
            self.tell(progress)


def finish(job: "Job", watch: Watch, min_score: float | None, as_json: bool) -> None:
    """Run a Job to its end, show what came of it, and exit with its code; `job resume` ends here too.

    Args:
        job: made with `watch` as its `progress`.
        watch: hears of every finished Trial.
        min_score: what every Agent has to reach; None: nothing.
        as_json: print the Job's summary as JSON in place of the leaderboard.

    Raises:
        Interrupted: on Ctrl-C; says how to go on.
    """
    if not as_json:
        say(f"Job {job.id}")
        say(_header(job))
    try:
        with shown_progress(job.trial_count, quiet=as_json) as watch.tell:
            result = job.run()
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after {watch.done} of {counted(job.trial_count, 'Trial')}; those are kept. "
            f"Go on with: plural job resume {job.id}{_where(job.folder.path)}"
        ) from None
    summary, board = result.summary(), result.leaderboard
    below = _below(board, min_score)
    if as_json:
        places = {"folder": str(result.folder.path), "ledger": str(result.folder.ledger_path)}
        print_json({**summary, **places, "min_score": min_score, "below_min_score": below})
    else:
        say()
        typer.echo(board_text(result))
        say()
        _show_outcome(summary)
        if below:
            say(f"Below --min-score {min_score:g}: {', '.join(below)}")
        say(f"Records  {shown(result.folder.path)}")
        say(f"Ledger   {shown(result.folder.ledger_path)}")
        waits = "awaiting_review" in summary["by_status"]
        then = f"review list --job {result.id}" if waits else f"job show {result.id}"
        say(f"Next     plural {then}{_where(result.folder.path)}")
    if below or summary["by_status"].get("failed"):
        raise typer.Exit(1)


# --- what to run ---


def _what(
    project: "Project", benchmark: str | None, patterns: Sequence[str], split: str | None, limit: int | None
) -> "tuple[Benchmark | None, TaskSet | None]":
    if benchmark is not None and patterns:
        raise UsageError("--benchmark and --task exclude each other; give one of them.")
    if benchmark is not None:
        if split is not None or limit is not None:
            raise UsageError("--split and --limit choose among --task; a Benchmark is run as it is.")
        return project.benchmarks[benchmark], None
    if not patterns:
        listed = ", ".join(project.benchmarks) or "none"
        raise UsageError(f"say what to run: --benchmark NAME (there are: {listed}) or --task NAME.")
    with unread_tasks_told(project):
        return None, choose_tasks(project.tasks, patterns, split, limit)


def choose_tasks(
    tasks: "TaskSet", patterns: Sequence[str], split: str | None = None, limit: int | None = None
) -> "TaskSet":
    """The Tasks that names, folders and patterns name, each once, in the order they are named.

    Raises:
        UnknownName: a pattern that matches none, or a split that none is in.
    """
    names: dict[str, None] = {}
    for pattern in patterns:
        names.update(dict.fromkeys(_matching(tasks, pattern)))
    chosen = tasks.choose(list(names))
    if split is not None:
        chosen = chosen.split(split)
    return chosen if limit is None else tasks.choose(chosen.names[:limit])


def _matching(tasks: "TaskSet", pattern: str) -> list[str]:
    if any(mark in pattern for mark in "*?["):
        found = [name for name in tasks.names if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            folders = sorted({name.partition("/")[0] for name in tasks.names})
            near = ", ".join(folders) or "none"
            raise UnknownName(f"{pattern!r} matches no Task; there are Tasks of: {near}.")
        return found
    folder = pattern.rstrip("/") + "/"
    rows = [name for name in tasks.names if name.startswith(folder)]
    return rows or [tasks.full_name(pattern)]


def _agents(project: "Project", names: Sequence[str]) -> "list[Agent]":
    if not names:
        listed = ", ".join(project.agents) or "none; make one with: plural agent init NAME"
        raise UsageError(f"say who plays: --agent NAME (there are: {listed}).")
    return [project.agents[name] for name in dict.fromkeys(names)]


def _line_up(project: "Project", seats: Sequence[str], others: bool) -> "list[dict[str, Agent]] | None":
    """The line-up that `--seat` names, one Agent a seat; None without it."""
    if not seats:
        return None
    if others:
        raise UsageError("--seat says who plays; leave out --agent and --round-robin.")
    line_up: dict[str, Agent] = {}
    for said in seats:
        name, sign, agent = said.partition("=")
        if not (name and sign and agent):
            raise UsageError(f"--seat {said!r} is no seat with its Agent; write it as 'north=solver'.")
        if name in line_up:
            raise UsageError(f"--seat {name} is given twice; a seat has one Agent.")
        line_up[name] = project.agents[agent]
    return [line_up]


def _below(board: "Leaderboard", min_score: float | None) -> list[str]:
    """The Agents whose score is below `min_score`, or unknown although none of their Trials waits."""
    if min_score is None:
        return []
    return [
        row.agent
        for row in board.rows
        if (row.score is None and not row.waiting) or (row.score is not None and row.score < min_score)
    ]


# --- before ---


def _header(job: "Job") -> str:
    what = counted(len(job.tasks), "Task")
    if job.benchmark is not None:
        what = f"{job.benchmark.name}@{job.benchmark.version}, {what}"
    if job.entries[0].line_up is None:
        names = ", ".join(agent.name for agent in job.agents)
        who = f"Agent {names}" if len(job.agents) == 1 else f"Agents {names}"
    else:
        who = job.entries[0].name if len(job.entries) == 1 else counted(len(job.entries), "line-up")
    tries = f", {counted(job.attempts, 'attempt')}" if job.attempts > 1 else ""
    return f"{what} | {who}{tries} | {counted(job.trial_count, 'Trial')}, {job.concurrency} at once"


def _show_plan(job: "Job", as_json: bool) -> None:
    """Plan and pins of a Job that is not run."""
    pins = {key: value for key, value in job.pins().items() if key not in ("job_id", "rerun_of")}
    words: dict[tuple[str, str], Any] = {}
    for task in job.tasks:
        words["environment", task.environment.name] = task.environment
        words.update({("verifier", verifier.name): verifier for verifier in task.verifiers})
    rows = [
        {"word": word, "name": name, "version": one.version, "content_hash": one.content_hash}
        for (word, name), one in words.items()
    ]
    if as_json:
        plan = {"dry_run": True, "trials": job.trial_count, "concurrency": job.concurrency}
        shared = [row for row in rows if row["word"] == "environment"]
        graders = [row for row in rows if row["word"] == "verifier"]
        print_json({**plan, **pins, "environments": shared, "verifiers": graders})
        return
    say(_header(job))
    pinned = [{"word": "benchmark", **pins["benchmark"]}] if pins["benchmark"] else []
    pinned += [{"word": "agent", **pin} for pin in pins["agents"]] + rows
    pinned += [{"word": "task", **pin} for pin in pins["tasks"][:_PINS_SHOWN]]
    print_table(
        ["input", "name", "version", "content hash"],
        [[pin["word"], pin["name"], pin["version"], pin["content_hash"]] for pin in pinned],
    )
    left = len(pins["tasks"]) - _PINS_SHOWN
    if left > 0:
        say(f"... and {counted(left, 'Task')} more; --json lists them.")
    for reason in pins["why_not"]:
        say(f"! It could not be repeated from its record: {reason}")
    say("Nothing was run.")


# --- afterwards ---


def _show_outcome(summary: Mapping[str, Any]) -> None:
    """Failures by kind, Trials that wait, and what failed in author code."""
    if summary["failures"]:
        failures = ", ".join(f"{count} {kind}" for kind, count in summary["failures"].items())
        say(f"Failed: {failures}")
    waiting = summary["by_status"].get("awaiting_review")
    if waiting:
        say(f"Awaiting review: {counted(waiting, 'Trial')}")
    for line in fault_lines(summary["faults"]):
        say(line)


def _where(folder: Path) -> str:
    """The option that another command needs to find this Job; "" where it looks there anyway."""
    from plural_gym.project_files import find_root
    from plural_gym.records.job_folder import JOBS

    try:
        usual = find_root(Path.cwd()) / JOBS
    except ProjectError:
        usual = Path.cwd() / JOBS
    parent = folder.absolute().parent
    return "" if parent == usual else f" --directory {shlex.quote(shown(parent))}"
