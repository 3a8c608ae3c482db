"""`plural_gym.make`, `make_vec` and `seed_all`: Gymnasium's ways to an environment, with ours beside them.

`gymnasium.make` and `gymnasium.make_vec` take the same ids and give the stock wrappers alone.
"""

import difflib
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, VectorizeMode

from plural_gym.errors import UnknownName, UsageError
from plural_gym.rl import party_ids
from plural_gym.rl.registration import register_shipped
from plural_gym.rl.wrappers.call_style import CallStyle

Wrap = Callable[[gym.Env[Any, Any]], gym.Wrapper[Any, Any, Any, Any]]


def make(id: str | EnvSpec, *, wrappers: Sequence[Wrap] = (), **options: Any) -> CallStyle:
    """What `gymnasium.make` makes, in a CallStyle: it takes `step(name, **arguments)` as well.

    Args:
        id: a registered id, such as "plural/Wordle-v0", or an EnvSpec.
        wrappers: what goes between Gymnasium's wrappers and CallStyle, the innermost first.
        options: as `gymnasium.make` and GymEnv take them: `task`, `split`, `render_mode`, …

    Raises:
        UnknownName: no such id; with the nearest.
        UsageError: a wrapper that is none.
    """
    _callable(wrappers)
    env: Any = _found(lambda: gym.make(id, **options), id)
    for wrapper in wrappers:
        env = wrapper(env)
    return env if isinstance(env, CallStyle) else CallStyle(env)


def make_vec(
    id: str | EnvSpec,
    num_envs: int = 1,
    vectorization_mode: VectorizeMode | str | None = None,
    vector_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[Wrap] | None = None,
    **options: Any,
) -> Any:
    """What `gymnasium.make_vec` makes, in the mode that suits: a VectorGymEnv unless another is asked for.

    Args:
        id: a registered id, such as "plural/Wordle-v0", or an EnvSpec.
        num_envs: how many members.
        vectorization_mode: "vector_entry_point", "sync" or "async". None: the first, or "sync" where wrappers
            or `vector_kwargs` are given, which the first does not take.
        vector_kwargs: for SyncVectorEnv or AsyncVectorEnv. The latter is made without shared memory unless
            this says otherwise: text has no fixed size.
        wrappers: what goes around each member, the innermost first.
        options: as GymEnv takes them, and VectorGymEnv where it is one.

    Raises:
        UnknownName: no such id; with the nearest.
        UsageError: a wrapper that is none.
    """
    _callable(wrappers or ())
    given = dict(vector_kwargs or {})
    wrapped = bool(wrappers) or (isinstance(id, EnvSpec) and bool(id.additional_wrappers))
    if vectorization_mode is None and (wrapped or given):
        vectorization_mode = VectorizeMode.SYNC
    if vectorization_mode in (VectorizeMode.ASYNC, VectorizeMode.ASYNC.value):
        given.setdefault("shared_memory", False)
    return _found(
        lambda: gym.make_vec(id, num_envs, vectorization_mode, given, list(wrappers or ()), **options), id
    )


def seed_all(env: Any, seed: int) -> tuple[Any, dict[str, Any]]:
    """Seed an environment and its spaces, which `reset` leaves alone; returns what `reset` returns.

    Two environments that were seeded alike play alike, actions drawn by `action_space.sample()` included.

    Args:
        env: a `gymnasium.Env` or `VectorEnv`.
        seed: a whole number from 0, numpy's included.
    """
    seed = operator.index(seed)
    for name in ("action_space", "observation_space", "single_action_space", "single_observation_space"):
        space = getattr(env, name, None)
        if space is not None:
            space.seed(seed)
    observation, info = env.reset(seed=seed)
    return observation, info


def _callable(wrappers: Sequence[Any]) -> None:
    for place, wrapper in enumerate(wrappers):
        if not callable(wrapper):
            raise UsageError(
                f"wrappers[{place}] is {wrapper!r}; give a wrapper's class, or a function that takes an "
                "environment and returns it wrapped."
            )


def _found(made: Callable[[], Any], id: str | EnvSpec) -> Any:
    """What was made, or for an id that is unknown an error with the nearest one."""
    register_shipped()
    try:
        return made()
    except (gym.error.NameNotFound, gym.error.NamespaceNotFound):
        asked = str(id).removeprefix("plural_gym:")
        if party_ids.given_for(asked) is not None:
            said = f"{asked!r} is a party; make it with plural_gym.make_aec"
            raise UnknownName(f"{said}, and play one seat of it in a SeatEnv.") from None
        raise UnknownName(f"there is no environment {id!r}; {_nearest(asked)}") from None


def _nearest(asked: str) -> str:
    ids = [*(id for id in gym.registry if id.startswith("plural/")), *party_ids.known()]
    known = {_bare(id): id for id in ids}
    near = difflib.get_close_matches(_bare(asked), known, n=1)
    if near:
        return f"did you mean {known[near[0]]!r}?"
    listed = ", ".join(sorted(known.values()))
    return f"it has: {listed}. plural_gym.register_project(path) registers those of a project."


def _bare(id: str) -> str:
    """The name in an id, without namespace, version, case and hyphens."""
    name = id.rpartition(":")[2].rpartition("/")[2]
    return name.rpartition("-v")[0].casefold().replace("-", "") or name.casefold().replace("-", "")
