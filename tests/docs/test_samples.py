"""Everything that README.md and docs/*.md show is run, and everything they name exists.

The blocks of one page are taken in order, in one temporary folder that starts empty:

- A block whose first line is a comment naming a file (`# tasks/sort/task.yaml`) is written to that file; of
  JSONL and CSV, which have no comments, without that line.
- Any other ```python block is run in the page's one namespace; with a first line `# not run: ...` it is only
  compiled.
- In ```console blocks, and in ``` blocks without a language, lines that start with `plural` (or `$ plural`)
  are run. `cd` is followed, JOB_ID and TRIAL_ID stand for the newest Job and its first Trial, and a comment
  `# exit 1` at the end of a line names the exit code, else it is 0.

Where a page has written a project.yaml, the project has to be valid at the page's end.
"""

import io
import json
import os
import re
import shlex
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from plural_gym.project import Project
from plural_gym.records.job_folder import JobStore

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DECISIONS = sorted((ROOT / "docs/decisions").glob("*.md"))
LINKED = [*PAGES, *DECISIONS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.(?:py|yaml|jsonl|csv|md|txt))\n")
_COMMAND = re.compile(r"`plural((?: [a-z]+){1,2})")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    line: int
    """Of its first line of text, counted from 1."""

    @property
    def file(self) -> str | None:
        """The file it names in its first line."""
        named = _FILE.match(self.text)
        return named[1] if named else None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1)


class Reader:
    """Somebody who does, in an empty folder, what a page says."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.module = types.ModuleType(f"page_{page.stem.replace('-', '_').lower()}")

    def follow(self, block: Block) -> None:
        file = block.file
        if file is not None:
            self.write(Path(file), block.text)
        elif block.language == "python":
            self.execute(block)
        elif block.language in ("", "console"):
            for line in block.text.splitlines():
                command = line.removeprefix("$ ")
                if command.startswith(("plural ", "cd ")):
                    self.type(command)

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".jsonl", ".csv", ".md", ".txt"):
            text = text.partition("\n")[2]
        path.write_text(text, encoding="utf-8")

    def execute(self, block: Block) -> None:
        source = "\n" * (block.line - 1) + block.text
        code = compile(source, f"<{self.page.relative_to(ROOT)}>", "exec")
        if not block.text.startswith("# not run"):
            exec(code, vars(self.module))

    def type(self, line: str) -> None:
        command, _, comment = line.partition("#")
        expected = re.search(r"exit (\d+)", comment)
        for part in command.split("&&"):
            words = shlex.split(part)
            if words[:1] == ["cd"]:
                os.chdir(words[1])
            elif words[:1] == ["plural"]:
                code = plural([self.meant(word) for word in words[1:]])
                assert code == (int(expected[1]) if expected else 0), f"{self.page.name}: {line}"

    def meant(self, word: str) -> str:
        if word not in ("JOB_ID", "TRIAL_ID"):
            return word
        job = JobStore(".plural/jobs").jobs()[0]
        return job.id if word == "JOB_ID" else job.trial_ids()[0]


def plural(arguments: list[str]) -> int:
    """Run the command in this process; returns its exit code."""
    from plural_gym.cli.main import app

    with pytest.raises(SystemExit) as ended:
        app(arguments)
    return int(ended.value.code or 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_works(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    reader = Reader(page)
    monkeypatch.setitem(sys.modules, reader.module.__name__, reader.module)
    for block in blocks(page):
        reader.follow(block)
    if (Path.cwd() / "project.yaml").is_file():
        report = Project.open(Path.cwd()).validate()
        assert not report.problems and not report.warnings, report


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in _LINK.findall(text):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path) if path else page
        assert goal.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(goal), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- the command line ---


def commands() -> dict[str, Any]:
    """Every command of the command line by its words: `job list`."""
    from plural_gym.cli.main import app

    found: dict[str, Any] = {}

    def walk(group: Any, words: tuple[str, ...]) -> None:
        for name, command in getattr(group, "commands", {}).items():
            if hasattr(command, "commands"):
                walk(command, (*words, name))
            else:
                found[" ".join((*words, name))] = command

    walk(typer.main.get_command(app), ())
    return found


def test_the_page_of_commands_has_every_command() -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    told = {words.strip() for words in _COMMAND.findall(page)}
    missing = [name for name in commands() if name not in told]
    assert not missing


def test_every_command_that_a_page_names_exists() -> None:
    known = commands()
    starts = {name.split()[0] for name in known}
    for page in LINKED:
        for words in _COMMAND.findall(page.read_text(encoding="utf-8")):
            noun, *verb = words.split()
            whole = noun in known or (noun in starts and (not verb or f"{noun} {verb[0]}" in known))
            assert whole, f"{page.name}: plural{words}"


def test_the_page_of_commands_names_options_that_exist() -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    known = commands()
    for row in re.findall(r"^\| `plural [^\n]*$", page, re.MULTILINE):
        names = [words.strip() for words in _COMMAND.findall(row)]
        parameters = [part for name in names if name in known for part in known[name].params]
        have = {option for part in parameters for option in part.opts}
        told = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row.partition(" | ")[2]))
        assert told <= have, f"{row}: {told - have}"


# --- the invariants ---


def test_every_invariant_is_held_by_tests_that_exist() -> None:
    page = (ROOT / "docs/invariants.md").read_text(encoding="utf-8")
    for part in page.split("\n## ")[1:]:
        heading = part.partition("\n")[0]
        held = part.partition("*Held by:*")[2]
        references = re.findall(r"`(tests/[\w/.]+\.py)::(test_\w+)`", held)
        assert references, heading
        for file, test in references:
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{heading}: {file}::{test}"


# --- the tables of fields ---


def section_of(page: str, heading: str) -> str:
    """What stands under a heading, up to the next one."""
    return re.split(r"\n#{2,3} ", page.partition(f"\n{heading}\n")[2])[0]


def test_the_page_of_jobs_names_every_column_of_the_ledger() -> None:
    from plural_gym.records.ledger import TABLES

    page = (ROOT / "docs/jobs.md").read_text(encoding="utf-8")
    for name, table in TABLES.items():
        text = section_of(page, "### Key columns") + section_of(page, f"### `{name}`")
        told = set(re.findall(r"`(\w+)`", text))
        assert set(table.schema.names) <= told, (name, set(table.schema.names) - told)


def test_the_page_of_worlds_names_every_key_of_every_manifest() -> None:
    from plural_gym.project_files import WORDS

    page = (ROOT / "docs/worlds.md").read_text(encoding="utf-8")
    for noun, model in WORDS.values():
        section = section_of(page, f"### {noun}.yaml")
        assert section, f"{noun}.yaml has no section"
        told = set(re.findall(r"`(\w+)`", section)) | set(re.findall(r"^ *(\w+):", section, re.MULTILINE))
        keys = {field.alias or key for key, field in model.model_fields.items()}
        missing = keys - told - {"options", "name", "version", "title", "description"}
        assert not missing, (noun, missing)


def test_json_in_pages_is_json() -> None:
    for page in PAGES:
        for block in blocks(page):
            if block.language == "json":
                json.loads(block.text)
