"""What a vector environment is given, checked: actions, seeds, masks and options, before a member is touched.

Every function says in its message what would do; `rl.vector` calls them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from plural_gym.errors import UsageError, suggest
from plural_gym.rl.value_codecs import shown


def check_batch(actions: Any, size: int) -> None:
    """Hold a batch to one action a member.

    Raises:
        UsageError: no sequence, or of another length.
    """
    if isinstance(actions, str | bytes | Mapping) or not isinstance(actions, Sequence | np.ndarray):
        raise UsageError(f"step takes a sequence of {size} actions, one a member, not {shown(actions)}.")
    if len(actions) != size:
        raise UsageError(f"step takes {size} actions, one a member, got {len(actions)}.")


def seeds_of(seed: Any, size: int) -> Sequence[int | None]:
    """One seed a member: of a whole number itself and those that follow it, of a list its items.

    Raises:
        UsageError: neither, nor None; or a list of another length.
    """
    if seed is None:
        return [None] * size
    if _whole(seed):
        return [int(seed) + place for place in range(size)]
    if isinstance(seed, str | bytes) or not isinstance(seed, Sequence | np.ndarray):
        raise UsageError(f"seed is a whole number, a list with one a member, or None, not {shown(seed)}.")
    if len(seed) != size:
        raise UsageError(f"seed lists one for each of {size} members, got {len(seed)}.")
    for one in seed:
        if one is not None and not _whole(one):
            raise UsageError(f"seed lists whole numbers or None, not {shown(one)}.")
    return [None if one is None else int(one) for one in seed]


def masked(mask: Any, size: int) -> list[int]:
    """The members that `options["reset_mask"]` has True for.

    Raises:
        UsageError: no bool array of shape (size,), or True for none.
    """
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (size,):
        kind = f"{mask.dtype} of shape {mask.shape}" if isinstance(mask, np.ndarray) else shown(mask)
        raise UsageError(f"options['reset_mask'] is a bool array of shape ({size},), not {kind}.")
    if not mask.any():
        raise UsageError("options['reset_mask'] has True for no member; name at least one.")
    places: list[int] = np.flatnonzero(mask).tolist()
    return places


def mode_of(mode: AutoresetMode | str) -> AutoresetMode:
    """The autoreset mode of this value. Raises UsageError where there is none."""
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = [one.value for one in AutoresetMode]
        raise UsageError(f"autoreset_mode={mode!r} is unknown; {suggest(str(mode), known)}") from None


def at_least_one(name: str, value: Any) -> int:
    """A whole number above 0. Raises UsageError for anything else."""
    if not _whole(value) or value < 1:
        raise UsageError(f"{name} is a whole number of at least 1, not {shown(value)}.")
    return int(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
