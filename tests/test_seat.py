"""The seat door: observations and errors, and an end."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from plural_gym.agent import Agent
from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.errors import ActionRejected, EpisodeOver, MachineError, UsageError
from plural_gym.harness import AgentView, Seat
from plural_gym.host.hooks import LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.session import Session
from plural_gym.seat import SeatDoor, json_answer
from plural_gym.state import State
from plural_gym.step import TaskView


class Count(State):
    n: int = 0
    secret: str = "hidden"


class Counter(App):
    state: Count

    def reset(self, task: TaskView) -> list[int]:
        return [0]

    @action
    def add(self, by: int = 1) -> dict[str, int]:
        if by < 1:
            raise ValueError("by is above 0")
        self.state.n += by
        return {"n": self.state.n}

    @action
    def slow(self) -> str:
        time.sleep(0.1)
        return "slow"

    @action
    def fail(self) -> None:
        raise RuntimeError(self.state.secret)

    def terminated(self) -> bool:
        return self.state.n >= 3


ENVIRONMENT = Environment(name="e", apps={"counter": Counter})


def door(agent: Agent | None = None, finish: bool = True) -> tuple[SeatDoor, Session]:
    host = AppHost(ENVIRONMENT.declarations, ENVIRONMENT.actions)
    session = Session(host, LocalHooks([]), Limits())
    session.open(TaskView("crane", "Count."), {}, 0, Path("/nowhere"))
    agent = agent or Agent(name="a", harness=lambda task, seat: None)
    return SeatDoor(session, agent, ENVIRONMENT.actions.tools(), finish), session


def test_a_seat_shows_what_happened_last() -> None:
    seat, _ = door()
    assert seat.observation == seat.view() == [0] and not seat.finished
    assert seat.act("add") == seat.observation == {"n": 1}
    with pytest.raises(ActionRejected, match="by is above 0"):
        seat.act("add", by=0)
    assert seat.observation == {"error": "by is above 0"}
    assert seat.act("add", by=2) == {"n": 3} and seat.finished
    with pytest.raises(EpisodeOver, match="environment_terminated"):
        seat.act("add")
    with pytest.raises(EpisodeOver):
        seat.act(None)  # type: ignore[arg-type]


def test_a_fault_says_nothing_of_itself() -> None:
    seat, session = door()
    with pytest.raises(EpisodeOver) as raised:
        seat.act("fail")
    assert "hidden" not in str(raised.value) and raised.value.__cause__ is raised.value.__context__ is None
    assert seat.finished and session.fault is not None and session.fault.message == "hidden"
    assert seat.observation == [0]


def test_finish_ends_the_attempt_with_an_answer() -> None:
    seat, session = door()
    assert [tool["function"]["name"] for tool in seat.actions] == ["add", "slow", "fail", "finish"]
    with pytest.raises(ActionRejected, match="finish: anser is no argument"):
        seat.act("finish", anser=1)
    answer = {"files": ["a"]}
    assert seat.act("finish", answer=answer) is None
    answer["files"].append("b")
    assert session.answer == {"files": ["a"]} and session.turn == 0 and seat.finished
    with pytest.raises(EpisodeOver):
        seat.act("finish", answer=2)
    seat, _ = door(finish=False)
    with pytest.raises(ActionRejected, match="no action 'finish'"):
        seat.act("finish")


def test_a_name_that_is_no_string_is_a_rejected_step() -> None:
    seat, session = door()
    for name in (5, ["add"], None, "\ud800".encode("utf-8", "surrogatepass")):
        with pytest.raises(ActionRejected, match="an action is named by a string"):
            seat.act(name)  # type: ignore[arg-type]
    assert session.turn == 4


def test_closing_waits_for_the_action_under_way() -> None:
    seat, session = door()
    seen: list[Any] = []
    playing = threading.Thread(target=lambda: seen.append(seat.act("slow")))
    playing.start()
    time.sleep(0.03)
    seat.close()
    assert session.observation == "slow"
    playing.join()
    assert seen == ["slow"] and seat.finished
    with pytest.raises(EpisodeOver, match="closed"):
        seat.act("add")


def test_threads_of_one_harness_take_turns() -> None:
    seat, session = door()
    threads = [threading.Thread(target=seat.act, args=("slow",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.turn == 3 and [record["turn"] for record in session.trajectory()] == [1, 2, 3]


def test_a_seat_is_what_harnesses_are_promised() -> None:
    seat, _ = door()
    promised = {name for name in vars(Seat) if not name.startswith("_")}
    assert promised <= set(dir(seat))
    assert {name for name in vars(AgentView) if not name.startswith("_")} <= set(dir(seat.agent))


def test_an_agent_is_seen_without_its_name() -> None:
    agent = Agent(name="ada", harness=lambda task, seat: None, instructions="Be kind.", settings={"t": [1]})
    seat, _ = door(agent)
    assert (seat.agent.instructions, seat.agent.settings, seat.agent.model) == ("Be kind.", {"t": [1]}, None)
    seat.agent.settings["t"].append(2)
    assert agent.settings == {"t": [1]}
    with pytest.raises(UsageError, match="Agent 'ada' has no model to ask"):
        seat.agent.complete([])
    modelled, _ = door(Agent(name="ada", model="m/x", harness=lambda task, seat: None))
    with pytest.raises(MachineError, match="nothing here serves the model 'm/x'"):
        modelled.agent.complete([])


def test_an_answer_is_json_or_its_text() -> None:
    assert json_answer({"a": (1, {2})}) == {"a": [1, [2]]}
    assert json_answer(Path("x")) == "x" and json_answer("\ud800") == "\\ud800"
