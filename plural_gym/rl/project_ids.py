"""Ids for the Environments of a project of one's own, beside the shipped ones."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import gymnasium as gym

from plural_gym.environment import Environment
from plural_gym.errors import Problem, ProjectError, UsageError
from plural_gym.project import Project
from plural_gym.rl import party_ids, worlds
from plural_gym.rl.registration import ENTRY_POINT, gym_id, register, repeatable


def register_project(path: str | Path = ".") -> list[str]:
    """Register each Environment of a project with Gymnasium, as `plural/<its name>-v<its major version>`.

    `gymnasium.make` then takes the id, with the project's Tasks; worker processes that are given the EnvSpec
    find the project by its folder. Registering again reads the project anew: what has changed is made from
    then on, and ids that it has no more are gone. Those with a party are for `plural_gym.make_aec` and
    `make_parallel`, and for PettingZoo's own registry.

    Args:
        path: the project's folder, or one inside it.

    Returns:
        The ids, in the order of the Environments' names.

    Raises:
        ProjectError: there is no project, or its Environments are wrong; with every problem.
        UsageError: an id belongs to something else, such as another project. Nothing is registered then.
    """
    project = worlds.open_anew(path)
    root = str(project.root)
    found = {gym_id(environment): environment for environment in _environments(project)}
    for id, environment in found.items():
        _check_free(id, environment.name, root)
    parties = {id: environment.name for id, environment in found.items() if environment.party is not None}
    _forget(root, found, parties)
    for id, environment in found.items():
        if id in parties:
            party_ids.register(id, environment.name, root)
            continue
        register(
            id,
            turns=environment.limits.turns,
            kwargs={"project": root, "environment": environment.name},
            nondeterministic=not repeatable(environment),
        )
    return list(found)


def _forget(root: str, found: Collection[str], parties: Collection[str]) -> None:
    """Take out the ids of a project that it has no more."""
    party_ids.forget(root, list(parties))
    for id, spec in list(gym.registry.items()):
        if _is_ours(spec) and spec.kwargs.get("project") == root and (id not in found or id in parties):
            del gym.registry[id]


def _environments(project: Project) -> list[Environment]:
    environments: list[Environment] = []
    problems: list[Problem] = []
    for name in sorted(project.environments):
        try:
            environments.append(project.environments[name])
        except ProjectError as error:
            problems += error.problems
    if problems:
        raise ProjectError(problems)
    return environments


def _check_free(id: str, name: str, root: str) -> None:
    """Raise UsageError where an id belongs to something else than this project."""
    spec = gym.registry.get(id)
    given = party_ids.given_for(id)
    if spec is not None:
        given = spec.kwargs if _is_ours(spec) else {}
    if given is None or given.get("project") == root:
        return
    whose = f"Environment {given.get('environment')!r} of {given.get('project', 'plural_gym')}"
    if spec is not None and not _is_ours(spec):
        whose = f"made by {spec.entry_point}"
    raise UsageError(
        f"the id {id!r} is taken: it is {whose}, and the project {root} has an Environment {name!r} as well. "
        "Rename one of the two, or raise the major number of its version."
    )


def _is_ours(spec: Any) -> bool:
    return bool(spec.entry_point == ENTRY_POINT)
