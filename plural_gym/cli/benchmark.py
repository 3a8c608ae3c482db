"""`plural benchmark leaderboard`: every Job of a Benchmark as it is now, in one ranking."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli import completion
from plural_gym.cli.records import job_store
from plural_gym.cli.terminal import (
    DirectoryOption,
    JsonOption,
    ProjectOption,
    counted,
    open_project,
    print_json,
    say,
)

if TYPE_CHECKING:
    from plural_gym.job import JobResult
    from plural_gym.leaderboard import Leaderboard

IDS_SHOWN = 5


def register(app: typer.Typer) -> None:
    """Add `leaderboard` to the noun `benchmark`."""
    app.command("leaderboard")(leaderboard)


def leaderboard(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A Benchmark of the project.",
            show_default=False,
            autocompletion=completion.benchmark,
        ),
    ],
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank Agents over all Jobs of a Benchmark.

    Counts the Jobs that ran it as it is now; those that ran it before a change are named and left out.
    """
    from plural_gym.job import JobResult

    benchmark = open_project(project).benchmarks[name]
    current: list[JobResult] = []
    others: list[JobResult] = []
    for folder in job_store(directory, project).jobs():
        pin = folder.pins()["benchmark"]
        if pin is not None and pin["name"] == benchmark.name:
            same = pin["content_hash"] == benchmark.content_hash
            (current if same else others).append(JobResult(folder))
    board = benchmark.leaderboard(pooled_rows(reversed(current)))
    if as_json:
        print_json(
            {
                **board.to_json(),
                "content_hash": benchmark.content_hash,
                "jobs": [result.id for result in current],
                "other_versions": [result.id for result in others],
            }
        )
        return
    _show(benchmark.name, board, current, others)


def _show(name: str, board: "Leaderboard", current: list["JobResult"], others: list["JobResult"]) -> None:
    if board.rows:
        typer.echo(str(board))
        say(f"From {counted(len(current), 'Job')}.")
    else:
        say(f"No Job has finished a Trial of {name} as it is now; start one: plural run --benchmark {name}")
    if others:
        ids = ", ".join(result.id for result in others[:IDS_SHOWN])
        ids += ", ..." if len(others) > IDS_SHOWN else ""
        say(f"! {counted(len(others), 'Job')} of another content of {name} left out: {ids}")


def pooled_rows(jobs: Iterable["JobResult"]) -> Iterator[dict[str, Any]]:
    """The rows of several Jobs as one: attempts of one Agent at one Task are counted on from Job to Job.

    Agents of one name and different content stand apart, as `name@` and seven digits of the content hash.
    """
    found = list(jobs)
    agents = [pin for job in found for pin in job.folder.pins()["agents"]]
    known: dict[str, set[str]] = {}
    for pin in agents:
        known.setdefault(pin["name"], set()).add(pin["content_hash"])
    attempts: dict[tuple[str, str], int] = {}
    for job in found:
        labels = {pin["name"]: _label(pin, known) for pin in job.folder.pins()["agents"]}
        for row in job.rows():
            agent = labels[row["agent"]]
            key = (agent, row["task"])
            attempts[key] = attempts.get(key, 0) + 1
            yield {**row, "agent": agent, "attempt": attempts[key]}


def _label(pin: Mapping[str, Any], known: Mapping[str, set[str]]) -> str:
    name = str(pin["name"])
    if len(known[name]) == 1:
        return name
    return f"{name}@{pin['content_hash'].removeprefix('sha256:')[:7]}"
