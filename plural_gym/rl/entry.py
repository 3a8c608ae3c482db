"""What a registered id makes: a GymEnv of a project's Environment with the project's Tasks."""

from collections.abc import Sequence
from typing import Any

from plural_gym import shipped
from plural_gym.project import Project
from plural_gym.rl.env import GymEnv


def make_env(
    environment: str, *, project: str | None = None, verifiers: Sequence[str] | None = None, **options: Any
) -> GymEnv:
    """A GymEnv of one Environment.

    Args:
        environment: its name in the project.
        project: the project's folder; None: the shipped worlds.
        verifiers: names of the project's Verifiers, in place of each Task's own.
        options: as GymEnv takes them: `task`, `split`, `score_as_reward`, `render_mode`, …
    """
    source = shipped.project() if project is None else Project.open(project)
    graders = None if verifiers is None else [source.verifiers[name] for name in verifiers]
    return GymEnv(
        source.environments[environment],
        tasks=source.tasks_of(environment),
        verifiers=graders,
        **options,
    )


make_env.metadata = GymEnv.metadata  # type: ignore[attr-defined]  # where Gymnasium looks for render modes
