"""What can play, what cannot, and in which thread and event loop it does."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plural_gym.errors import DefinitionError, UnknownName
from plural_gym.harness import Harness, Seat, TaskBrief, as_harness, drive
from plural_gym.harnesses.scripted import Scripted

TASK = TaskBrief("Guess.")


class Desk:
    """A seat that echoes."""

    def act(self, name: str, /, **arguments: Any) -> Any:
        return [name, arguments]


SEAT = cast(Seat, Desk())


def play(task: Any, seat: Any) -> Any:
    return task.instructions, seat.act("guess", word="crane")


def play_with(task: Any, seat: Any, *, word: str = "slate") -> Any:
    return word


class Plain:
    def __init__(self, word: str = "slate") -> None:
        self.word = word

    def play(self, task: Any, seat: Any) -> str:
        return self.word


class Own(Harness):
    def play(self, task: TaskBrief, seat: Seat) -> Any:
        return "own"


class Unfinished(Harness):
    pass


def test_a_function_is_a_harness() -> None:
    harness = as_harness(play)
    assert harness.name == "play" and repr(harness) == "FunctionHarness('play')"
    assert drive(harness, TASK, SEAT) == ("Guess.", ["guess", {"word": "crane"}])


def test_config_reaches_a_function_at_each_call_and_a_class_when_it_is_made() -> None:
    assert drive(as_harness(play_with), TASK, SEAT) == "slate"
    assert drive(as_harness(play_with, {"word": "crane"}), TASK, SEAT) == "crane"
    assert drive(as_harness(Plain, {"word": "crane"}), TASK, SEAT) == "crane"


def test_an_object_or_class_with_play_is_a_harness() -> None:
    assert drive(as_harness(Plain("crane")), TASK, SEAT) == "crane"
    assert as_harness(Plain).name == "Plain"
    own = Own()
    assert as_harness(own) is own
    assert as_harness(Own).name == "Own" and drive(as_harness(Own), TASK, SEAT) == "own"


def test_a_kind_is_found_by_its_name() -> None:
    harness = as_harness("scripted", {"play": play})
    assert isinstance(harness, Scripted) and harness.name == "play"


class Answered:
    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return "answered"


def test_an_async_play_gets_an_event_loop_of_its_own() -> None:
    async def slow(task: Any, seat: Any) -> str:
        await asyncio.sleep(0)
        return "slow"

    assert drive(as_harness(slow), TASK, SEAT) == "slow"
    assert drive(as_harness(lambda task, seat: Answered()), TASK, SEAT) == "answered"


def test_an_async_play_runs_where_a_loop_runs_already_as_in_a_notebook() -> None:
    async def slow(task: Any, seat: Any) -> str:
        await asyncio.sleep(0)
        return "slow"

    async def broken(task: Any, seat: Any) -> str:
        raise LookupError("lost")

    async def notebook() -> Any:
        with pytest.raises(LookupError, match="lost"):
            drive(as_harness(broken), TASK, SEAT)
        return drive(as_harness(slow), TASK, SEAT)

    assert asyncio.run(notebook()) == "slow"


def test_identity_covers_code_and_config_and_not_the_name() -> None:
    one, same, other = as_harness(play_with), as_harness(play_with), as_harness(play_with, {"word": "a"})
    same.name = "renamed"
    assert one.identity() == same.identity() != other.identity()
    assert one.identity() != as_harness(play).identity()
    assert as_harness(Plain()).identity()["code"]["name"] == "Plain"
    assert Own().identity()["code"]["name"] == "Own" and Own().folder is None


REFUSED = [
    (7, None, "7 is no Harness; give a function (task, seat), an object with play(task, seat), or the name"),
    (SimpleNamespace(), None, "namespace() is no Harness"),
    (int, None, "class int is no Harness: it has no method play(task, seat)."),
    (Unfinished, None, "class Unfinished is no Harness yet: it lacks play."),
    (
        lambda task: None,
        None,
        "harness '<lambda>' takes (task, seat): too many positional arguments; it accepts: task.",
    ),
    (
        play,
        {"word": "x"},
        "harness 'play' takes (task, seat): got an unexpected keyword argument 'word'; "
        "it accepts: task, seat.",
    ),
    (
        Plain,
        {"speed": 1},
        "harness 'Plain' takes its config as keyword arguments: got an unexpected keyword argument 'speed'; "
        "it accepts: word.",
    ),
    (
        "scripted",
        None,
        "harness 'scripted' takes its config as keyword arguments: missing a required argument: 'play'",
    ),
    (Plain("a"), {"word": "b"}, "is built already and takes no config; pass its class."),
]


@pytest.mark.parametrize(("value", "config", "message"), REFUSED)
def test_what_cannot_play_is_refused_with_what_would(value: Any, config: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        as_harness(value, config)
    assert message in str(caught.value)


def test_an_unknown_kind_says_which_there_are() -> None:
    with pytest.raises(UnknownName, match=r"there is no harness kind 'scriptd'; did you mean 'scripted'\?"):
        as_harness("scriptd")


def test_a_brief_tells_only_the_instructions() -> None:
    assert TaskBrief.__slots__ == ("instructions",)
