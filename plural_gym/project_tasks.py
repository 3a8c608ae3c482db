"""The Tasks of one task folder: a single one, or one for each row of its data file.

`project.py` asks for names, which cost one look at the manifest and the rows, and for Tasks one by one; what
they share is built once. `check` holds every row to the Environment without keeping a Task.
"""

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import ValidationError

from plural_gym.agent import Agent
from plural_gym.answer_key import reads_expected
from plural_gym.app import AppDeclaration
from plural_gym.environment import Environment
from plural_gym.errors import DefinitionError, Problem, ProjectError, suggest
from plural_gym.manifest import inside
from plural_gym.manifest_errors import explain
from plural_gym.manifest_models import TaskManifest, TaskRow
from plural_gym.manifest_partial import Partial, read_row
from plural_gym.project_files import Findings, Found
from plural_gym.project_words import limits, text
from plural_gym.rows import Row, read_rows, scan_rows, shortened
from plural_gym.task import Task, setup_faults
from plural_gym.verifier import Verifier, check_verifiers

AppsOf = Callable[[str], Mapping[str, AppDeclaration | None] | None]
Shared = dict[str, Any]


class TaskFolder:
    """One folder's Tasks, by full name: the folder's own, or `folder/row`."""

    def __init__(
        self,
        found: Found,
        environments: Mapping[str, Environment],
        verifiers: Mapping[str, Verifier],
        agents: Mapping[str, Agent],
        apps_of: AppsOf | None = None,
    ) -> None:
        """`apps_of`: the Apps of an Environment that is wrong elsewhere, None for those that are wrong."""
        self.found = found
        self._apps_of = apps_of
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
        rows = list(read_rows(file, root=found.root))
        unnamed = [self._at_row(line, _UNNAMED) for line, row in rows if not isinstance(row.get("name"), str)]
        if unnamed:
            raise ProjectError(shortened(unnamed))
        return {f"{found.name}/{row['name']}": (line, row) for line, row in rows}

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
            found = self._folder_misfits()
            if line is not None and row is not None:
                found = self._row_misfits(line, row.get("setup") or {}, found) or found
            whole = self.found.problem(("setup",), str(error)) if line is None else None
            raise ProjectError(found or [whole or self._at_row(line, str(error))]) from None
        task._folder = self.found.folder
        return task

    def check(self) -> tuple[list[Problem], list[Problem]]:
        """Every problem, and every warning, of the folder's manifest and of all its rows."""
        try:
            problems, shared = self._resolved
            misfits = self._folder_misfits()
            problems = [*problems, *self._unknown_oracle(), *misfits]
            rows, wrong = self._scanned()
        except ProjectError as error:
            return list(error.problems), []
        expected = shared["expected"] is not None
        for line, raw in rows:
            row, found = self._checked_row(line, raw, misfits)
            wrong += found
            expected = expected or (row is not None and row.expected is not None)
        if wrong:
            problems += shortened(dict.fromkeys(wrong))
        if not problems and not rows:
            problems += self._check_single()
        unread = expected and not problems
        return problems, self._unread(shared["verifiers"]) if unread else []

    @property
    def _partial(self) -> Partial[TaskManifest]:
        return self.found.partial(TaskManifest)

    def _scanned(self) -> tuple[list[Row], list[Problem]]:
        """The rows that can be read, and what is wrong with the file."""
        found, path = self.found, self._partial.manifest.rows
        if path is None:
            return [], []
        line = self._partial.document.line(("rows",))
        try:
            file = inside(found.root, found.folder, path, file=found.file, line=line)
        except ProjectError as error:
            return [], list(error.problems)
        return scan_rows(file, root=found.root)

    def _unknown_oracle(self) -> list[Problem]:
        """The oracle that is no Agent here. Playing a Task needs none, so only `check` tells."""
        oracle = self._partial.manifest.oracle
        if oracle is None or oracle in self._agents:
            return []
        message = f"there is no Agent {oracle!r}; {suggest(oracle, self._agents)}"
        return [self._partial.document.problem(("oracle",), message)]

    def _folder_misfits(self) -> list[Problem]:
        """What does not fit of the setup that task.yaml itself writes."""
        shared = self._resolved[1]
        if shared["apps"] is None:
            return []
        alone = "rows" not in self.found.document.data and "setup" not in self._partial.dropped
        document = self._partial.document
        return [
            document.problem(("setup", *loc), sentence)
            for loc, sentence in setup_faults(shared["apps"], shared["setup"])
            # What it leaves out may stand in the rows.
            if alone or document.place(("setup", *loc)) == ("setup", *loc)
        ]

    def _row_misfits(
        self, line: int | None, setup: Mapping[str, Mapping[str, Any]], folder: Collection[Problem]
    ) -> list[Problem]:
        """What does not fit of the folder's setup with a row's laid over it, `folder` left out."""
        shared = self._resolved[1]
        if shared["apps"] is None:
            return []
        told = {problem.message for problem in folder}
        faults = setup_faults(shared["apps"], _overlaid(shared["setup"], setup))
        return [self._at_row(line, sentence) for _, sentence in faults if sentence not in told]

    def _check_single(self) -> tuple[Problem, ...]:
        try:
            self.build(self.found.name)
        except ProjectError as error:
            return error.problems
        return ()

    def _checked_row(
        self, line: int, raw: dict[str, Any], misfits: Collection[Problem]
    ) -> tuple[TaskRow | None, list[Problem]]:
        """What could be read of a row, and everything that is wrong with it; not the folder's `misfits`."""
        problems: list[Problem] = []
        try:
            row = TaskRow.model_validate(raw)
        except ValidationError:
            named = isinstance(raw.get("name"), str)
            problems = [] if named else [self._at_row(line, _UNNAMED)]
            given = raw if named else {**raw, "name": "unnamed"}
            try:
                partial = read_row(self._rows_file, line, given, TaskRow)
            except ProjectError as error:
                return None, [*problems, *error.problems]
            row, problems = partial.manifest, [*problems, *partial.problems]
        lacking = row.instructions == "" or raw.get("instructions") is None
        if lacking and self._resolved[1]["instructions"] == "":
            problems.append(self._at_row(line, _uninstructed(raw.get("name"))))
        return row, problems + self._row_misfits(line, row.setup, misfits)

    @property
    def _shared(self) -> Shared:
        """What every Task of the folder is built with. Raises ProjectError."""
        problems, shared = self._resolved
        if problems:
            raise ProjectError(problems)
        return {key: value for key, value in shared.items() if key != "apps"}

    @functools.cached_property
    def _resolved(self) -> tuple[list[Problem], Shared]:
        """Problems of the manifest and what it refers to, and what every Task is built with.

        What could not be read of it is left out; `apps` are the Environment's as far as they are known.
        """
        findings = Findings(self.found, TaskManifest)
        manifest = findings.manifest
        environment = apps = None
        if manifest.environment is not None:
            with findings.at("environment"):
                environment = self._environments[manifest.environment]
            apps = self._apps(manifest.environment, environment)
        verifiers = self._graders(findings)
        if manifest.resources:
            message = "a Task has no Resources of its own; list them in the environment.yaml it plays in."
            findings.add(("resources",), message)
        instructions = manifest.instructions
        if instructions is not None:
            instructions = text(findings, ("instructions",), instructions)
            if not instructions and "rows" not in self.found.document.data:
                findings.add(("instructions",), "'instructions' is empty; say what the Agent is to do.")
        return list(dict.fromkeys(findings.problems)), {
            "environment": environment,
            "apps": apps,
            "verifiers": verifiers,
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

    def _graders(self, findings: Findings[TaskManifest]) -> tuple[Verifier, ...]:
        """The Verifiers that can be loaded; of all together it is told whether they do."""
        names = findings.manifest.verifiers or ()
        verifiers: list[Verifier] = []
        for index, name in enumerate(names):
            with findings.at("verifiers", index):
                verifiers.append(self._verifiers[name])
        if names and len(verifiers) == len(names) and "verifiers" not in findings.dropped:
            with findings.at("verifiers"):
                check_verifiers(verifiers, f"Task {self.found.name!r}")
        return tuple(verifiers)

    def _apps(self, name: str, environment: Environment | None) -> Mapping[str, AppDeclaration | None] | None:
        """The Environment's Apps, also where something else is wrong with it; None where there are none."""
        if environment is not None:
            return environment.declarations
        if self._apps_of is None:
            return None
        try:
            return self._apps_of(name)
        except (ProjectError, KeyError):
            return None

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
            values["setup"] = _overlaid(shared["setup"], row.setup)
        if "expected" in row.model_fields_set:
            values["expected"] = row.expected
        for key in ("instructions", "info", "split"):
            if getattr(row, key) is not None:
                values[key] = getattr(row, key)
        if not values["instructions"]:
            raise DefinitionError(_uninstructed(row.name))
        return values

    def _at_row(self, line: int | None, message: str) -> Problem:
        return Problem(self._rows_file, line, message)

    @property
    def _rows_file(self) -> str:
        path = self.found.folder / str(self._partial.manifest.rows)
        return path.relative_to(self.found.root).as_posix()

    def _unread(self, verifiers: tuple[Verifier, ...]) -> list[Problem]:
        """A warning where an answer key is given and no Verifier's code reads one."""
        if any(map(reads_expected, verifiers)):
            return []
        message = "'expected' is given, and no Verifier reads `.expected`; use it or leave it out."
        key = "expected" if "expected" in self.found.document.data else "rows"
        return [self.found.problem((key,), message)]


def _overlaid(
    setup: Mapping[str, Mapping[str, Any]], row: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The folder's setup with a row's laid over it."""
    return {app: {**setup.get(app, {}), **row.get(app, {})} for app in {**setup, **row}}


_UNNAMED = "'name' is missing; every row needs one."


def _uninstructed(name: Any) -> str:
    row = f"row {name!r}" if isinstance(name, str) else "the row"
    return f"{row} has no instructions; write them here or in task.yaml."
