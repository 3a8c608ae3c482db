"""`check_harness`: good players keep every rule; for each rule a player that breaks it."""

import asyncio
import random
from typing import Any

import pytest

from plural_gym.agent import Agent
from plural_gym.errors import ActionRejected, EpisodeOver
from plural_gym.harnesses.scripted import Scripted
from plural_gym.project import Project
from plural_gym.testing import harnesses
from plural_gym.testing.conformance import ConformanceError
from plural_gym.testing.harnesses import check_harness


def presses(task: Any, seat: Any) -> Any:
    """Plays the tiny world well."""
    while not seat.finished:
        try:
            seat.act("press", colour="green")
        except ActionRejected:
            continue
    return seat.observation


async def presses_async(task: Any, seat: Any) -> Any:
    await asyncio.sleep(0)
    return presses(task, seat)


class Presses:
    def __init__(self, colour: str = "green") -> None:
        self.colour = colour

    def play(self, task: Any, seat: Any) -> Any:
        for _ in range(3):
            try:
                seat.act("press", colour=self.colour)
            except ActionRejected as error:
                return str(error)
        return "done"


def idles(task: Any, seat: Any) -> None:
    pass


def fails(task: Any, seat: Any) -> None:
    raise KeyError("plan")


def presses_red(task: Any, seat: Any) -> None:
    seat.act("press", colour="red")


def never_caught(task: Any, seat: Any) -> None:
    for _ in range(3):
        seat.act("press")


def goes_on(task: Any, seat: Any) -> None:
    count = 0
    while count < 3:
        try:
            seat.act("press")
            count += 1
        except Exception:
            continue


def waits(task: Any, seat: Any) -> str:
    for _ in range(3):
        try:
            seat.act("press")
        except ActionRejected:
            return "rejected"
        except EpisodeOver:
            while seat.finished:
                asyncio.run(asyncio.sleep(0.01))
    return "done"


class Counts:
    """Knows on the Harness how often it has pressed."""

    def __init__(self) -> None:
        self.trials = 0

    def play(self, task: Any, seat: Any) -> Any:
        self.trials += 1
        presses(task, seat)
        return self.trials


class HoldsTheSeat:
    seat: Any = None

    def play(self, task: Any, seat: Any) -> Any:
        self.seat = seat
        return presses(task, self)

    @property
    def finished(self) -> bool:
        return bool(self.seat.finished)

    @property
    def observation(self) -> Any:
        return self.seat.observation

    def act(self, name: str, **arguments: Any) -> Any:
        return self.seat.act(name, **arguments)


BROKEN: list[tuple[str, Any, str]] = [
    ("PLAYS", idles, "it took no action and gave no answer"),
    (
        "PLAYS",
        fails,
        r"status 'failed', failure 'agent'; harness fails: KeyError: 'plan' \(at test_harnesses",
    ),
    ("PLAYS", presses_red, "ActionRejected: the red button is out of order"),
    (
        "SURVIVES_REJECTION",
        never_caught,
        "at a seat that rejects, play.. raised ActionRejected: press: not now",
    ),
    ("STOPS_WHEN_OVER", goes_on, r"at a seat that rejects, it called act.. 50 times after the end"),
    ("STOPS_WHEN_OVER", waits, "at a seat that is over, play.. took longer than 1 s"),
    ("REPEATS", Counts, r"the second Trial had \('answer', "),
    ("KEEPS_TRIALS_APART", HoldsTheSeat, "beside another, Trial [01] had"),
]


@pytest.mark.parametrize(("rule", "player", "seen"), BROKEN)
def test_what_breaks_a_rule_is_caught(rule: str, player: Any, seen: str) -> None:
    with pytest.raises(ConformanceError, match=seen) as raised:
        check_harness(player, timeout_s=1.0)
    assert raised.value.rule is getattr(harnesses, rule)


def test_every_rule_is_broken_once(rules_of: Any) -> None:
    assert rules_of(harnesses) == {rule for rule, _, _ in BROKEN}


@pytest.mark.parametrize("player", [presses, presses_async, Presses, Scripted(presses), Scripted(Presses)])
def test_good_players(player: Any) -> None:
    check_harness(player)


def test_a_player_with_randomness_of_its_own_need_not_repeat() -> None:
    def guesses(task: Any, seat: Any) -> float:
        presses(task, seat)
        return random.random()

    check_harness(guesses, repeats=False)
    with pytest.raises(ConformanceError, match="the second Trial had"):
        check_harness(guesses)


def test_an_agent_and_a_task_of_its_own(project: Project) -> None:
    check_harness(project.agents["novice"], task=project.tasks["crane"])
    check_harness(Agent(name="presser", harness=presses))
