"""`plural <noun> init NAME`: a new resource that is valid and runs, to be changed into what it is to be.

What a noun refers to (a Task's Environment, an Agent's Harness) is taken from options, or from the project
where there is only one choice.
"""

import json
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli import completion
from plural_gym.cli.init import checked_name, files, write
from plural_gym.cli.terminal import PLURALS, JsonOption, ProjectOption, open_project, print_json, say, shown
from plural_gym.errors import PluralError, UnknownName, UsageError, suggest

if TYPE_CHECKING:
    from plural_gym.project import Project

Plain = Annotated[str, typer.Argument(metavar="NAME", help="Its name, and that of its folder.")]
_GRADERS = {"deterministic": "verifier", "agent": "verifier-agent", "human": "verifier-human"}
"""Kind of Verifier -> the folder of its template."""
_JUDGE = "openai/gpt-5.6-luna"
"""The model of a new judge, where none is named: one that a person may change."""
_MARKS = "*?["
_TAKEN = ("App", "State", "Count")
"""Names that the template of an App uses."""


def register(noun: str, group: typer.Typer) -> None:
    """Add `init` to a noun's commands."""
    commands: dict[str, Callable[..., None]] = {
        "task": new_task,
        "agent": new_agent,
        "benchmark": new_benchmark,
        "verifier": new_verifier,
    }
    about = f"Make {'an' if noun[0] in 'ae' else 'a'} {noun.capitalize()} that is valid and runs, to change."

    def new(name: Plain, project: ProjectOption = None, as_json: JsonOption = False) -> None:
        _make(noun, name, open_project(project), {}, as_json)

    group.command("init", help=about)(commands.get(noun, new))


def new_task(
    name: Plain,
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment",
            "-e",
            help="The Environment it happens in.",
            autocompletion=completion.environment,
        ),
    ] = None,
    verifier: Annotated[
        list[str] | None,
        typer.Option(
            "--verifier", "-v", help="Who grades it. Repeat it.", autocompletion=completion.verifier
        ),
    ] = None,
    instructions: Annotated[
        str | None, typer.Option("--instructions", help="What the Agent is to do, in a sentence.")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a Task; without instructions, task.yaml marks where to write them."""
    found = open_project(project)
    world = _choice("environment", environment, found.environments)
    graders = verifier or [_choice("verifier", None, found.verifiers)]
    for grader in graders:
        _choice("verifier", grader, found.verifiers)
    from plural_gym.project_files import MARKER

    text = instructions or f"{MARKER}: say what the Agent is to do"
    values = {
        "environment": world,
        "verifiers": ", ".join(graders),
        "instructions": text.strip().replace("\n", "\n  "),
        "setup": _setup(found, world),
    }
    _make("task", name, found, values, as_json, world)


def _setup(project: "Project", environment: str) -> str:
    """A `setup` that would hold, commented out: what its Apps start with, in as far as it can be written.

    It is a hint, so an Environment that cannot be read gives none.
    """
    from plural_gym.apps.python import state_class

    lines = []
    try:
        for name, app in project.environments[environment].declarations.items():
            if "class" in app.options:
                fields = state_class(app.options["class"])().model_dump(mode="json")
                lines.append(f"#   {name}: {json.dumps(fields, ensure_ascii=False)}")
    except (PluralError, ValueError):
        return ""
    return "\n".join(["# setup:", *lines, ""]) if lines else ""


def new_agent(
    name: Plain,
    harness: Annotated[
        str | None,
        typer.Option(
            "--harness",
            help="The Harness that plays it: one of the project, or a kind.",
            autocompletion=completion.harness,
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model it calls.")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an Agent: a Harness plays it, with a model or without one."""
    found = open_project(project)
    driver = _driver(harness, model, found)
    line = "" if model is None else f"model: {json.dumps(model)}\n"
    _make("agent", name, found, {"harness": driver, "model": line}, as_json)


def _driver(harness: str | None, model: str | None, project: "Project") -> str:
    """The Harness that plays a new Agent; never a kind that does not exist or needs code of its own.

    Raises:
        UnknownName: `harness` is none.
        UsageError: none was named where there is a choice, or where a model has to be called.
    """
    from plural_gym import kinds

    installed = kinds.names("plural.harnesses")
    own = list(project.harnesses)
    if harness is not None and ":" in harness:
        return harness
    if harness is not None and harness not in own and harness in installed and not _is_complete(harness):
        raise UsageError(
            f"the Harness kind {harness!r} needs code to play with; make it with: plural harness init NAME, "
            "and name that: --harness NAME"
        )
    if harness is not None:
        return _choice("harness", harness, [*own, *filter(_is_complete, installed)])
    if model is None:
        return _choice("harness", None, own)
    if "native" in installed:
        return "native"
    there = f"there are: {', '.join(sorted(own))}" if own else "make one with: plural harness init NAME"
    raise UsageError(
        f"no Harness that is installed calls a model by itself; name one of the project: --harness NAME "
        f"({there})."
    )


def _is_complete(kind: str) -> bool:
    """Whether a Harness kind plays without being given anything."""
    from plural_gym.harness import as_harness

    try:
        as_harness(kind)
    except PluralError:
        return False
    return True


def new_verifier(
    name: Plain,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            help="Who grades: deterministic (code), agent (a model judges) or human (a person does).",
            autocompletion=lambda incomplete: [one for one in _GRADERS if one.startswith(incomplete)],
        ),
    ] = "deterministic",
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="With --kind agent: the model that judges.")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a Verifier with cases to prove it on, or with a rubric."""
    if kind not in _GRADERS:
        raise UnknownName(f"there is no Verifier kind {kind!r} to start from; {suggest(kind, _GRADERS)}")
    if model is not None and kind != "agent":
        raise UsageError(f"--model names the judge of --kind agent; a Verifier of kind {kind!r} asks none.")
    values = {"model": json.dumps(model or _JUDGE)}
    _make("verifier", name, open_project(project), values, as_json, template=_GRADERS[kind])


def new_benchmark(
    name: Plain,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            "-t",
            help="A Task or a pattern. Repeat it; by default all.",
            autocompletion=completion.task,
        ),
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a Benchmark of some Tasks, or of all there are."""
    from plural_gym.cli.run import choose_tasks

    found = open_project(project)
    names = found.tasks.names
    if not names:
        raise UsageError("a Benchmark needs Tasks, and there are none; make one with: plural task init NAME")
    everything = dict.fromkeys(one.partition("/")[0] + ("/*" if "/" in one else "") for one in names)
    for pattern in task or ():
        choose_tasks(found.tasks, [pattern])
    folders = {one.partition("/")[0] for one in names if "/" in one}
    patterns = [f"{one}/*" if one in folders else one for one in task or everything]
    _make("benchmark", name, found, {"tasks": ", ".join(map(json.dumps, patterns))}, as_json)


def _choice(noun: str, wanted: str | None, known: Iterable[str]) -> str:
    """`wanted` if it is known; without one the only one there is."""
    names = list(known)
    title = noun.capitalize()
    if wanted is not None:
        if wanted not in names:
            raise UnknownName(f"there is no {title} {wanted!r}; {suggest(wanted, names)}")
        return wanted
    if len(names) == 1:
        return names[0]
    if not names:
        raise UsageError(f"there is no {title} yet; make one with: plural {noun} init NAME")
    raise UsageError(f"say which {title}: --{noun} NAME (there are: {', '.join(sorted(names))}).")


def _make(
    noun: str,
    name: str,
    project: "Project",
    values: Mapping[str, str],
    as_json: bool,
    environment: str | None = None,
    template: str | None = None,
) -> None:
    """Write a resource's folder and say what was written. `template`: another than the noun's own."""
    name = checked_name(name)
    resources: Mapping[str, Any] = getattr(project, PLURALS[noun]) if noun != "task" else {}
    if name in resources or (noun == "task" and name in _task_folders(project)):
        raise UsageError(f"there is a {noun.capitalize()} {name!r} already; choose another name.")
    parent = _parent(project, noun, environment)
    templates = ["counter", noun] if noun in ("app", "environment") else [template or noun]
    own = {"name": name, "class": _class_name(name) if noun == "app" else "Counter"}
    written = write(files(templates, {**own, **values}), parent / name)
    if as_json:
        print_json({"word": noun, "name": name, "files": [str(path) for path in written]})
        return
    for path in written:
        typer.echo(shown(path))
    say()
    say(f"Check plural {noun} validate {name}")


def _class_name(name: str) -> str:
    """`Clock` for `clock`, `WallClock` for `wall-clock`; never a name that app.py or Python has already."""
    made = "".join(part[:1].upper() + part[1:] for part in name.split("-"))
    taken = made in _TAKEN or keyword.iskeyword(made)
    return f"{made}App" if taken else made if made.isidentifier() else f"App{made}"


def _task_folders(project: "Project") -> set[str]:
    return {name.partition("/")[0] for name in project.tasks.names}


def _parent(project: "Project", noun: str, environment: str | None) -> Path:
    """The folder that new resources of a word go into, as `folders:` in project.yaml says.

    Raises:
        UsageError: it is a pattern that several folders match, and no Environment decides.
    """
    from plural_gym.project_files import Layout

    declared: Any = Layout(project.root).manifest.folders
    pattern: str = declared.get(PLURALS[noun], PLURALS[noun])
    head, _, tail = pattern.rpartition("/")
    if not any(mark in pattern for mark in _MARKS):
        return project.root / pattern
    if any(mark in tail for mark in _MARKS):
        head, tail = pattern, ""
    candidates = [folder / tail for folder in sorted(project.root.glob(head)) if folder.is_dir()]
    if len(candidates) > 1 and environment is not None:
        candidates = _within(project.environments[environment].folder, candidates)
    if len(candidates) != 1:
        listed = ", ".join(shown(folder) for folder in candidates) or "none"
        raise UsageError(
            f"project.yaml puts {PLURALS[noun]} into {pattern!r}, which could be: {listed}. "
            "Make the folder by hand."
        )
    return candidates[0]


def _within(folder: Path | None, candidates: Sequence[Path]) -> list[Path]:
    return [path for path in candidates if folder is not None and path.is_relative_to(folder)]
