"""The Harness kind `scripted`: an author's function or class."""

from typing import Any

import pytest

from plural_gym.errors import DefinitionError
from plural_gym.harness import TaskBrief
from plural_gym.harnesses.scripted import Scripted

SEAT: Any = object()


def play(task: Any, seat: Any, *, tries: int = 3) -> int:
    return tries


class Player:
    def __init__(self, tries: int = 3) -> None:
        self.tries = tries

    def play(self, task: Any, seat: Any) -> int:
        return self.tries


@pytest.mark.parametrize("code", [play, Player])
def test_config_reaches_the_code(code: Any) -> None:
    assert Scripted(code).play(TaskBrief(""), SEAT) == 3
    assert Scripted(play=code, tries=5).play(TaskBrief(""), SEAT) == 5


def test_identity_is_code_and_config() -> None:
    assert Scripted(play).identity() == Scripted(play).identity()
    assert Scripted(play).identity() != Scripted(play, tries=5).identity()
    assert Scripted(play, tries=5).config == {"tries": 5} and Scripted(Player).code is Player
    assert Scripted(Player).kind == "scripted" and Scripted(Player).name == "Player"


def test_code_that_cannot_play_is_refused() -> None:
    with pytest.raises(DefinitionError, match="7 is no Harness"):
        Scripted(7)
    with pytest.raises(DefinitionError, match="unexpected keyword argument 'tris'"):
        Scripted(Player, tris=5)
