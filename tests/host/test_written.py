"""Texts of functions: which lines stay, and what stands in them."""

import traceback

import pytest

from plural_gym.host.written import binder

TEXT = """
def bind($names):
    def told():
        found = []
        found.append("always")
        found.append("a")                 #? a
        found.append("not a")             #? not a
        found.append("both")              #? a and b
        found.append("a alone")           #? a and not b
        $block
        return found + [own, $hole, given]
    return told
"""
BLOCK = """
found.append("block")
found.append("block with b")              #? b
"""


@pytest.mark.parametrize(
    ("holding", "kept"),
    [
        (set(), ["always", "not a", "block"]),
        ({"a"}, ["always", "a", "a alone", "block"]),
        ({"b"}, ["always", "not a", "block", "block with b"]),
        ({"a", "b"}, ["always", "a", "both", "block", "block with b"]),
    ],
)
def test_lines_are_left_out_whose_words_do_not_hold(holding: set[str], kept: list[str]) -> None:
    bind = binder(
        TEXT, {"given": 3}, frozenset(holding), {"$block": BLOCK}, {"$names": "own", "$hole": "2"}, "f.py"
    )
    assert bind(1)() == [*kept, 1, 2, 3]


def test_tracebacks_name_the_file_that_was_said() -> None:
    bind = binder("def bind():\n    return 1 / 0", {}, frozenset(), {}, {}, "course.py")
    with pytest.raises(ZeroDivisionError) as raised:
        bind()
    assert traceback.extract_tb(raised.value.__traceback__)[-1].filename == "course.py"
