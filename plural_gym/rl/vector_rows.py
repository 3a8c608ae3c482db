"""Rows: what one member of a vector environment says of one step, and batches of rows as arrays.

A row of an ordinary step comes straight from the member's Session (`ROW`), without the dicts and arrays that
a single environment returns; any other is made from what `GymEnv` returned. `infos_of` gives exactly what
Gymnasium's `VectorEnv._add_info` makes of the members' infos, one array at a time instead of one value.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plural_gym.rl.env import Answer

Row = tuple[Any, ...]
"""(text, turn, reward, terminated, truncated, info, action, error, mask, rewarding).

`rewarding` names the only Verifier with a reward, or nobody, and `info` is its status. Where `rewarding` is
None, `info` is the info of `GymEnv`, and action, error and mask are None.
"""
Columns = Sequence[Sequence[Any]]
"""Rows, column by column: ten of them."""
AddInfo = Callable[[dict[str, Any], dict[str, Any], int], dict[str, Any]]
"""`VectorEnv._add_info`."""
_REWARDS = ("rewards", "reward_status")

ROW = """
if fault is not None:
    return session.last
said = ""
if error is None:
    text = observation if observation.__class__ is str else as_text(observation)
else:
    said, text = error, as_text({"error": error})
if len(text) > max_chars or (reason is not None and scored):
    return session.last
value, status = rewards, VALUE                                    #? one
if value.__class__ is not float:                                  #? one
    value, failure = rewards[0]                                   #? one
    if failure is not None:                                       #? one
        return session.last                                       #? one
    if value is None:                                             #? one
        value, status = 0.0, NO_STATUS                            #? one
return (
    text,
    turn,
    value,                                                        #? one
    0.0,                                                          #? none
    terminated,
    truncated,
    status,                                                       #? one
    NO_STATUS,                                                    #? none
    action,
    said,
    mask,                                                         #? masked
    None,                                                         #? not masked
    rewarding,
)
"""
"""What `DirectSession.courses` answers to a vector environment: a Row, or an Outcome for `GymEnv`."""


def row_of(answer: Answer) -> Row:
    """The Row of what `GymEnv.step` returned."""
    observation, reward, terminated, truncated, info = answer
    turn = int(observation["turn"][0])
    return observation["text"], turn, reward, terminated, truncated, info, None, None, None, None


def observation_of(row: Row) -> dict[str, Any]:
    """What a single environment would show."""
    return {"text": row[0], "turn": np.array([row[1]], dtype=np.int32)}


def infos_of(
    columns: Columns, places: Sequence[int], size: int, add_info: AddInfo, full: bool
) -> dict[str, Any]:
    """The vector info of rows: for each key an array, and under `_key` where it holds.

    Args:
        columns: of one or more rows.
        places: the member of each row.
        size: how many members there are.
        add_info: adds what a GymEnv said.
        full: False for the rewards and their status alone.
    """
    verifiers = columns[9]
    if None not in verifiers:
        return _arrays(columns, places, size, full)
    plain = [index for index, names in enumerate(verifiers) if names is not None]
    infos: dict[str, Any] = {}
    if plain:
        chosen = tuple([column[index] for index in plain] for column in columns)
        infos = _arrays(chosen, [places[index] for index in plain], size, full)
    for info, names, place in zip(columns[5], verifiers, places, strict=True):
        if names is None:
            add_info(infos, info if full else {key: info[key] for key in _REWARDS}, place)
    return infos


def _arrays(columns: Columns, places: Sequence[int], size: int, full: bool) -> dict[str, Any]:
    """`infos_of` of rows that Sessions answered."""
    _, _, rewards, _, _, statuses, actions, errors, masks, verifiers = columns
    at = slice(None) if len(places) == size else list(places)
    there = np.zeros(size, np.bool_)
    there[at] = True
    earned: dict[str, Any] = {}
    said: dict[str, Any] = {}
    for names in dict.fromkeys(verifiers):
        if not names:
            continue
        whose, values, states, among = at, rewards, statuses, there
        if verifiers.count(names) < len(verifiers):  # Tasks with other Verifiers are played beside these
            theirs = [index for index, one in enumerate(verifiers) if one == names]
            values, states = [rewards[one] for one in theirs], [statuses[one] for one in theirs]
            whose = [places[one] for one in theirs]
            among = np.zeros(size, np.bool_)
            among[whose] = True
        (name,) = names
        earned[name], earned[f"_{name}"] = _spread(np.float64, values, whose, size), among.copy()
        said[name], said[f"_{name}"] = _spread(np.int64, states, whose, size), among.copy()
    infos = {"rewards": earned, "_rewards": there, "reward_status": said, "_reward_status": there.copy()}
    if full:
        infos["action"], infos["_action"] = _spread(np.object_, actions, at, size), there.copy()
        infos["error"], infos["_error"] = _spread(np.object_, errors, at, size), there.copy()
        if masks[0] is not None:
            legal = np.zeros((size, len(masks[0])), np.int8)
            legal[at] = masks[0] if masks.count(masks[0]) == len(masks) else masks
            infos["action_mask"], infos["_action_mask"] = legal, there.copy()
    return infos


def _spread(dtype: Any, values: Sequence[Any], at: Any, size: int) -> Any:
    """An array with values at some places, and elsewhere what Gymnasium leaves there."""
    if len(values) == size:
        return np.array(values, dtype)
    array = np.full(size, None, dtype) if dtype is np.object_ else np.zeros(size, dtype)
    array[at] = values
    return array
