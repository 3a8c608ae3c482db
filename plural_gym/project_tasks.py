"""The Tasks of one task folder: a single one, or one for each row of its data file.

`project.py` asks for names, which cost one look at the manifest and the rows, and for Tasks one by one; what
they share is built once. `check` holds every row to the Environment without keeping a Task.
"""

import functools
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from plural_gym.agent import Agent
from plural_gym.environment import Environment
from plural_gym.errors import DefinitionError, Problem, ProjectError, suggest
from plural_gym.manifest import explain, inside
from plural_gym.manifest_models import TaskManifest, TaskRow
from plural_gym.project_files import Findings, Found
from plural_gym.project_words import limits, text
from plural_gym.refs import origin
from plural_gym.rows import MAX_SHOWN, read_rows
from plural_gym.task import Task, check_setup
from plural_gym.verifier import Verifier, check_verifiers


class TaskFolder:
    """One folder's Tasks, by full name: the folder's own, or `folder/row`."""

    def __init__(
        self,
        found: Found,
        environments: Mapping[str, Environment],
        verifiers: Mapping[str, Verifier],
        agents: Mapping[str, Agent],
    ) -> None:
        self.found = found
        self._environments = environments
        self._verifiers = verifiers
        self._agents = agents

    @functools.cached_property
    def manifest(self) -> TaskManifest:
        """Raises ProjectError with all that is wrong in task.yaml."""
        return self.found.manifest(TaskManifest)

    @property
    def has_rows(self) -> bool:
        """Whether it holds a Task a row. Raises ProjectError where task.yaml cannot be read."""
        return self.found.mentions("rows") and self.manifest.rows is not None

    @functools.cached_property
    def rows(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """Full name -> line and row. Raises ProjectError where the data file is wrong."""
        found, path = self.found, self.manifest.rows
        assert path is not None
        line = found.document.line(("rows",))
        file = inside(found.root, found.folder, path, file=found.file, line=line)
        named: dict[str, tuple[int, dict[str, Any]]] = {}
        for line, row in read_rows(file, root=found.root):
            name = row.get("name")
            if not isinstance(name, str):
                raise ProjectError([self._at_row(line, "'name' is missing; every row needs one.")])
            named[f"{found.name}/{name}"] = (line, row)
        return named

    @property
    def splits(self) -> dict[str, str | None]:
        """Every Task of the folder with its split, in order. Raises ProjectError as `rows`."""
        if not self.found.mentions("rows", "split"):
            return {self.found.name: None}
        mine = self.manifest.split
        if not self.has_rows:
            return {self.found.name: mine}
        return {name: row.get("split") or mine for name, (_, row) in self.rows.items()}

    def build(self, name: str) -> Task:
        """One Task by its full name. Raises ProjectError with its problems and those of what it names."""
        shared = self._shared
        line, row = self.rows[name] if self.has_rows else (None, None)
        try:
            values = shared if row is None else self._laid_over(shared, self._row(line, row))
            task = Task(**{**values, "name": name})
        except DefinitionError as error:
            problem = (
                self.found.problem(("setup",), str(error)) if line is None else self._at_row(line, str(error))
            )
            raise ProjectError([problem]) from None
        task._folder = self.found.folder
        return task

    def check(self) -> tuple[list[Problem], list[Problem]]:
        """Every problem, and every warning, of the folder's manifest and of all its rows."""
        try:
            problems, shared = self._resolved
        except ProjectError as error:
            return list(error.problems), []
        problems = list(problems)
        try:
            rows = self.rows if self.manifest.rows is not None else {}
        except ProjectError as error:
            return [*problems, *error.problems], []
        expected = shared["expected"] is not None
        if shared["environment"] is not None:
            found, some_expect = self._check_rows(shared, rows)
            problems.extend(found)
            expected = expected or some_expect
            if not rows and not problems:
                problems.extend(self._check_single())
        unread = expected and not problems
        return problems, self._unread(shared["verifiers"]) if unread else []

    def _check_single(self) -> tuple[Problem, ...]:
        try:
            self.build(self.found.name)
        except ProjectError as error:
            return error.problems
        return ()

    def _check_rows(
        self, shared: Mapping[str, Any], rows: Mapping[str, tuple[int, dict[str, Any]]]
    ) -> tuple[list[Problem], bool]:
        """Problems of the rows, the first ones told one by one; and whether one gives an answer key."""
        problems: list[Problem] = []
        expected = False
        for line, raw in rows.values():
            try:
                row = self._row(line, raw)
                values = self._laid_over(shared, row)
                check_setup(shared["environment"], values["setup"], f"row {row.name!r}")
                expected = expected or values["expected"] is not None
            except ProjectError as error:
                problems.extend(error.problems)
            except DefinitionError as error:
                problems.append(self._at_row(line, str(error)))
        if len(problems) > MAX_SHOWN:
            left = len(problems) - MAX_SHOWN
            problems[MAX_SHOWN:] = [Problem(problems[0].file, None, f"has {left} more problems.")]
        return problems, expected

    @property
    def _shared(self) -> dict[str, Any]:
        """What every Task of the folder is built with. Raises ProjectError."""
        problems, shared = self._resolved
        if problems:
            raise ProjectError(problems)
        return shared

    @functools.cached_property
    def _resolved(self) -> tuple[list[Problem], dict[str, Any]]:
        """Problems of the manifest and what it refers to, and what every Task is built with."""
        found, manifest = self.found, self.manifest
        findings = Findings(found, manifest)
        environment: Environment | None = None
        with findings.at("environment"):
            environment = self._environments[manifest.environment]
        verifiers: list[Verifier] = []
        for index, name in enumerate(manifest.verifiers):
            with findings.at("verifiers", index):
                verifiers.append(self._verifiers[name])
        if len(verifiers) == len(manifest.verifiers):
            with findings.at("verifiers"):
                check_verifiers(verifiers, f"Task {manifest.name!r}")
        if manifest.oracle is not None and manifest.oracle not in self._agents:
            near = suggest(manifest.oracle, self._agents)
            findings.add(("oracle",), f"there is no Agent {manifest.oracle!r}; {near}")
        if manifest.resources:
            message = "a Task has no Resources of its own; list them in the environment.yaml it plays in."
            findings.add(("resources",), message)
        instructions = text(findings, ("instructions",), manifest.instructions)
        if not instructions and manifest.rows is None:
            findings.add(("instructions",), "'instructions' is empty; say what the Agent is to do.")
        return list(dict.fromkeys(findings.problems)), {
            "environment": environment,
            "verifiers": tuple(verifiers),
            "instructions": instructions,
            "setup": manifest.setup,
            "info": manifest.info,
            "expected": manifest.expected,
            "metadata": manifest.metadata,
            "limits": limits(manifest.limits),
            "split": manifest.split,
            "version": manifest.version,
            "title": manifest.title,
            "description": manifest.description,
            "oracle": manifest.oracle,
        }

    def _row(self, line: int | None, row: Mapping[str, Any]) -> TaskRow:
        try:
            return TaskRow.model_validate(row)
        except ValidationError as error:
            raise ProjectError(
                [self._at_row(line, message) for _, message in explain(error, TaskRow)]
            ) from None

    def _laid_over(self, shared: Mapping[str, Any], row: TaskRow) -> dict[str, Any]:
        values = dict(shared)
        if row.setup:
            values["setup"] = {
                app: {**shared["setup"].get(app, {}), **row.setup.get(app, {})}
                for app in {**shared["setup"], **row.setup}
            }
        if "expected" in row.model_fields_set:
            values["expected"] = row.expected
        for key in ("instructions", "info", "split"):
            if getattr(row, key) is not None:
                values[key] = getattr(row, key)
        if not values["instructions"]:
            raise DefinitionError(f"row {row.name!r} has no instructions; write them here or in task.yaml.")
        return values

    def _at_row(self, line: int | None, message: str) -> Problem:
        path = self.found.folder / str(self.manifest.rows)
        return Problem(path.relative_to(self.found.root).as_posix(), line, message)

    def _unread(self, verifiers: tuple[Verifier, ...]) -> list[Problem]:
        """A warning where an answer key is given and no Verifier's code reads one."""
        for verifier in verifiers:
            functions = verifier.functions()
            if not functions:
                return []
            for function in functions.values():
                file = origin(function).file
                if file is None or ".expected" in _source(file):
                    return []
        message = "'expected' is given, and no Verifier reads `.expected`; use it or leave it out."
        key = "expected" if "expected" in self.found.document.data else "rows"
        return [self.found.problem((key,), message)]


def _source(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as source:
            return source.read()
    except (OSError, UnicodeDecodeError):
        return ".expected"
