"""What the commands share: the options `--project` and `--json`, and where data and messages go.

Data go to stdout, everything else to stderr. Nothing here is imported for its weight: rich, the project and
all else that takes time is loaded by the function that needs it.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.errors import PluralError, Problem, ProjectError, UnknownName

if TYPE_CHECKING:
    from rich.console import Console

    from plural_gym.project import Project

PLURALS = {
    "app": "apps",
    "environment": "environments",
    "task": "tasks",
    "verifier": "verifiers",
    "agent": "agents",
    "harness": "harnesses",
    "benchmark": "benchmarks",
}
"""Every noun of a project, and the folder and attribute of `Project` that hold its resources."""
_WIDE = 10_000
"""Width of what is not a terminal: nothing is wrapped that a program may read."""

ProjectOption = Annotated[
    Path | None,
    typer.Option(
        "--project", metavar="PATH", help="The project's folder; by default the nearest one here or above."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, errors too.")]
DirectoryOption = Annotated[
    Path | None,
    typer.Option("--directory", metavar="PATH", help="Where Jobs are kept; by default .plural/jobs."),
]


class Interrupted(PluralError):
    """Somebody pressed Ctrl-C; the message says how to go on, "" where there is nothing to say."""

    exit_code = 130


def open_project(path: Path | None) -> "Project":
    """The project at `path`, or the nearest one at or above the current folder. Raises ProjectError."""
    from plural_gym.project import Project

    return Project.open(path or Path.cwd())


@contextmanager
def unread_tasks_told(project: "Project") -> Iterator[None]:
    """A block that looks Tasks up: where one is unknown because a folder cannot be read, that is the error.

    Raises:
        ProjectError: with the problems of every folder whose Tasks are not known.
    """
    try:
        yield
    except UnknownName:
        from plural_gym.project_files import Layout
        from plural_gym.project_tasks import TaskFolder

        problems: list[Problem] = []
        for found in Layout(project.root).resources("tasks").values():
            try:
                _ = TaskFolder(found, project.environments, project.verifiers, project.agents).splits
            except ProjectError as error:
                problems += error.problems
        if problems:
            raise ProjectError(problems) from None
        raise


def jobs_directory(project: "Project", directory: Path | None) -> Path:
    """Where Jobs are kept: `directory` as given, else `.plural/jobs` in the project."""
    from plural_gym.records.job_folder import JOBS

    return project.root / JOBS if directory is None else directory


def stdout() -> "Console":
    """The console for data."""
    return _console(stderr=False)


def stderr() -> "Console":
    """The console for everything else."""
    return _console(stderr=True)


def _console(stderr: bool) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=_WIDE)


def say(message: str = "") -> None:
    """A line for people, on stderr."""
    typer.echo(message, err=True)


def print_json(value: Any) -> None:
    """JSON on stdout."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table without lines on stdout; each column as wide as it needs."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = stdout()
    with console.capture() as captured:
        console.print(table)
    # Padding at the end of a line is of no use to anybody.
    console.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def message_of(error: PluralError) -> str:
    """What an error says, without the record that some carry as their second argument."""
    return str(error.args[0]) if len(error.args) > 1 else str(error)


def error_record(error: PluralError) -> dict[str, Any]:
    """An error as `--json` prints it."""
    record: dict[str, Any] = {
        "type": type(error).__name__,
        "message": message_of(error),
        "exit_code": error.exit_code,
    }
    if isinstance(error, ProjectError):
        record["problems"] = [problem_record(problem) for problem in error.problems]
    return record


def problem_record(problem: Problem) -> dict[str, Any]:
    """A Problem as `--json` prints it."""
    return {"file": problem.file, "line": problem.line, "message": problem.message}


def shown(path: Path) -> str:
    """A path as a person at this terminal would write it: relative where it lies in the current folder."""
    absolute = path.absolute()
    here = Path.cwd()
    return os.path.relpath(absolute, here) if absolute.is_relative_to(here) else str(absolute)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 Trial`, `3 Trials`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
