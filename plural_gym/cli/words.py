"""The nouns of a project (app, environment, task, verifier, agent, harness, benchmark) and what all can do.

`init` comes from `new.py`, what `show` tells from `describe.py`. Modules of their own add further verbs to a
noun: `main.py` hands them the group that `register` returns.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli import completion, describe, new
from plural_gym.cli.terminal import (
    PLURALS,
    JsonOption,
    ProjectOption,
    counted,
    error_record,
    open_project,
    print_json,
    print_table,
    problem_record,
    say,
    unread_tasks_told,
)
from plural_gym.errors import Problem, ProjectError, UnknownName, UsageError, suggest

if TYPE_CHECKING:
    from plural_gym.project import Project
    from plural_gym.project_files import Found, Layout

_ABOUT = {
    "app": "Apps: systems with actions and hidden State.",
    "environment": "Environments: Apps and where they run.",
    "task": "Tasks: assignments in an Environment.",
    "verifier": "Verifiers: the graders of Tasks.",
    "agent": "Agents: the contestants.",
    "harness": "Harnesses: the loops that play Agents.",
    "benchmark": "Benchmarks: fixed sets of Tasks with a leaderboard.",
}
PANELS = dict.fromkeys(PLURALS, "Project")
"""Noun -> the heading it stands under in `plural --help`."""
_PROVED = 3

Named = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="Its name; by default the one in whose folder you are.",
        autocompletion=completion.named,
    ),
]


def register(app: typer.Typer) -> dict[str, typer.Typer]:
    """Add `validate`, and make each noun's group of commands, which the caller adds when it is complete."""
    app.command("validate", rich_help_panel="Run")(validate_project)
    return {noun: _group(noun) for noun in PLURALS}


def _group(noun: str) -> typer.Typer:
    group = typer.Typer(help=_ABOUT[noun], no_args_is_help=True)
    new.register(noun, group)

    def validate(name: Named = None, project: ProjectOption = None, as_json: JsonOption = False) -> None:
        _validate(noun, name, project, as_json)

    def list_(project: ProjectOption = None, as_json: JsonOption = False) -> None:
        _list(noun, open_project(project), as_json)

    def show(name: Named = None, project: ProjectOption = None, as_json: JsonOption = False) -> None:
        _show(noun, name, open_project(project), as_json)

    about = "Check one, or without a name the whole project; all problems at once, exit code 3."
    if noun != "verifier":  # whose functions are tried besides; see verifier.py
        group.command("validate", help=about)(validate_task if noun == "task" else validate)
    group.command("list", help=f"List the project's {PLURALS[noun].capitalize()}.")(list_)
    group.command("show", help="Show what one is made of.")(show)
    return group


# --- validate ---


def validate_project(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Check every file of the project: all problems at once, each with file and line."""
    _validate_all(open_project(project), as_json)


def validate_task(
    name: Named = None,
    run: Annotated[
        bool, typer.Option("--run", help="Play it too: by an Agent that does nothing, and by its oracle.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="With --run, at most so many Tasks of a folder.")
    ] = _PROVED,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 where there are warnings.")] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check one Task or folder of Tasks, or without a name the whole project; all problems at once."""
    proof = _proof(limit) if run else None
    if _validate("task", name, project, as_json, proof) and strict:
        raise typer.Exit(1)


def _proof(limit: int) -> Any:
    """What plays Tasks and returns warnings; asked for only where it is used."""

    def prove(project: "Project", names: Sequence[str]) -> list[str]:
        from plural_gym.proof import prove_task

        warnings: list[str] = []
        played = names[:limit]
        for name in played:
            warnings += [f"{name}: {warning}" for warning in prove_task(project.tasks.get(name), project)]
        say(f"{len(played):,} of {counted(len(names), 'Task')} played.")
        return warnings

    return prove


def _validate(noun: str, name: str | None, path: Path | None, as_json: bool, prove: Any = None) -> int:
    """Say what is wrong; returns how many warnings there were."""
    project = open_project(path)
    from plural_gym.project_files import Layout

    layout = Layout(project.root)
    if name is None:
        here = _here(layout, noun)
        if here is None:
            return _validate_all(project, as_json, prove)
        name = here.name
    found = found_one(layout, noun, name, project)
    report = project.validate()
    problems = dict.fromkeys(problems_of(found, layout, report.problems))
    warnings = [*problems_of(found, layout, report.warnings)]
    problems.update(dict.fromkeys(_when_built(noun, name, project)))
    facts: dict[str, Any] = {}
    if not problems:
        facts = describe.identity(noun, name, found, project)
        if prove is not None:
            proved = prove(project, describe.task_names(project, name))
            warnings += [Problem(found.file, None, warning) for warning in proved]
    tell(f"{noun}/{name}", list(problems), warnings, {"word": noun, "name": name, **facts}, as_json)
    if not as_json:
        typer.echo(f"version {facts['version']}")
        typer.echo(facts["content_hash"] or counted(facts["tasks"], "Task"))
    return len(warnings)


def _validate_all(project: "Project", as_json: bool, prove: Any = None) -> int:
    report = project.validate()
    warnings = list(report.warnings)
    facts = {plural: len(getattr(project, plural)) for plural in PLURALS.values()}
    if prove is not None and report.ok:
        from plural_gym.project_files import Layout

        for folder, found in Layout(project.root).resources("tasks").items():
            proved = prove(project, describe.task_names(project, folder))
            warnings += [Problem(found.file, None, warning) for warning in proved]
    tell(f"project {project.name}", list(report.problems), warnings, {"name": project.name, **facts}, as_json)
    if not as_json:
        each = [
            counted(facts[plural], noun.capitalize(), plural.capitalize()) for noun, plural in PLURALS.items()
        ]
        typer.echo(", ".join(one for one in each if not one.startswith("0 ")) or "It is empty.")
    return len(warnings)


def tell(
    what: str, problems: list[Problem], warnings: list[Problem], facts: dict[str, Any], as_json: bool
) -> None:
    """Say what was found. Exits with code 3 where there are problems."""
    error = ProjectError(problems)
    if as_json:
        record = {
            "valid": not problems,
            **facts,
            "problems": [problem_record(problem) for problem in problems],
            "warnings": [problem_record(warning) for warning in warnings],
        }
        print_json({**record, "error": error_record(error)} if problems else record)
        if problems:
            raise typer.Exit(error.exit_code)
        return
    for warning in warnings:
        say(f"warning: {warning}")
    if problems:
        raise error
    typer.echo(f"{what} is valid")


def _when_built(noun: str, name: str, project: "Project") -> tuple[Problem, ...]:
    """Problems that show when one is built, those of what it refers to included."""
    try:
        if noun == "task":
            names = describe.task_names(project, name)
            project.tasks.get(names[0] if names else name)
        else:
            getattr(project, PLURALS[noun])[name]
    except ProjectError as error:
        return error.problems
    return ()


def problems_of(found: "Found", layout: "Layout", problems: Sequence[Problem]) -> Iterator[Problem]:
    """The problems of one resource's files, without those of resources that lie inside its folder."""
    folders = {os.path.relpath(one.folder, layout.root): one for one in _all(layout)}
    for problem in problems:
        place = Path(problem.file)
        owners = [str(folder) for folder in (place, *place.parents) if str(folder) in folders]
        if owners and folders[owners[0]].folder == found.folder:
            yield problem


# --- which one ---


def _all(layout: "Layout") -> "Iterator[Found]":
    for plural in PLURALS.values():
        yield from layout.resources(plural).values()


def _here(layout: "Layout", noun: str) -> "Found | None":
    """The resource of this noun in whose folder somebody stands."""
    here = Path.cwd()
    for one in layout.resources(PLURALS[noun]).values():
        if here.is_relative_to(one.folder.resolve()) or here.is_relative_to(one.folder):
            return one
    return None


def found_one(layout: "Layout", noun: str, name: str, project: "Project") -> "Found":
    """The resource's folder; of a Task in a folder of rows, that folder. Raises UnknownName."""
    known = layout.resources(PLURALS[noun])
    folder = name
    if noun == "task" and name not in known:
        with unread_tasks_told(project):
            folder = project.tasks.full_name(name).partition("/")[0]
    if folder not in known:
        raise UnknownName(f"there is no {noun.capitalize()} {name!r}; {suggest(name, known)}")
    return known[folder]


# --- list and show ---


def _list(noun: str, project: "Project", as_json: bool) -> None:
    from plural_gym.project_files import Layout

    rows = [
        describe.line(noun, found, project)
        for found in Layout(project.root).resources(PLURALS[noun]).values()
    ]
    if as_json:
        print_json(rows)
        return
    if not rows:
        say(f"there are no {PLURALS[noun]} in {project.name}; make one with: plural {noun} init NAME")
        return
    counts = ["tasks"] if noun in ("task", "benchmark") else []
    table = [
        [
            row["name"],
            row["version"] or "",
            row["title"],
            *(_count(row[key]) for key in counts),
            row["problem"] or "",
        ]
        for row in rows
    ]
    print_table(["name", "version", "title", *counts, ""], table)


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _show(noun: str, name: str | None, project: "Project", as_json: bool) -> None:
    from plural_gym.project_files import Layout

    layout = Layout(project.root)
    if name is None:
        here = _here(layout, noun)
        if here is None:
            listed = ", ".join(layout.resources(PLURALS[noun])) or "none"
            raise UsageError(f"say which: plural {noun} show NAME (there are: {listed}).")
        name = here.name
    found = found_one(layout, noun, name, project)
    facts = describe.facts(noun, name, found, project)
    if as_json:
        print_json(facts)
        return
    for line in describe.lines(facts):
        typer.echo(line)
