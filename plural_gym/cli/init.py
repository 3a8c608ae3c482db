"""`plural init`: a project that runs at once and offline; and how templates become files.

`words.py` and `new.py` use the same functions for the `init` of each noun.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from plural_gym.cli.terminal import JsonOption, print_json, say, shown
from plural_gym.errors import UsageError

_TEMPLATES = Path(__file__).with_name("templates")
_ENDING = ".tmpl"
TAKEN_SHOWN = 5
"""Files in the way that are named."""


def register(app: typer.Typer) -> None:
    """Add `init` to the command line."""
    app.command("init", rich_help_panel="Run")(init)


def init(
    path: Annotated[
        Path, typer.Argument(help="The project's folder; made where it does not exist.")
    ] = Path(),
    name: Annotated[
        str | None, typer.Option("--name", help="The project's name; by default the folder's.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a project with a small world in it that runs at once, offline.

    Files that exist are never overwritten.
    """
    chosen = checked_name(name) if name is not None else slug(path.absolute().name)
    written = write(files(["project"], {"name": chosen}), path)
    if as_json:
        print_json({"name": chosen, "root": str(path.absolute()), "files": [str(one) for one in written]})
        return
    for one in written:
        typer.echo(shown(one))
    say()
    if path.absolute() != Path.cwd():
        say(f"Next  cd {shlex.quote(shown(path))}")
    say("Run   plural run --benchmark three-numbers --agent halver --agent counter")
    say("Check plural validate")


def files(templates: Iterable[str], values: Mapping[str, str]) -> dict[str, str]:
    """The files of some template folders, path -> content, with `{{key}}` replaced by its value."""
    made: dict[str, str] = {}
    for template in templates:
        folder = _TEMPLATES / template
        for source in sorted(folder.rglob(f"*{_ENDING}")):
            relative = source.relative_to(folder).as_posix().removesuffix(_ENDING).replace("dot-", ".")
            content = source.read_text(encoding="utf-8")
            for key, value in values.items():
                content = content.replace("{{" + key + "}}", value)
            made[relative] = content
    return made


def write(content: Mapping[str, str], folder: Path) -> list[Path]:
    """Write all of the files below `folder`, or none of them.

    Raises:
        UsageError: some exist already; names the first of them.
    """
    targets = {folder / relative: text for relative, text in content.items()}
    taken = [shown(path) for path in targets if path.exists()]
    if taken:
        listed = ", ".join(taken[:TAKEN_SHOWN])
        if len(taken) > TAKEN_SHOWN:
            listed += f", … and {len(taken) - TAKEN_SHOWN} more"
        raise UsageError(
            f"nothing was written: {listed} exist{'s' if len(taken) == 1 else ''} already. "
            "Choose another folder or name."
        )
    for path, text in targets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(targets)


def slug(text: str) -> str:
    """A resource's name from any text: lower-case letters, digits and dashes."""
    made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].rstrip("-")
    return re.sub(r"-v[0-9]+\Z", "", made) or "project"


def checked_name(name: str) -> str:
    """`name`, if a resource can have it. Raises UsageError with one that would do."""
    from pydantic import ValidationError

    from plural_gym.manifest_errors import explain
    from plural_gym.manifest_models import ResourceManifest

    try:
        return ResourceManifest(name=name).name
    except ValidationError as error:
        raise UsageError(" ".join(sentence for _, sentence in explain(error, ResourceManifest))) from None
