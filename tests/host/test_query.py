"""A query leaves the world as it is, whatever the action that it asks does."""

import asyncio

import pytest

from plural_gym.app import App, action
from plural_gym.environment import Environment
from plural_gym.errors import AppFault
from plural_gym.host.host import AppHost
from plural_gym.host.resources import NO_RESOURCES
from plural_gym.state import State, thaw
from plural_gym.step import TaskView


class Dice(State):
    rolls: list[int] = []


class Table(App):
    state: Dice

    @action
    def roll(self) -> int:
        """Roll."""
        self.state.rolls.append(int(self.rng.integers(1_000_000)))
        return self.state.rolls[-1]

    @action(read_only=True)
    def peek(self) -> int:
        """Draw, though it says that it only reads."""
        return int(self.rng.integers(1_000_000))

    @action(read_only=True)
    def cheat(self) -> str:
        """Change State, though it says that it only reads."""
        self.state.rolls.append(6)
        return "done"


def host() -> AppHost:
    made = AppHost(Environment(name="table", apps={"table": Table}).declarations)
    made.open(TaskView("", ""), {}, 7, NO_RESOURCES)
    return made


def test_a_query_that_draws_does_not_move_the_episodes_randomness() -> None:
    plain, asked = host(), host()
    expected = [plain.act("roll", {}).observation for _ in range(3)]
    seen = []
    for _ in range(3):
        seen.append(asked.act("roll", {}).observation)
        asked.query("table", "peek", {})
    assert seen == expected


def test_a_query_that_changed_state_is_a_fault_and_the_change_is_undone() -> None:
    table = host()
    table.act("roll", {})
    before = thaw(table.snapshot("table"))  # type: ignore[arg-type]
    with pytest.raises(AppFault, match="read-only action 'cheat' changed State"):
        table.query("table", "cheat", {})
    assert thaw(table.snapshot("table")) == before  # type: ignore[arg-type]


class Odd(App):
    @action
    def nested(self) -> list[str]:
        """Answer with half a surrogate pair."""
        return ["\ud83d"]

    @action
    def cancel(self) -> str:
        """Raise what is no Exception."""
        raise asyncio.CancelledError


def test_an_action_that_raises_no_exception_is_a_fault_and_odd_text_is_escaped() -> None:
    made = AppHost(Environment(name="odd", apps={"odd": Odd}).declarations)
    made.open(TaskView("", ""), {}, 7, NO_RESOURCES)
    assert made.act("nested", {}).observation == ["\\ud83d"]
    fault = made.act("cancel", {}).fault
    assert fault is not None and fault.type == "CancelledError"
