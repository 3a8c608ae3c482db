"""How many elements a space has, and all of them."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from plural_gym.rl import finite
from plural_gym.rl.codec import codec_for
from plural_gym.rl.spaces import BoundedSequence, Choice, Utf8Text

TEXT = Utf8Text(9)
FINITE = [
    (spaces.Discrete(3, start=-1), 3),
    (spaces.MultiBinary(3), 8),
    (spaces.MultiBinary([2, 2]), 16),
    (spaces.Box(-1, 1, (2,), np.int64), 9),
    (spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Dict({"c": spaces.Discrete(3)})}), 6),
    (spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(1))), 4),
    (Choice((spaces.Discrete(1), spaces.Discrete(4))), 5),
    (BoundedSequence(spaces.Discrete(2), 1, 3), 14),
    (BoundedSequence(TEXT, 0, 0), 1),
]


@pytest.mark.parametrize(("space", "number"), FINITE, ids=[str(space) for space, _ in FINITE])
def test_all_elements_are_counted_and_listed(space: spaces.Space[Any], number: int) -> None:
    assert finite.count(space) == number
    found = list(finite.elements(space))
    assert len(found) == number == len({repr(element) for element in found})
    assert all(space.contains(element) for element in found)


def test_elements_that_must_differ_are_listed_without_the_others() -> None:
    space = codec_for({"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}).space
    assert finite.count(space) == len(list(finite.elements(space))) == 7
    distinct = BoundedSequence(spaces.Discrete(2), 2, 2, distinct_by=int)
    assert finite.count(distinct) == 4, "an upper bound"
    assert [tuple(map(int, one)) for one in finite.elements(distinct)] == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    "space",
    [
        TEXT,
        spaces.Box(0, 1, (1,), np.float32),
        spaces.Dict({"a": spaces.Discrete(2), "b": TEXT}),
        spaces.Tuple((TEXT,)),
        Choice((spaces.Discrete(1), TEXT)),
        BoundedSequence(TEXT, 0, 1),
        spaces.Graph(spaces.Discrete(2), None),
    ],
    ids=str,
)
def test_what_has_no_end_is_not_counted(space: spaces.Space[Any]) -> None:
    assert finite.count(space) is None


def test_numbers_beyond_what_a_machine_counts_are_exact() -> None:
    assert finite.count(spaces.Box(-(2**62), 2**62, (2,), np.int64)) == (2**63 + 1) ** 2
    assert finite.count(BoundedSequence(spaces.Discrete(5), 256, 256)) == 5**256


def test_parts_without_end_are_told_with_their_path() -> None:
    space = spaces.Dict({"reply": spaces.Dict({"text": TEXT, "kind": spaces.Discrete(2)}), "note": TEXT})
    assert sorted(path for path, _ in finite.infinite_parts(space)) == ["note", "reply.text"]
    assert finite.infinite_parts(TEXT) == [("", TEXT)]
    assert finite.infinite_parts(spaces.Discrete(2)) == []
