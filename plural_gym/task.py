"""Task: one assignment in an Environment, graded by Verifiers; and thousands of them as rows."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, time
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError, model_validator
from pydantic_core import ErrorDetails

from plural_gym import kinds
from plural_gym.app import AppDeclaration
from plural_gym.environment import Environment, Limits
from plural_gym.errors import DefinitionError, UnknownName, suggest
from plural_gym.identity import content_hash
from plural_gym.step import TaskView
from plural_gym.verifier import Verifier, check_verifiers
from plural_gym.word import Word

Loc = tuple[int | str, ...]


class Task(Word):
    """One assignment: instructions, the world it happens in, how the world starts, and who grades it.

    An Agent sees `instructions` and what actions return. Everything else is for Apps and Verifiers.

    Raises:
        DefinitionError: two Verifiers of one name, none that scores, or a setup that does not fit the State.
    """

    name: str = Field(min_length=1)
    """Unique in its project; rows of a folder are named `folder/row`."""
    instructions: str
    """All that the Agent is told beforehand."""
    environment: Environment
    verifiers: tuple[Verifier, ...]
    setup: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """App -> field -> value: State the world starts with."""
    info: Any = Field(default_factory=dict)
    """Facts about the case, any JSON."""
    expected: Any = None
    """The answer key."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    limits: Limits | None = None
    """Lowers the Environment's limits."""
    split: str | None = None
    """Such as `train` or `test`."""
    version: str = "0.1.0"
    title: str = ""
    description: str = ""
    oracle: str | None = None
    """Name of an Agent known to solve it; run by `plural task validate --run`."""

    _folder: Path | None = PrivateAttr(default=None)
    _view: TaskView | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _holds_together(self) -> "Task":
        for field in ("name", "instructions", "setup", "info", "expected", "metadata"):
            wrong = _not_json(getattr(self, field), field)
            if wrong is not None:
                raise DefinitionError(f"Task {self.name!a}: {wrong}; give plain JSON values.")
        check_verifiers(self.verifiers, f"Task {self.name!r}")
        check_setup(self.environment, self.setup, f"Task {self.name!r}")
        return self

    @property
    def view(self) -> TaskView:
        """What Apps and Verifiers see of it."""
        if self._view is None:
            self._view = TaskView(self.name, self.instructions, self.info, self.metadata, self.expected)
        return self._view

    @property
    def folder(self) -> Path | None:
        """Its folder in a project; None where it was built in Python."""
        return self._folder

    @property
    def effective_limits(self) -> Limits:
        """The Environment's limits, lowered by the Task's."""
        return self.environment.limits.lowered(self.limits)

    @property
    def content_hash(self) -> str:
        """Identity of the assignment, Environment and Verifiers included."""
        return content_hash(
            "task",
            {
                "instructions": self.instructions,
                "environment": self.environment.content_hash,
                "verifiers": [
                    {"name": verifier.name, "hash": verifier.content_hash} for verifier in self.verifiers
                ],
                "setup": self.setup,
                "info": self.info,
                "expected": self.expected,
                "metadata": self.metadata,
                "limits": None if self.limits is None else self.limits.model_dump(exclude_unset=True),
            },
        )


_MAX_DEPTH = 100
"""Levels that a value of a Task may have; it travels inside messages and records that have some more."""


def _not_json(value: Any, place: str, depth: int = 0) -> str | None:
    """What of a value has no JSON form, and where; None where all of it has one."""
    if depth > _MAX_DEPTH:
        return f"{place.partition('.')[0]} is nested too deeply or contains itself"
    kind = type(value)
    if value is None or kind is bool or kind is int:
        return None
    if isinstance(value, str):
        return None if _encodable(value) else f"{place} is {ascii(value)[:80]}, which no file can hold"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{place} is {value}, which JSON does not have"
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not (isinstance(key, str) and _encodable(key)):
                return f"{place} has the key {ascii(key)[:80]}, which is no JSON text"
            if (wrong := _not_json(item, f"{place}.{key}", depth + 1)) is not None:
                return wrong
        return None
    if isinstance(value, list | tuple):
        found = (_not_json(item, f"{place}.{index}", depth + 1) for index, item in enumerate(value))
        return next((wrong for wrong in found if wrong is not None), None)
    if isinstance(value, date | time | Enum):
        return None
    return f"{place} is a {kind.__name__}, which JSON does not have"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_setup(environment: Environment, setup: Mapping[str, Mapping[str, Any]], where: str) -> None:
    """Hold a setup against the Apps' States before anything runs.

    Raises:
        DefinitionError: an App, a field or a value that does not fit, all of them in one message.
    """
    faults = setup_faults(environment.declarations, setup)
    if faults:
        raise DefinitionError(f"{where}: " + " ".join(sentence for _, sentence in faults))


def setup_faults(
    apps: Mapping[str, AppDeclaration | None], setup: Mapping[str, Mapping[str, Any]]
) -> list[tuple[Loc, str]]:
    """What of a setup does not fit the Apps' States: where in the setup, and a sentence.

    `apps`: the Environment's; of an App that is None nothing is known, and nothing said.
    """
    faults: list[tuple[Loc, str]] = []
    for app, fields in setup.items():
        if app not in apps:
            faults.append(((app,), f"setup names App {app!r}; {suggest(app, apps)}"))
            continue
        declaration = apps[app]
        if declaration is None:
            continue
        kind = kinds.load("plural.apps", declaration.kind)
        try:
            kind.check_setup(declaration, fields)
        except ValidationError as error:
            known = kind.setup_fields(declaration)
            for item in error.errors(include_url=False):
                loc = (app, *item["loc"])
                faults.append((loc, f"setup {'.'.join(map(str, loc))}: {_misfit(item, known)}"))
        except DefinitionError as error:
            faults.append(((app,), str(error)))
    return faults


_WANTED = {
    "int": "be an integer",
    "float": "be a number",
    "bool": "be true or false",
    "string": "be text",
    "list": "be a list",
    "dict": "be a mapping",
    "model": "be a mapping",
}
"""What a value must be, by how pydantic's error types begin, where they go on `_type` or `_parsing`."""


def _misfit(detail: ErrorDetails, known: Collection[str] | None) -> str:
    """What is wrong with one value of a setup. `known`: the State's fields, where they can be told."""
    kind, loc, message = detail["type"], detail["loc"], detail["msg"]
    if kind == "missing":
        return "is missing, and has no default; give it a value."
    if kind == "extra_forbidden":
        if len(loc) > 1:
            return f"there is no field {loc[-1]!r} here; remove it."
        near = "remove it." if known is None else suggest(str(loc[0]), known)
        return f"the State has no field {loc[0]!r}; {near}"
    wanted = _WANTED.get(kind.partition("_")[0]) if kind.endswith(("_type", "_parsing", "_float")) else None
    if wanted is not None:
        said = f"must {wanted}"
    elif kind in ("value_error", "assertion_error"):
        said = str(detail["ctx"]["error"]).removesuffix(".")
    elif message.startswith("Input should "):
        said = "must " + message.removeprefix("Input should ").partition(", unable to parse")[0]
    else:
        said = message[:1].lower() + message[1:]
    if not loc:
        return f"{said}."
    shown = repr(detail["input"])
    return f"{said}, got {shown if len(shown) <= 80 else shown[:79] + '…'}."


class TaskSet(Sequence[Task]):
    """Ordered Tasks of which each is built when it is first asked for.

    Thousands of rows cost one mapping; the Environment and Verifiers are shared by all.
    """

    def __init__(
        self,
        names: Sequence[str],
        build: Callable[[str], Task],
        splits: Mapping[str, str | None] | None = None,
    ) -> None:
        self.names = tuple(names)
        self._build = build
        self._built: dict[str, Task] = {}
        self._splits = splits or {}
        self._position = {name: index for index, name in enumerate(self.names)}
        self._root: str | None = None
        """The folder of the project whose Tasks these are; another process reads them from there."""

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> "TaskSet":
        """A set of Tasks that exist already."""
        by_name: dict[str, Task] = {}
        for task in tasks:
            if not isinstance(task, Task):
                raise DefinitionError(f"tasks holds {task!r}, which is no Task; pass project.tasks[...].")
            if task.name in by_name:
                raise DefinitionError(f"two Tasks are named {task.name!r}.")
            by_name[task.name] = task
        made = cls(list(by_name), by_name.__getitem__, {name: task.split for name, task in by_name.items()})
        made._built = by_name
        return made

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, key: Any) -> Any:
        """One Task by position or by name; the row's name alone serves where it is unique."""
        if type(key) is int:
            name = self.names[key]
            return self._built.get(name) or self.get(name)
        if isinstance(key, slice):
            return self.choose(self.names[key])
        return self.get(key if isinstance(key, str) else self.names[key])

    def get(self, name: str) -> Task:
        """One Task by name. Raises UnknownName with the nearest name."""
        found = self._built.get(name)
        if found is None:
            full = self.full_name(name)
            found = self._built.get(full)
            if found is None:
                found = self._built[full] = self._build(full)
        return found

    def full_name(self, name: str) -> str:
        """`folder/row` from a row's name alone. Raises UnknownName where it is unknown or ambiguous."""
        if name in self._position:
            return name
        ends = [full for full in self.names if full.rpartition("/")[2] == name]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise UnknownName(f"several Tasks are named {name!r}: {', '.join(ends)}; say which.")
        short = [full.rpartition("/")[2] for full in self.names]
        raise UnknownName(f"there is no Task {name!r}; {suggest(name, {*self.names, *short})}")

    def __contains__(self, key: object) -> bool:
        if isinstance(key, Task):
            return self._built.get(key.name) is key or key.name in self._position
        try:
            return isinstance(key, str) and self.full_name(key) in self._position
        except UnknownName:
            return False

    def __iter__(self) -> Iterator[Task]:
        return (self.get(name) for name in self.names)

    def split(self, name: str) -> "TaskSet":
        """The Tasks of one split. Raises UnknownName where no Task is in it."""
        chosen = [task for task in self.names if self._splits.get(task) == name]
        if not chosen:
            known = {split for split in self._splits.values() if split}
            raise UnknownName(f"no Task is in the split {name!r}; {suggest(name, known)}")
        return self.choose(chosen)

    def choose(self, names: Sequence[str]) -> "TaskSet":
        """The Tasks of these full names, in this order; still built when first asked for."""
        chosen = TaskSet(names, self.get, {name: self._splits.get(name) for name in names})
        chosen._root = self._root
        return chosen

    def __deepcopy__(self, memo: dict[int, Any]) -> "TaskSet":
        return self  # it never changes; `gymnasium.make` copies the EnvSpec that holds it

    def __reduce__(self) -> tuple[Any, ...]:
        if self._root is None:
            return TaskSet.of, (list(self),)
        return _from_project, (self._root, self.names)

    def __repr__(self) -> str:
        return f"TaskSet({len(self)} Task{'s' * (len(self) != 1)})"


def _from_project(root: str, names: Sequence[str]) -> TaskSet:
    """A project's Tasks, in another process. The project is named, not imported: it stands above."""
    tasks: TaskSet = kinds.load("plural.faces", "plural_gym.project:Project").open(root).tasks
    return tasks.choose(names)
