"""Task: one assignment, checked when it is built; TaskSet: many of them, built when asked for."""

from typing import Any, Literal

import pytest
from pydantic import Field, field_validator, model_validator

from plural_gym.app import App, AppDeclaration, LiveApp, action
from plural_gym.apps.python import PythonApp
from plural_gym.environment import Environment, Limits
from plural_gym.errors import DefinitionError, UnknownName
from plural_gym.state import State
from plural_gym.task import Task, TaskSet
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier


class Owner(State):
    name: str = ""


class Ticket(State):
    issue: str = ""
    urgency: int = Field(default=1, le=5)
    tags: list[str] = []
    owner: Owner = Owner()
    team: Literal["one", "two"] = "one"
    open: bool = True
    code: str = "ab"

    @field_validator("code")
    @classmethod
    def _two(cls, value: str) -> str:
        if len(value) != 2:
            raise ValueError("a code has two letters")
        return value

    @model_validator(mode="after")
    def _never(self) -> "Ticket":
        if (self.code, self.urgency) == ("no", 5):
            raise ValueError("no is never urgent")
        return self


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
    return Task(
        **{"name": name, "instructions": "Do.", "environment": ENVIRONMENT, "verifiers": [VERIFIER], **fields}
    )


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ({"dsk": {}}, "setup names App 'dsk'; did you mean 'desk'?"),
        ({"desk": {"isue": "x"}}, "setup desk.isue: the State has no field 'isue'; did you mean 'issue'\\?$"),
        ({"desk": {"urgency": "high"}}, "setup desk.urgency: must be an integer, got 'high'\\.$"),
        ({"desk": {"urgency": 9}}, "setup desk.urgency: must be less than or equal to 5, got 9\\.$"),
        ({"desk": {"issue": 3}}, "setup desk.issue: must be text, got 3\\.$"),
        ({"desk": {"tags": "x"}}, "setup desk.tags: must be a list, got 'x'\\.$"),
        ({"desk": {"owner": "x"}}, "setup desk.owner: must be a mapping, got 'x'\\.$"),
        (
            {"desk": {"owner": {"nam": 1}}},
            "setup desk.owner.nam: there is no field 'nam' here; remove it\\.$",
        ),
        ({"desk": {"team": "red"}}, "setup desk.team: must be 'one' or 'two', got 'red'\\.$"),
        ({"desk": {"open": "perhaps"}}, "setup desk.open: must be true or false, got 'perhaps'\\.$"),
        ({"desk": {"code": "x"}}, "setup desk.code: a code has two letters, got 'x'\\.$"),
        ({"desk": {"code": "no", "urgency": 5}}, "setup desk: no is never urgent\\.$"),
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


@pytest.mark.parametrize(
    "fields", [{"name": ""}, {"instructions": None}, {"environment": "e"}, {"verifier": VERIFIER}]
)
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


def test_a_state_without_a_needed_field_says_which() -> None:
    class Case(State):
        number: int

    class Court(App):
        state: Case

    with pytest.raises(
        DefinitionError, match=r"setup court\.number: is missing, and has no default; give it a"
    ):
        task(environment=Environment(name="c", apps={"court": Court}), setup={"court": {}})


def test_a_kind_that_cannot_tell_its_fields_still_refuses_a_wrong_one() -> None:
    assert LiveApp.setup_fields(AppDeclaration("other", {})) is None
    assert PythonApp.setup_fields(AppDeclaration("python", {"class": Desk}))[:2] == ("issue", "urgency")


def test_one_task_is_one_in_words() -> None:
    assert repr(TaskSet.of([task()])) == "TaskSet(1 Task)"


def _cycle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize("field", ["info", "expected", "metadata"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "is nan, which JSON does not have"),
        (float("inf"), "is inf, which JSON does not have"),
        ({1, 2}, "is a set, which JSON does not have"),
        (object(), "is a object, which JSON does not have"),
        (_cycle(), "nested too deeply or contains itself"),
        ("\ud83d", "which no file can hold"),
        ({1: 2}, "has the key 1, which is no JSON text"),
    ],
)
def test_what_has_no_json_form_is_refused_when_a_task_is_built(field: str, value: Any, said: str) -> None:
    verifier = DeterministicVerifier(name="v", check=lambda episode: None)
    given = {"case": value} if field == "metadata" else {"case": [value]}
    with pytest.raises(DefinitionError, match=said):
        Task(
            name="t",
            instructions="",
            environment=Environment(name="e"),
            verifiers=[verifier],
            **{field: given},
        )


def test_instructions_that_no_file_can_hold_are_refused() -> None:
    verifier = DeterministicVerifier(name="v", check=lambda episode: None)
    with pytest.raises(DefinitionError, match=r"instructions is .*which no file can hold"):
        Task(name="t", instructions="\ud83d", environment=Environment(name="e"), verifiers=[verifier])
