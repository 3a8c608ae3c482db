"""What a registered id makes: a GymEnv, or a VectorGymEnv, of a project's Environment with its Tasks."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from plural_gym.errors import UsageError, suggest
from plural_gym.rl import worlds
from plural_gym.rl.env import GymEnv
from plural_gym.rl.plans import require_in_split
from plural_gym.rl.vector import VectorGymEnv

_ENV = frozenset(inspect.signature(GymEnv).parameters) - {"environment", "tasks"}
_VECTOR = frozenset(inspect.signature(VectorGymEnv).parameters) - {"environment", "options"} | _ENV


def make_env(
    environment: str,
    *,
    project: str | None = None,
    verifiers: Sequence[Any] | None = None,
    split: str | None = None,
    **options: Any,
) -> GymEnv:
    """A GymEnv of one Environment.

    Args:
        environment: its name in the project.
        project: the project's folder; None: the shipped worlds.
        verifiers: names of the project's Verifiers, in place of each Task's own; or what GymEnv takes.
        split: draw only from this split of the Tasks.
        options: as GymEnv takes them: `task`, `score_as_reward`, `render_mode`, …

    Raises:
        UsageError: an option that GymEnv has not.
        UnknownName: no such Environment, Verifier, Task or split.
    """
    _check(options, _ENV)
    _agree(environment, project, options.get("task"), split)
    made = GymEnv(**_world(environment, project, verifiers, split), **options)
    if verifiers is None and options.get("task") is None:
        made.plans = worlds.plans_of(worlds.project_at(project), environment, split)
    return made


def make_vector(
    environment: str,
    num_envs: int = 1,
    *,
    project: str | None = None,
    verifiers: Sequence[Any] | None = None,
    split: str | None = None,
    **options: Any,
) -> VectorGymEnv:
    """A VectorGymEnv of one Environment.

    Args:
        environment: its name in the project.
        num_envs: how many members.
        project: as `make_env` takes it.
        verifiers: as `make_env` takes them.
        split: as `make_env` takes it.
        options: as VectorGymEnv and GymEnv take them: `autoreset_mode`, `infos`, `workers`, `task`, …
    """
    _check(options, _VECTOR)
    _agree(environment, project, options.get("task"), split)
    return VectorGymEnv(num_envs=num_envs, **_world(environment, project, verifiers, split), **options)


def _agree(environment: str, project: str | None, task: Any, split: str | None) -> None:
    """Raise UnknownName where a Task is asked for that is not in the split asked for."""
    tasks = worlds.tasks_of(worlds.project_at(project), environment, None)
    if isinstance(task, str) and split is not None and tasks is not None:
        require_in_split(tasks, task, split)


def _world(
    environment: str, project: str | None, verifiers: Sequence[Any] | None, split: str | None
) -> dict[str, Any]:
    """An Environment, its Tasks and who grades them, as a GymEnv takes them."""
    source = worlds.project_at(project)
    tasks = worlds.tasks_of(source, environment, split)
    if isinstance(verifiers, str):
        raise UsageError(
            f"verifiers is a list of names, such as [{verifiers!r}], not the text {verifiers!r}."
        )
    graders = None
    if verifiers is not None:
        graders = [source.verifiers[one] if isinstance(one, str) else one for one in verifiers]
    return {"environment": source.environments[environment], "tasks": tasks, "verifiers": graders}


class _UnknownOption(UsageError, TypeError):
    """An option that there is not. TorchRL's `GymEnv` tries some, and looks for Python's own words."""


def _check(options: Mapping[str, Any], known: frozenset[str]) -> None:
    for name in options:
        if name not in known:
            raise _UnknownOption(f"unexpected keyword argument {name!r}: {suggest(name, known)}")


make_env.metadata = GymEnv.metadata  # type: ignore[attr-defined]  # where Gymnasium looks for render modes
