"""What Gymnasium's vector environments need to know of a space whose elements vary in size.

`rl.spaces` marks its classes with `of_varying_size`: batches of differing spaces become a `Tuple`, and shared
memory is refused, since Gymnasium would not update such elements in it.
"""

from collections.abc import Sequence
from copy import deepcopy
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Space, Tuple
from gymnasium.vector.utils import (
    batch_differing_spaces,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)

_S = TypeVar("_S", bound=Space[Any])


def of_varying_size(kind: type[_S]) -> type[_S]:
    """Register a class of spaces, as a decorator."""
    batch_differing_spaces.register(kind)(_batch_differing)  # type: ignore[no-untyped-call]
    create_shared_memory.register(kind)(_refuse_create)
    read_from_shared_memory.register(kind)(_refuse_read)
    write_to_shared_memory.register(kind)(_refuse_write)
    return kind


def _batch_differing(spaces: Sequence[Space[Any]]) -> Space[Any]:
    return Tuple([deepcopy(space) for space in spaces], seed=deepcopy(spaces[0].np_random))


def _refusal(space: Space[Any]) -> CustomSpaceError:
    return CustomSpaceError(
        f"{type(space).__name__} does not fit in shared memory: its elements vary in size. "
        "Use AsyncVectorEnv(..., shared_memory=False), or make observed text an array of fixed size with "
        "plural_gym.rl.wrappers.BytesObservation."
    )


def _refuse_create(space: Space[Any], n: int = 1, ctx: ModuleType | None = None) -> NoReturn:
    raise _refusal(space)


def _refuse_read(space: Space[Any], shared_memory: Any, n: int = 1) -> NoReturn:
    raise _refusal(space)


def _refuse_write(space: Space[Any], index: int, value: Any, shared_memory: Any) -> NoReturn:
    raise _refusal(space)
