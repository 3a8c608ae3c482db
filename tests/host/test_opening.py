"""The short start of an episode comes to what the long one comes to, and steps aside where it cannot."""

from pathlib import Path
from typing import Any

import pytest

from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.errors import AppFault
from plural_gym.host.direct import DirectSession
from plural_gym.host.hooks import LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.session import Session
from plural_gym.state import State, thaw
from plural_gym.step import TaskView


class Jar(State):
    beans: list[str] = []
    count: int = 1


class Jars(App):
    """Opens in several ways."""

    state: Jar

    def reset(self, task: TaskView) -> Any:
        task.info["seen"] = True
        if self.state.count == 13:
            raise RuntimeError("bad luck")
        self.state.count += int(self.rng.integers(100))
        return {0: None, 1: "a jar", 2: {"beans": ("a", "b")}}[len(self.state.beans)]

    @action
    def shake(self) -> int:
        """Shake."""
        return self.state.count


class Made(Jars):
    """Has something of its own from the start."""

    def __init__(self) -> None:
        self.lid = f"lid of {self.task.name} {self.resources.name}"

    def is_legal(self, action: str, arguments: Any = None) -> bool:
        return self.state.count % 2 == 0


class Nested(State):
    parts: list[list[int]] = [[1]]


class Deep(App):
    """A State that is kept as JSON."""

    state: Nested

    async def reset(self, task: TaskView) -> str:  # type: ignore[override]
        self.state.parts.append([2])
        return f"for {task.name}"

    @action
    def shake(self) -> int:
        """Shake."""
        return len(self.state.parts)


class Guarded(Jars):
    """Sets its attributes in its own way."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "note":
            super().__setattr__("noted", True)


class Kept(Jars):
    """Makes its instances in its own way."""

    made = 0

    def __new__(cls) -> "Kept":
        cls.made += 1
        return super().__new__(cls)


TASK = TaskView("t", "Count.", {"n": 1}, {"m": 2}, "x")


def sessions(app: type[App]) -> list[Any]:
    """A Session that opens the long way, and one that may open the short one."""
    environment = Environment(name="jars", apps={"jar": app}, limits=Limits(turns=9, seconds=60))
    found = []
    for kind in (Session, DirectSession):
        host = AppHost(environment.declarations)
        if host.forbids:
            host.watch(["shake"])
        found.append(kind(host, LocalHooks(()), environment.limits))
    return found


def opened(session: Any, setup: dict[str, Any], seed: int = 5) -> list[Any]:
    """All that can be told of an episode that has just begun."""
    opening = session.open(TASK, setup, seed, Path("/nowhere"))
    app = session.host.apps["jar"].app
    return [
        opening,
        session.opening,
        session.stop_reason,
        (
            session.turn,
            session.answer,
            session.fault,
            session.terminated,
            session.truncated,
            len(session.past),
        ),
        {name: thaw(state) for name, state in session.initial.items()},
        session.host.mask,
        {key: value for key, value in app.__dict__.items() if key not in ("_rng", "task", "state")},
        (app.task.name, app.task.instructions, app.task.info, app.task.metadata, app.task.expected),
        app.state.model_dump(),
        app.state.model_fields_set,
        session.act("shake", {}).observation,
        session.seconds_left > 0,
    ]


@pytest.mark.parametrize("app", [Jars, Made, Deep, Guarded, Kept])
@pytest.mark.parametrize("beans", [[], ["a"], ["a", "b"]])
def test_both_ways_begin_the_same_episode(app: type[App], beans: list[str]) -> None:
    setup: dict[str, Any] = {} if app is Deep else {"jar": {"beans": beans}}
    long, short = sessions(app)
    for seed in (5, 5, 6):
        assert opened(long, setup, seed) == opened(short, setup, seed)
    assert TASK.info == {"n": 1}, "what an App does to its Task stays there"


def test_both_ways_tell_the_same_fault_and_can_begin_again() -> None:
    told = []
    for session in sessions(Jars):
        with pytest.raises(AppFault) as raised:
            session.open(TASK, {"jar": {"count": 13}}, 0, Path("/nowhere"))
        told.append((str(raised.value), raised.value.fault and raised.value.fault.at, session.stop_reason))
        session.open(TASK, {"jar": {"count": 1}}, 0, Path("/nowhere"))
        assert session.stop_reason is None
    assert told[0] == told[1]
    assert told[0][1] is not None and told[0][1].startswith("test_opening.py:")


def test_a_setup_that_somebody_changed_is_read_anew() -> None:
    _, short = sessions(Jars)
    setup = {"jar": {"beans": ["a"]}}
    assert short.open(TASK, setup, 0, Path("/nowhere")) == "a jar"
    setup["jar"]["beans"].append("b")
    assert short.open(TASK, setup, 0, Path("/nowhere")) == {"beans": ["a", "b"]}
