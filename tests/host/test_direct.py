"""The short way through a step comes to the same outcomes as the long way."""

import random
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.errors import ActionRejected
from plural_gym.host.direct import DirectSession
from plural_gym.host.hooks import HookSet, LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.resources import NO_RESOURCES
from plural_gym.host.session import Session
from plural_gym.state import State
from plural_gym.step import Step, TaskView


class Shelf(State):
    books: list[str] = []
    count: int = 0
    mood: Literal["calm", "angry"] = "calm"


class Library(App):
    """Everything that an action can do."""

    state: Shelf

    @action
    def add(self, title: str) -> str:
        """Add a book."""
        if title == "":
            raise ValueError("a book has a title")
        if title == "forbidden":
            raise ActionRejected("not this one")
        if title == "crash":
            raise KeyError("secret text")
        if title == "invalid":
            self.state.mood = "bored"  # type: ignore[assignment]
        if title == "half":
            self.state.count += 1
            raise ValueError("changed its mind")
        self.state.books.append(title)
        self.state.count += 1
        return f"{self.state.count} {self.rng.integers(1000)}"

    @action
    def burn(self) -> list[str]:
        """Burn all books."""
        burnt = self.state.books
        self.state.books = []
        return burnt

    @action
    def shout(self, mood: Literal["calm", "angry"], times: int) -> None:
        """Change the mood."""
        self.state.mood = mood
        self.state.count += times

    @action
    def leave(self) -> object:
        """Return something that has no JSON form."""
        return object()

    @action(read_only=True)
    def look(self) -> dict[str, Any]:
        """Look at the shelf."""
        return {"books": self.state.books}

    def terminated(self) -> bool:
        return self.state.count >= 8

    def truncated(self) -> bool:
        if "bomb" in self.state.books:
            raise RuntimeError("boom")
        return "full" in self.state.books


def watchful(step: Step) -> float | None:
    seen.append((step.previous_state, step.current_state, step.error, step.observation, step.arguments))
    before, after = step.previous_state, step.current_state
    after["books"].append("scribble")
    step.arguments.clear()
    if step.error:
        return None
    if after["count"] == 3:
        raise LookupError("three")
    if after["count"] == 4:
        return float("nan")
    return float(after["count"] - before["count"])


def second(step: Step) -> float | None:
    return 1.0 if step.current_state["mood"] == "angry" else None


seen: list[Any] = []
ENVIRONMENT = Environment(name="library", apps={"library": Library}, limits=Limits(turns=10))
TITLES = ["a", "b", "", "forbidden", "crash", "invalid", "half", "full", "bomb"]
CALLS = st.one_of(
    st.sampled_from(TITLES).map(lambda title: ("add", {"title": title})),
    st.sampled_from(
        [
            ("burn", {}),
            ("leave", {}),
            ("look", {}),
            ("library.burn", {}),
            ("nothing", {}),
            ("add", {"titel": "x"}),
            ("add", {"title": 3}),
            ("shout", {"mood": "angry", "times": 1}),
            ("shout", {"mood": "glad", "times": 1}),
            ("shout", {"mood": "calm", "times": "2"}),
        ]
    ),
)


def course(session: Session, calls: list[tuple[str, dict[str, Any]]], seed: int) -> list[Any]:
    """All that can be told of an episode."""
    seen.clear()
    session.open(TaskView("t", ""), {}, seed, NO_RESOURCES)
    told: list[Any] = []
    for name, arguments in calls:
        if session.stop_reason is not None:
            break
        outcome = session.act(name, arguments)
        told.append(
            (
                outcome.app,
                outcome.action,
                outcome.arguments,
                outcome.observation,
                outcome.error,
                outcome.fault and (outcome.fault.where, outcome.fault.type, outcome.fault.message),
                [(value, fault and str(fault)) for value, fault in outcome.rewards],
                outcome.terminated,
                outcome.truncated,
                outcome.stop_reason,
            )
        )
    return [told, session.trajectory(), session.stop_reason, session.episode().state, list(seen)]


@pytest.mark.parametrize("rewards", [[], [watchful], [watchful, second]], ids=["none", "one", "two"])
@settings(max_examples=150, deadline=None)
@given(calls=st.lists(CALLS, max_size=12), seed=st.integers(0, 2**32))
def test_both_ways_come_to_the_same(rewards: list[Any], calls: list[Any], seed: int) -> None:
    def session(kind: Any) -> Session:
        host = AppHost(ENVIRONMENT.declarations)
        hooks = LocalHooks([HookSet.of(reward) for reward in rewards])
        made: Session = kind(host, hooks, ENVIRONMENT.limits)
        return made

    assert course(session(DirectSession), calls, seed) == course(session(Session), calls, seed)


def test_the_short_way_is_taken_by_ordinary_actions() -> None:
    host = AppHost(ENVIRONMENT.declarations)
    _, entries = host.direct_actions()
    assert {"add", "burn", "shout", "leave", "library.add"} <= set(entries)
    assert "look" not in entries, "read-only actions go the long way, which holds them to their promise"


def test_an_argument_the_caller_changes_later_is_recorded_as_it_was() -> None:
    session = DirectSession(AppHost(ENVIRONMENT.declarations), LocalHooks(()), ENVIRONMENT.limits)
    session.open(TaskView("t", ""), {}, random.Random(0).randrange(99), NO_RESOURCES)
    arguments = {"title": "a"}
    session.act("add", arguments)
    arguments["title"] = "b"
    assert session.trajectory()[0]["arguments"] == {"title": "a"}
