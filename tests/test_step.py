"""Step: an action as a reward function sees it, made of values."""

from typing import Any

import pytest

from plural_gym.errors import QueryRefused, UnknownName
from plural_gym.state import freeze_value
from plural_gym.step import RecordedWorld, Step, TaskView


@pytest.fixture
def step() -> Step:
    task = TaskView("ticket", "Do.", {"id": 7}, {"note": "n"}, ["answer"])
    before, after = freeze_value({"n": [1]}), freeze_value({"n": [2]})
    world = RecordedWorld({"desk": after, "crm": None})
    return Step(task, "desk", "add", {"by": [1]}, 3, {"n": 2}, None, before, after, world, None, "t-s3")


def test_a_step_says_what_was_done_and_what_came_of_it(step: Step) -> None:
    assert (step.app, step.action, step.turn, step.error, step.seat) == ("desk", "add", 3, None, None)
    assert (step.arguments, step.observation, step.event_id) == ({"by": [1]}, {"n": 2}, "t-s3")
    assert (step.previous_state, step.current_state) == ({"n": [1]}, {"n": [2]})
    assert (step.task.name, step.task.info, step.task.metadata) == ("ticket", {"id": 7}, {"note": "n"})
    assert step.task.expected == ["answer"] and step.task.instructions == "Do."
    assert "add" in repr(step) and repr(step.task) == "TaskView('ticket')"


def test_before_and_after_are_two_values(step: Step) -> None:
    step.current_state["n"].append(9)
    assert step.previous_state == {"n": [1]} and step.apps["desk"].state == {"n": [2]}
    step.previous_state.clear()
    assert step.current_state["n"][0] == 2


def test_what_a_function_changes_in_a_step_changes_nothing_else(step: Step) -> None:
    step.task.info["id"] = 8
    step.arguments["by"].append(2)
    step.observation["n"] = 9
    step.apps["desk"].state["n"] = 9
    assert step.task.info == {"id": 7} and step.arguments == {"by": [1]}
    assert step.observation == {"n": 2} and step.apps["desk"].snapshot() == {"n": [2]}


def test_apps_are_read_by_name(step: Step) -> None:
    assert list(step.apps) == ["desk", "crm"] and len(step.apps) == 2
    assert step.apps["crm"].state is None
    with pytest.raises(UnknownName, match=r"no App 'dsk'; did you mean 'desk'\?"):
        step.apps["dsk"]


def test_in_replay_state_is_there_and_query_is_not(step: Step) -> None:
    with pytest.raises(
        QueryRefused, match=r"query of desk.look needs the running App, which is gone in replay"
    ):
        step.apps["desk"].query("look")


def test_an_unnamed_task_has_empty_facts() -> None:
    task: Any = TaskView("", "")
    assert (task.info, task.metadata, task.expected) == ({}, {}, None)
    assert TaskView(**TaskView("a", "b", [1], {"m": 1}, 2).to_json()).to_json() == {
        "name": "a",
        "instructions": "b",
        "info": [1],
        "metadata": {"m": 1},
        "expected": 2,
    }
