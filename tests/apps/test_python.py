"""The App kind `python`: an author's class with a State of its own."""

import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plural_gym.app import App, AppDeclaration, action
from plural_gym.apps.python import PythonApp, actions, state_class
from plural_gym.errors import CheckpointError, DefinitionError
from plural_gym.state import State, thaw
from plural_gym.step import TaskView


class Count(State):
    n: int = 0


class Counter(App):
    state: Count

    def __init__(self) -> None:
        self.drawn: list[float] = []

    @action
    def add(self) -> int:
        self.state.n += 1
        self.drawn.append(float(self.rng.random()))
        return self.state.n


class Bare(App):
    @action
    def say(self) -> str:
        return self.task.instructions


class Holding(Bare):
    def reset(self, task: TaskView) -> None:
        self.lock = threading.Lock()


class Wrong(App):
    state: dict[str, int]


class Missing(App):
    state: "Nowhere"  # type: ignore[name-defined]  # noqa: F821


def live(app: type[App], setup: dict[str, Any] | None = None) -> Any:
    made = PythonApp(AppDeclaration("python", {"class": app}))
    made.open(TaskView("t", "Do."), setup or {}, 5, Path("/nowhere"))
    return made


def test_the_state_is_what_the_class_annotates() -> None:
    assert state_class(Counter) is Count and state_class(Bare) is State
    with pytest.raises(
        DefinitionError, match=r"App Wrong: state is annotated as .*; annotate a class derived from State"
    ):
        state_class(Wrong)
    with pytest.raises(DefinitionError, match=r"App Missing: .*; its State must be importable"):
        state_class(Missing)


def test_an_app_without_state_is_an_empty_one() -> None:
    app = live(Bare)
    assert thaw(app.snapshot()) == {}
    (spec,) = actions(Bare)
    assert app.act(spec, {}, None) == "Do."
    with pytest.raises(ValidationError):
        PythonApp.check_setup(AppDeclaration("python", {"class": Bare}), {"n": 1})


def test_each_episode_starts_anew() -> None:
    app = live(Counter, {"n": 4})
    (spec,) = actions(Counter)
    assert app.act(spec, {}, None) == 5
    drawn = list(app.app.drawn)
    app.open(TaskView("t", ""), {"n": 7}, 5, Path("/nowhere"))
    assert thaw(app.snapshot()) == {"n": 7} and app.app.drawn == []
    app.act(spec, {}, None)
    assert app.app.drawn == drawn


def test_what_is_saved_comes_back_any_number_of_times() -> None:
    app = live(Counter)
    (spec,) = actions(Counter)
    app.act(spec, {}, None)
    saved = app.save()
    app.act(spec, {}, None)
    futures = []
    for _ in range(2):
        app.restore(saved)
        assert thaw(app.snapshot()) == {"n": 1}
        app.act(spec, {}, None)
        futures.append(list(app.app.drawn))
    assert futures[0] == futures[1] and len(futures[0]) == 2


def test_an_app_that_holds_what_cannot_be_copied_says_so() -> None:
    with pytest.raises(CheckpointError, match="App Holding holds something that cannot be copied"):
        live(Holding).save()


def test_whether_it_can_end_an_episode_is_known_beforehand() -> None:
    app = live(Counter)
    assert not app.ends and not app.cuts and not app.terminated() and not app.truncated()


def test_what_is_legal_is_asked_only_where_the_app_says_it() -> None:
    class Says(Counter):
        def is_legal(self, action: str, arguments: Any = None) -> Any:
            return self.state.n

    (spec,) = actions(Counter)
    assert not live(Counter).forbids and live(Counter).is_legal(spec, None, None) is True
    app = live(Says)
    assert app.forbids and app.is_legal(spec, None, None) is False
    app.act(spec, {}, None)
    assert app.is_legal(spec, {}, "north") is True and app.app.seat == "north"


def test_is_legal_must_be_one_that_the_host_can_call() -> None:
    class TakesNothing(Counter):
        def is_legal(self) -> bool:  # type: ignore[override]
            return True

    class Waits(Counter):
        async def is_legal(self, action: str, arguments: Any = None) -> bool:  # type: ignore[override]
            return True

    with pytest.raises(DefinitionError, match=r"App TakesNothing: .*write def is_legal\(self, action, arg"):
        actions(TakesNothing)
    with pytest.raises(DefinitionError, match="App Waits: is_legal answers at once"):
        actions(Waits)
