"""The worlds behind registered ids: each project is opened once in a process, its Tasks are read once.

`entry` makes environments of them; hundreds of one world then share its code, its spaces and its Tasks.
"""

import functools
import threading
from pathlib import Path

from plural_gym import shipped
from plural_gym.errors import UnknownName, suggest
from plural_gym.project import Project
from plural_gym.project_files import find_root
from plural_gym.rl.plans import Plans
from plural_gym.task import TaskSet

_opened: dict[Path, Project] = {}
_opening = threading.Lock()


def project_at(path: str | Path | None) -> Project:
    """The project at a folder or the nearest one above it, as this process opened it first.

    `path` None: the shipped worlds.
    """
    if path is None:
        return shipped.project()
    with _opening:
        root = find_root(path).resolve()
        if root not in _opened:
            _opened[root] = Project(root)
        return _opened[root]


def open_anew(path: str | Path) -> Project:
    """The project at a folder or the nearest one above it, as it is on disk now; `project_at` keeps to it."""
    root = find_root(path).resolve()
    with _opening:
        project = _opened[root] = Project(root)
        return project


@functools.lru_cache(256)
def tasks_of(project: Project, environment: str, split: str | None) -> TaskSet | None:
    """The Tasks that an Environment is played with; None where the project has none for it.

    Raises:
        UnknownName: no such Environment, or no Task of it is in the split.
        ProjectError: a Task's manifest is wrong: nobody is to train on the rest unawares.
    """
    if environment not in project.environments:
        near = suggest(environment, project.environments)
        raise UnknownName(f"{project.root} has no Environment {environment!r}; {near}")
    found = project.tasks_of(environment, split, strict=True)
    return found if len(found) else None


@functools.lru_cache(256)
def plans_of(project: Project, environment: str, split: str | None) -> Plans:
    """What episodes of these Tasks start from, with the Tasks' own Verifiers."""
    return Plans(project.environments[environment], tasks_of(project, environment, split), None)
