"""`plural job compare`: two Jobs, or two Agents of one, Task by Task."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from plural_gym.cli import completion
from plural_gym.cli.records import job_store, number
from plural_gym.cli.terminal import (
    DirectoryOption,
    JsonOption,
    ProjectOption,
    counted,
    print_json,
    print_table,
    say,
)
from plural_gym.errors import UsageError, suggest

if TYPE_CHECKING:
    from plural_gym.job import JobResult
    from plural_gym.leaderboard import Comparison
    from plural_gym.ranking import Rules
    from plural_gym.records.job_folder import JobFolder


def compare(
    first: Annotated[
        str,
        typer.Argument(metavar="A", help="A Job's id.", show_default=False, autocompletion=completion.jobs),
    ],
    second: Annotated[
        str,
        typer.Argument(
            metavar="B", help="Another's, or the same.", show_default=False, autocompletion=completion.jobs
        ),
    ],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            "-a",
            help="Whose results, where a Job has several. Twice: of A, then of B.",
            autocompletion=completion.agent,
        ),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also where Tasks are not the same.")] = False,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two Jobs Task by Task: the mean difference, its interval, and whether chance explains it."""
    from plural_gym.job import JobResult

    store = job_store(directory, project)
    a, b = JobResult(store.find(first)), JobResult(store.find(second))
    changed = _changed_tasks(a.folder, b.folder)
    if changed and not anyway:
        raise UsageError(
            f"Jobs {a.id} and {b.id} ran other versions of {counted(len(changed), 'Task')}: "
            f"{', '.join(changed)}; add --anyway to compare them all the same."
        )
    outcome = _contrasted(a, b, agent or [])
    if as_json:
        print_json({**outcome.to_json(), "jobs": [a.id, b.id], "changed_tasks": changed})
        return
    _show_comparison(outcome)
    if changed:
        say(f"! Not the same Tasks: {', '.join(changed)}")


def _contrasted(a: "JobResult", b: "JobResult", chosen: Sequence[str]) -> "Comparison":
    """One Agent of A against one of B; two of one name are told apart by their Jobs."""
    from plural_gym.ranking import contrast

    if len(chosen) > 2:
        raise UsageError(f"--agent names one Agent, or one of each Job; got {len(chosen)}.")
    names = [_agent_of(a, chosen[:1]), _agent_of(b, chosen[-1:])]
    rows = []
    for result, name in zip((a, b), names, strict=True):
        rows.append([row for row in result.rows() if row["agent"] == name])
        if not rows[-1]:
            raise UsageError(f"Job {result.id} has no finished Trial of Agent {name!r} yet.")
    outcome = contrast(rows[0], rows[1], _rules(a.rules, b.rules))
    if names[0] == names[1]:
        outcome = dataclasses.replace(outcome, a=f"{names[0]} ({a.id})", b=f"{names[1]} ({b.id})")
    return outcome


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
