"""Task: one assignment, checked when it is built; TaskSet: many of them, built when asked for."""

from typing import Any

import pytest

from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.errors import DefinitionError, UnknownName
from plural_gym.state import State
from plural_gym.task import Task, TaskSet
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier


class Ticket(State):
    issue: str = ""
    urgency: int = 1


class Desk(App):
    state: Ticket

    @action
    def read(self) -> str:
        return self.state.issue


def check(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=1.0)


VERIFIER = DeterministicVerifier(name="v", check=check)
ENVIRONMENT = Environment(name="e", apps={"desk": Desk}, limits=Limits(turns=8))


def task(name: str = "t", **fields: Any) -> Task:
    return Task(**{"name": name, "instructions": "Do.", "environment": ENVIRONMENT, "verifiers": [VERIFIER], **fields})


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ({"dsk": {}}, "setup names App 'dsk'; did you mean 'desk'?"),
        ({"desk": {"isue": "x"}}, "setup desk.isue: Extra inputs are not permitted, got 'x'"),
        ({"desk": {"urgency": "high"}}, "setup desk.urgency: .*got 'high'"),
    ],
)
def test_a_setup_that_does_not_fit_is_refused_when_the_task_is_built(setup: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=f"Task 't': {message}"):
        task(setup=setup)


def test_every_misfit_of_a_setup_is_told_at_once() -> None:
    with pytest.raises(DefinitionError, match=r"dsk.*urgency"):
        task(setup={"dsk": {}, "desk": {"urgency": "high"}})


def test_apps_and_verifiers_see_it_and_an_agent_its_instructions() -> None:
    one = task(info={"id": 7}, expected="billing", metadata={"m": 1})
    view = one.view
    assert (view.name, view.info, view.expected, view.metadata) == ("t", {"id": 7}, "billing", {"m": 1})
    assert one.view is view and one.folder is None


def test_limits_are_lowered_for_the_task_alone() -> None:
    assert task(limits=Limits(turns=2)).effective_limits == Limits(turns=2)
    assert task(limits=Limits(turns=99)).effective_limits == Limits(turns=8)
    assert task().effective_limits == Limits(turns=8)


def test_its_hash_is_what_it_means() -> None:
    one = task().content_hash
    assert one == task("other", version="2.0.0", title="T", description="D").content_hash
    other = DeterministicVerifier(name="w", check=check)
    for changes in (
        {"instructions": "Don't."},
        {"setup": {"desk": {"issue": "x"}}},
        {"info": {"id": 1}},
        {"expected": 2**70},
        {"metadata": {"m": 1}},
        {"limits": Limits(turns=2)},
        {"verifiers": [other]},
        {"environment": Environment(name="e", apps={"desk": Desk})},
    ):
        assert task(**changes).content_hash != one, changes


@pytest.mark.parametrize("fields", [{"name": ""}, {"instructions": None}, {"environment": "e"}, {"verifier": VERIFIER}])
def test_a_field_that_does_not_fit_is_named(fields: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=next(iter(fields))):
        task(**fields)


def test_a_set_builds_a_task_when_it_is_first_asked_for() -> None:
    built: list[str] = []

    def build(name: str) -> Task:
        built.append(name)
        return task(name)

    tasks = TaskSet(["w/a", "w/b", "x/b", "c"], build, {"w/a": "train", "w/b": "test"})
    assert len(tasks) == 4 and not built
    assert tasks[3].name == "c" and tasks["a"].name == "w/a" and tasks["a"] is tasks[0]
    assert built == ["c", "w/a"]
    assert [one.name for one in tasks[1:3]] == ["w/b", "x/b"] and tasks[-1].name == "c"
    assert "a" in tasks and "b" not in tasks and tasks[0] in tasks
    assert [one.name for one in tasks.split("train")] == ["w/a"]
    assert [one.name for one in tasks.choose(["c", "w/a"])] == ["c", "w/a"]
    assert [one.name for one in tasks] == ["w/a", "w/b", "x/b", "c"] and repr(tasks) == "TaskSet(4 Tasks)"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda tasks: tasks["b"], "several Tasks are named 'b': w/b, x/b; say which"),
        (lambda tasks: tasks["cc"], "there is no Task 'cc'; did you mean 'c'?"),
        (lambda tasks: tasks.split("dev"), "no Task is in the split 'dev'; it has: train"),
    ],
)
def test_a_name_that_no_task_has_is_explained(ask: Any, message: str) -> None:
    tasks = TaskSet(["w/b", "x/b", "c"], task, {"c": "train"})
    with pytest.raises(UnknownName, match=message):
        ask(tasks)


def test_two_tasks_of_one_name_are_refused() -> None:
    with pytest.raises(DefinitionError, match="two Tasks are named 't'"):
        TaskSet.of([task(), task()])
    assert TaskSet.of([task("a"), task("b")])["b"].name == "b"
