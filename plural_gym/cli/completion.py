"""What the shell completes: names of a project's resources, and ids of its Jobs.

Names come from folders alone: no manifest but project.yaml is read and no code loaded. Where a name cannot be
told, nothing is offered; an error would only disturb the line that somebody types.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import typer

from plural_gym.cli.terminal import PLURALS

Completer = Callable[[typer.Context, str], list[str]]


def named(context: typer.Context, incomplete: str) -> list[str]:
    """Resources of the noun whose verb is typed, as in `plural task show`."""
    parent = context.parent
    return _offered(lambda: _resources(context, parent.info_name if parent else None), incomplete)


def resources(noun: str) -> Completer:
    """What completes the names of a noun."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return _offered(lambda: _resources(ctx, noun), incomplete)

    return complete


def jobs(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of Jobs, the newest first."""
    return _offered(lambda: _jobs(context), incomplete)


task = resources("task")
agent = resources("agent")
benchmark = resources("benchmark")
environment = resources("environment")
verifier = resources("verifier")
harness = resources("harness")


def _offered(names: Callable[[], Iterator[str]], incomplete: str) -> list[str]:
    try:
        return [name for name in names() if name.startswith(incomplete)]
    except Exception:
        return []


def _root(context: typer.Context) -> Path:
    from plural_gym.project_files import find_root

    return find_root(context.params.get("project") or Path.cwd())


def _resources(context: typer.Context, noun: str | None) -> Iterator[str]:
    from plural_gym.project_files import Layout

    return iter(Layout(_root(context)).resources(PLURALS[noun or ""]))


def _jobs(context: typer.Context) -> Iterator[str]:
    directory = context.params.get("directory") or _root(context) / ".plural" / "jobs"
    pins = sorted(Path(directory).glob("*/job.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return (path.parent.name for path in pins)
