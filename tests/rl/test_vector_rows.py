"""Infos of many rows at once are what Gymnasium makes of them one by one."""

import random
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import VectorEnv

from plural_gym.rl.env import NO_STATUS, VALUE
from plural_gym.rl.vector_rows import Row, infos_of, observation_of, row_of

from .vector_worlds import same

SIZE = 6


def drawn(rnd: random.Random, masked: bool) -> Row:
    """A row of any kind: of a Session with one Verifier or none, or of a GymEnv."""
    names = rnd.choice([(), ("first",), ("second",), None])
    reward = rnd.choice([0.0, -0.5, 1.25]) if names else 0.0
    mask = (True, rnd.random() < 0.5) if masked else None
    text, turn = rnd.choice(["a", "č"]), rnd.randrange(9)
    if names is None:
        info: dict[str, Any] = {
            "rewards": {"first": reward, "second": 0.5},
            "reward_status": {"first": 1, "second": 2},
            "action": "go",
            "error": rnd.choice(["", "no"]),
            "state": {"app": {"n": 1}},
        }
        if mask is not None:
            info["action_mask"] = masks([mask])[0]
        answer = ({"text": text, "turn": counts(turn)}, reward + 0.5, False, False, info)
        return row_of(answer)
    status = rnd.choice([VALUE, NO_STATUS]) if names else NO_STATUS
    return text, turn, reward, False, False, status, "go", rnd.choice(["", "no"]), mask, names


def masks(rows: Any) -> Any:
    return np.array(rows, np.int8)


def counts(turn: int) -> Any:
    return np.array([turn], np.int32)


def info_of(row: Row) -> dict[str, Any]:
    """What GymEnv would say."""
    _, _, reward, _, _, info, action, error, mask, names = row
    if names is None:
        return dict(info)
    said = {
        "rewards": dict.fromkeys(names, reward),
        "reward_status": dict.fromkeys(names, info),
        "action": action,
        "error": error,
    }
    return said if mask is None else {**said, "action_mask": masks([mask])[0]}


@pytest.mark.parametrize("seed", range(40))
def test_columns_are_what_gymnasium_adds_up(seed: int) -> None:
    rnd = random.Random(seed)
    places = sorted(rnd.sample(range(SIZE), rnd.randint(1, SIZE)))
    masked = rnd.random() < 0.5
    rows = [drawn(rnd, masked) for _ in places]
    if rnd.random() < 0.5:  # all of one kind
        rows = [rows[0]] * len(rows)
    envs: Any = VectorEnv()
    envs.num_envs = SIZE
    expected: dict[str, Any] = {}
    for row, place in zip(rows, places, strict=True):
        envs._add_info(expected, info_of(row), place)
    columns = tuple(zip(*rows, strict=True))
    same(infos_of(columns, places, SIZE, envs._add_info, full=True), expected)
    kept = {key: value for key, value in expected.items() if "reward" in key}
    same(infos_of(columns, places, SIZE, envs._add_info, full=False), kept)


def test_a_row_keeps_what_was_observed() -> None:
    row = drawn(random.Random(0), masked=False)
    observation = observation_of(row)
    assert observation["text"] == row[0]
    assert observation["turn"].tolist() == [row[1]]
