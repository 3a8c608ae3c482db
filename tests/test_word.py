"""The base of every word: frozen, closed, and plain in its errors."""

import copy
from typing import Any

import pytest

from plural_gym.errors import DefinitionError
from plural_gym.word import Word


class Cup(Word):
    colour: str
    size: int = 1


def test_wrong_fields_are_told_in_sentences() -> None:
    with pytest.raises(DefinitionError) as raised:
        Cup(color="red", size="big" * 100)
    said = str(raised.value)
    assert (
        said.startswith("Cup: colour is missing. size: ")
        and "color is no field; did you mean 'colour'?" in said
    )
    assert len(said) < 300 and raised.value.__cause__ is None
    with pytest.raises(ValueError, match="Cup 'x'"):
        type("Cup", (Cup,), {"__annotations__": {"name": str}})(name="x")


def test_a_word_is_frozen_and_equal_by_content() -> None:
    cup: Any = Cup(colour="red")
    with pytest.raises(ValueError, match="frozen"):
        cup.colour = "blue"
    assert cup == Cup(colour="red") and copy.deepcopy(cup) is cup and copy.copy(cup) is cup


def test_a_changed_copy_leaves_the_word_as_it_was() -> None:
    cup = Cup(colour="red")
    for deep in (False, True):
        assert cup.model_copy(update={"size": 3}, deep=deep) == Cup(colour="red", size=3)
    assert cup == Cup(colour="red") and cup.model_fields_set == {"colour"}
    with pytest.raises(DefinitionError, match="size"):
        cup.model_copy(update={"size": "big"})
