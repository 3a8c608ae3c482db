"""Project: the folder that holds project.yaml and one subfolder a resource; its words, by name.

The command line, the SDK and the registered ids read the same folder through here. Everything is lazy: names
come from folders, a manifest is read and its code loaded when the word is first asked for, a row becomes a
Task when it is played. `validate` reads everything and tells every problem at once.
"""

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from plural_gym import kinds
from plural_gym.agent import Agent
from plural_gym.app import AppDeclaration
from plural_gym.benchmark import Benchmark
from plural_gym.environment import Environment
from plural_gym.errors import PluralError, Problem, ProjectError, UnknownName, suggest
from plural_gym.harness import Harness, as_harness
from plural_gym.manifest import Loc
from plural_gym.project_files import WORDS, Found, Layout, find_root
from plural_gym.project_tasks import TaskFolder
from plural_gym.project_words import (
    build_agent,
    build_app,
    build_benchmark,
    build_environment,
    build_harness,
    build_verifier,
    declared_apps,
)
from plural_gym.task import Task, TaskSet
from plural_gym.verifier import Verifier

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class Report:
    """What `validate` found."""

    problems: tuple[Problem, ...]
    """What keeps the project, or a part of it, from running."""
    warnings: tuple[Problem, ...]
    """What runs, and is likely not meant."""

    @property
    def ok(self) -> bool:
        """Whether there is no problem; warnings may remain."""
        return not self.problems


class Resources(Mapping[str, W], Generic[W]):
    """The resources of one word by name, each built when first asked for and then kept."""

    def __init__(self, layout: Layout, word: str, build: Callable[[Found], W], lock: threading.RLock) -> None:
        self._layout, self._word, self._build, self._lock = layout, word, build, lock
        self._built: dict[str, W] = {}

    def __getitem__(self, name: str) -> W:
        """One word. Raises UnknownName with the nearest name, ProjectError where its files are wrong."""
        with self._lock:
            if name not in self._built:
                if name not in self:
                    title = WORDS[self._word][0].capitalize()
                    raise UnknownName(f"there is no {title} {name!r}; {suggest(name, self)}")
                self._built[name] = self._build(self._layout.one(self._word, name))
            return self._built[name]

    def __contains__(self, name: object) -> bool:
        return name in self._layout.resources(self._word)

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.resources(self._word))

    def __len__(self) -> int:
        return len(self._layout.resources(self._word))

    def __repr__(self) -> str:
        return f"{self._word}({', '.join(self)})"


class ProjectTasks(TaskSet):
    """Every Task of a project, in the order of folders and rows.

    A task folder that cannot be read stands here under its own name; asking for it tells its problems.
    """

    def __init__(
        self, names: Mapping[str, str | None], build: Callable[[str], Task], broken: set[str], root: Path
    ) -> None:
        super().__init__(list(names), build, names)
        self._broken = broken
        self._root = str(root)

    def full_name(self, name: str) -> str:
        try:
            return super().full_name(name)
        except UnknownName as error:
            folder = name.partition("/")[0]
            if folder in self._broken:
                self._build(folder)  # raises what is wrong with it
            if self._broken:
                unread = ", ".join(sorted(self._broken))
                raise UnknownName(f"{error} Tasks of {unread} could not be read.") from None
            raise

    def __contains__(self, key: object) -> bool:
        try:
            return super().__contains__(key)
        except ProjectError:
            return False


class Project:
    """A folder of resources: words by name, and the Tasks.

    Raises:
        ProjectError: project.yaml itself is wrong. Other files are read when they are needed.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()
        """The folder that holds project.yaml."""
        self._layout = layout = Layout(self.root)
        self._lock = lock = threading.RLock()
        self.name = layout.manifest.name
        self.version = layout.manifest.version
        self.apps: Mapping[str, AppDeclaration] = Resources(layout, "apps", build_app, lock)
        self.environments: Mapping[str, Environment] = Resources(
            layout, "environments", lambda found: build_environment(found, self.apps), lock
        )
        self.verifiers: Mapping[str, Verifier] = Resources(layout, "verifiers", build_verifier, lock)
        self.harnesses: Mapping[str, Harness] = Resources(layout, "harnesses", build_harness, lock)
        self.agents: Mapping[str, Agent] = Resources(
            layout, "agents", lambda found: build_agent(found, self._harness), lock
        )
        self.benchmarks: Mapping[str, Benchmark] = Resources(
            layout,
            "benchmarks",
            lambda found: build_benchmark(found, self.tasks, self._tasks_in),
            lock,
        )

    @classmethod
    def open(cls, path: Path | str = ".") -> "Project":
        """The project at `path` or in the nearest folder above it.

        Raises:
            ProjectError: there is none, or its project.yaml is wrong.
        """
        return cls(find_root(path))

    @functools.cached_property
    def tasks(self) -> TaskSet:
        """Every Task: `folder`, or `folder/row`, where the row's name alone serves if it is unique."""
        with self._lock:
            names: dict[str, str | None] = {}
            broken: set[str] = set()
            for name, folder in self._task_folders.items():
                try:
                    names.update(folder.splits)
                except ProjectError:
                    names[name] = None
                    broken.add(name)
            return ProjectTasks(names, self._build_task, broken, self.root)

    def tasks_of(self, environment: str, split: str | None = None, *, strict: bool = False) -> TaskSet:
        """The Tasks that play in one Environment, none of them built; None for `split` means all.

        Args:
            environment: its name.
            split: draw only from this split.
            strict: do not leave out Tasks whose manifest cannot be read.

        Raises:
            UnknownName: no such Environment, or no Task of it is in the split.
            ProjectError: `strict`, and a Task's manifest is wrong; with every problem.
        """
        if environment not in self.environments:
            near = suggest(environment, self.environments)
            raise UnknownName(f"there is no Environment {environment!r}; {near}")
        names: list[str] = []
        problems: list[Problem] = []
        for folder in self._task_folders.values():
            try:
                if folder.manifest.environment == environment:
                    names.extend(folder.splits)
            except ProjectError as error:
                problems += error.problems
        if strict and problems:
            raise ProjectError(problems)
        found = self.tasks.choose(names)
        return found if split is None else found.split(split)

    def validate(self) -> Report:
        """Everything that is wrong in any file of the project, each with what would fix it.

        Loads all code and holds every row to its Environment; runs no App.
        """
        problems: dict[Problem, None] = {}
        warnings: dict[Problem, None] = {}
        mappings: tuple[Mapping[str, Any], ...] = (
            self.apps,
            self.environments,
            self.verifiers,
            self.harnesses,
            self.agents,
        )
        for mapping in mappings:
            problems.update(dict.fromkeys(_problems(mapping)))
        problems.update(dict.fromkeys(self._check_actions()))
        warnings.update(dict.fromkeys(self._idle_apps()))
        for folder in self._task_folders.values():
            found, likely = folder.check()
            problems.update(dict.fromkeys(found))
            warnings.update(dict.fromkeys(likely))
        problems.update(dict.fromkeys(_problems(self.benchmarks)))
        problems.update(dict.fromkeys(self._layout.problems))
        problems.update(dict.fromkeys(self._layout.markers()))
        return Report(_in_order(problems), _in_order(warnings))

    @functools.cached_property
    def _task_folders(self) -> dict[str, TaskFolder]:
        return {
            name: TaskFolder(found, self.environments, self.verifiers, self.agents, self._apps_of)
            for name, found in self._layout.resources("tasks").items()
        }

    def _apps_of(self, environment: str) -> Mapping[str, AppDeclaration | None] | None:
        """The Apps of an Environment, whatever else is wrong with it; None where it names none."""
        found = self._layout.one("environments", environment)
        return declared_apps(found, self.apps) if "apps" in found.document.data else None

    def _build_task(self, name: str) -> Task:
        with self._lock:
            folder = name.partition("/")[0]
            self._layout.one("tasks", folder)
            return self._task_folders[folder].build(name)

    def _tasks_in(self, folder: str) -> TaskSet:
        """The Tasks of one task folder."""
        if folder not in self._task_folders:
            raise UnknownName(f"there is no Task folder {folder!r}; {suggest(folder, self._task_folders)}")
        return self.tasks.choose(list(self._task_folders[folder].splits))

    def _harness(self, name: str, options: Mapping[str, Any]) -> Harness:
        """A Harness of the project or of a kind, with an Agent's options."""
        if name in self.harnesses:
            found = self._layout.one("harnesses", name)
            return build_harness(found, options) if options else self.harnesses[name]
        known = kinds.names("plural.harnesses")
        if ":" not in name and name not in known:
            near = suggest(name, [*self.harnesses, *known])
            raise UnknownName(f"there is no Harness {name!r}, as a folder or a kind; {near}")
        return as_harness(name, options)

    def _check_actions(self) -> Iterator[Problem]:
        """Actions that cannot be offered, such as one without type hints."""
        for name, found in self._layout.resources("environments").items():
            try:
                environment = self.environments[name]
            except ProjectError:
                continue
            for app, declaration in environment.declarations.items():
                try:
                    kind = kinds.load("plural.apps", declaration.kind)
                    kind.describe(declaration)
                    kind.setup_fields(declaration)
                except PluralError as error:
                    yield found.problem(("apps", app), str(error))

    def _idle_apps(self) -> Iterator[Problem]:
        """Apps without any action, where somebody has forgotten a mark more often than not."""
        declared: list[tuple[Found, Loc, AppDeclaration]] = []
        for name, found in self._layout.resources("apps").items():
            with suppress(ProjectError):
                declared.append((found, ("class",), self.apps[name]))
        for name, found in self._layout.resources("environments").items():
            with suppress(ProjectError):
                apps = self.environments[name].declarations
                declared += [(found, ("apps", app), declaration) for app, declaration in apps.items()]
        for found, where, declaration in declared:
            with suppress(PluralError):
                code = declaration.options.get("class")
                if code is not None and not kinds.load("plural.apps", declaration.kind).describe(declaration):
                    said = f"App class {code.__name__!r} offers no action; mark a method with @action."
                    yield found.problem(where, said)

    def __repr__(self) -> str:
        return f"Project({self.name!r}, {str(self.root)!r})"


def _problems(resources: Mapping[str, Any]) -> Iterator[Problem]:
    for name in resources:
        try:
            resources[name]
        except ProjectError as error:
            yield from error.problems


def _in_order(problems: Mapping[Problem, None]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.file, problem.line or 0)))
