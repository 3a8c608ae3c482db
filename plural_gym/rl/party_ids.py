"""Parties under their ids: `plural_gym.make_aec("plural/KuhnPoker-v0")`, and PettingZoo's own registry.

Registers names only; a world is loaded when somebody makes it. `project_ids` adds those of a project.
"""

import sys
from collections.abc import Sequence
from typing import Any

from plural_gym.errors import UnknownName, UsageError, suggest
from plural_gym.rl import worlds

SHIPPED = {
    "plural/KuhnPoker-v0": "kuhn-poker",
    "plural/LeducPoker-v0": "leduc-poker",
    "plural/PriceTalks-v0": "price-talks",
    "plural/Lanterns-v0": "lanterns",
}
"""Id -> Environment."""
_parties: dict[str, dict[str, Any]] = {}
"""Id -> what `aec` and `parallel` take."""


def register(id: str, environment: str, project: str | None = None) -> None:
    """Register a party; takes the place of what has this id. With PettingZoo too, once that is imported."""
    _parties[id] = {"environment": environment, **({} if project is None else {"project": project})}
    tell_pettingzoo()


def register_shipped() -> None:
    """Register the shipped parties; ids that are registered already stay as they are."""
    for id, environment in SHIPPED.items():
        if id not in _parties:
            _parties[id] = {"environment": environment}
    tell_pettingzoo()


def forget(project: str, kept: Sequence[str]) -> None:
    """Take out the ids of a project that it has no more."""
    for id in [id for id, given in _parties.items() if given.get("project") == project and id not in kept]:
        del _parties[id]


def known() -> list[str]:
    """Every party's id."""
    register_shipped()
    return list(_parties)


def given_for(id: str) -> dict[str, Any] | None:
    """What `aec` and `parallel` take for an id; None where it is no party's."""
    register_shipped()
    return _parties.get(id)


def tell_pettingzoo() -> None:
    """Put every party into PettingZoo's registry, where that is imported and has one (from 1.27 on)."""
    registry = sys.modules.get("pettingzoo.env_registry.registration")
    if registry is None:
        return
    for kind, known in (("aec", registry.aec_registry), ("parallel", registry.parallel_registry)):
        for id, given in _parties.items():
            if id not in known or known[id].kwargs != given:
                known.pop(id, None)  # PettingZoo warns where one takes another's place
                registry.register(kind, id, f"plural_gym.rl.party_ids:{kind}", kwargs=dict(given))


def make_aec(id: str, **options: Any) -> Any:
    """The PartyEnv of a registered id, such as "plural/KuhnPoker-v0"; a `pettingzoo.AECEnv`.

    Options: as `plural_gym.rl.party_face.PartyFace` takes them, and `split`, `verifiers` by name.

    Raises:
        UnknownName: no such party; with the nearest.
    """
    return aec(**_found(id), **options)


def make_parallel(id: str, **options: Any) -> Any:
    """The PartyParallelEnv of a registered id; a `pettingzoo.ParallelEnv`. Otherwise as `make_aec`."""
    return parallel(**_found(id), **options)


def aec(environment: str, **options: Any) -> Any:
    """What PettingZoo's registry makes of an id, in its AEC form."""
    return _made("aec", environment, **options)


def parallel(environment: str, **options: Any) -> Any:
    """What PettingZoo's registry makes of an id, in its parallel form."""
    return _made("parallel", environment, **options)


def _made(
    form: str,
    environment: str,
    *,
    project: str | None = None,
    split: str | None = None,
    verifiers: Sequence[Any] | None = None,
    **options: Any,
) -> Any:
    source = worlds.project_at(project)
    tasks = worlds.tasks_of(source, environment, split)
    world = source.environments[environment]
    if world.party is None:
        raise UsageError(f"Environment {environment!r} has no party; make it with plural_gym.make.")
    graders = None
    if verifiers is not None:
        graders = [source.verifiers[one] if isinstance(one, str) else one for one in verifiers]
    make = world.aec if form == "aec" else world.parallel
    return make(tasks=tasks, verifiers=graders, **options)


def _found(id: str) -> dict[str, Any]:
    register_shipped()
    bare = id.removeprefix("plural_gym:")
    if bare not in _parties:
        raise UnknownName(f"there is no party {id!r}; {suggest(bare, _parties)}")
    return _parties[bare]
