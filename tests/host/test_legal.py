"""Which actions are legal: asked of Apps, kept after every action, and never enforced."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plural_gym.app import App, action
from plural_gym.environment import Environment
from plural_gym.errors import AppFault
from plural_gym.host.direct import DirectSession
from plural_gym.host.hooks import HookSet, LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.resources import NO_RESOURCES
from plural_gym.host.session import Session
from plural_gym.state import State
from plural_gym.step import Step, TaskView


class Money(State):
    coins: int = 3
    locked: bool = False


class Purse(App):
    """Coins can be paid while they last, and nothing while it is locked."""

    state: Money

    @action
    def pay(self, coins: int) -> str:
        """Pay coins."""
        if coins == 13:
            raise KeyError("unlucky")
        self.state.coins -= coins
        return f"{self.state.coins} left"

    @action
    def lock(self) -> str:
        """Lock it."""
        self.state.locked = True
        return "locked"

    @action(read_only=True)
    def count(self) -> int:
        """Count the coins."""
        return self.state.coins

    def is_legal(self, action: str, arguments: Mapping[str, Any] | None = None) -> bool:
        if self.state.coins == 7:
            raise LookupError("seven is secret")
        if self.state.locked:
            return action == "count"
        if action == "pay":
            return self.state.coins > 0 and (arguments is None or arguments["coins"] <= self.state.coins)
        return True


class Sign(App):
    """An App that says nothing of what is legal."""

    @action
    def count(self) -> str:
        """Read the sign."""
        return "one"


def host_of(watched: tuple[str, ...] = ("pay", "lock", "count"), **apps: Any) -> AppHost:
    host = AppHost(Environment(name="e", apps=apps or {"purse": Purse}).declarations)
    if watched:
        host.watch(watched)
    host.open(TaskView("t", ""), {}, 0, NO_RESOURCES)
    return host


def test_calls_are_judged_by_name_and_arguments() -> None:
    host = host_of()
    calls = [
        ("pay", None),
        ("pay", {"coins": 3}),
        ("purse.pay", {"coins": 4}),
        ("pay", {"coins": "x"}),
        ("pay", {}),
        ("lock", {}),
        ("steal", None),
    ]
    assert host.legal(calls) == [True, True, False, False, False, True, False]
    host.act("lock", {})
    assert host.legal(calls) == [False] * 7


def test_a_judge_answers_the_same_calls_at_any_time() -> None:
    host = host_of()
    ask = host.judge([("pay", {"coins": 2}), ("count", None)])
    assert ask() == [True, True]
    host.act("pay", {"coins": 2})
    assert ask() == [False, True]
    host.open(TaskView("t", ""), {}, 0, NO_RESOURCES)
    assert ask() == [True, True]


def test_arguments_are_judged_as_the_action_would_get_them() -> None:
    host = host_of()
    assert host.legal([("pay", {"coins": "3"})]) == [host.act("pay", {"coins": "3"}).error is None]


def test_nothing_is_enforced() -> None:
    host = host_of()
    assert host.legal([("pay", {"coins": 5})]) == [False]
    assert host.act("pay", {"coins": 5}).observation == "-2 left"


def test_the_mask_is_that_after_the_last_action() -> None:
    host = host_of()
    assert host.mask == (True, True, True)
    host.act("pay", {"coins": 3})
    assert host.mask == (False, True, True)
    host.act("fly", {})
    assert host.mask == (False, True, True), "an action that there is not changes nothing"
    host.act("lock", {})
    assert host.mask == (False, False, True)
    host.open(TaskView("t", ""), {"purse": {"coins": 0}}, 0, NO_RESOURCES)
    assert host.mask == (False, True, True)


def test_the_mask_comes_back_with_a_checkpoint() -> None:
    host = host_of()
    saved = host.save()
    host.act("lock", {})
    host.restore(saved)
    assert host.mask == (True, True, True)


def test_of_several_apps_those_that_say_nothing_forbid_nothing() -> None:
    host = host_of(("pay", "purse.count", "sign.count", "finish"), purse=Purse, sign=Sign)
    assert host.forbids
    host.act("lock", {})
    assert host.mask == (False, True, True, True)
    assert not AppHost(Environment(name="e", apps={"sign": Sign}).declarations).forbids


def test_an_app_that_cannot_say_what_is_legal_is_at_fault() -> None:
    host = host_of(("pay",), purse=Purse, sign=Sign)
    fault = host.act("pay", {"coins": -4}).fault
    assert fault is not None and (fault.where, fault.type) == ("app purse", "LookupError")
    assert fault.at.startswith("test_legal.py:")
    fault = host.act("sign.count", {}).fault
    assert fault is not None and fault.where == "app purse", "the App that failed, not the one that acted"
    with pytest.raises(AppFault, match=r"LookupError: seven is secret .*, asked whether pay is legal"):
        host.legal([("pay", None)])
    with pytest.raises(AppFault, match="seven is secret"):
        host.open(TaskView("t", ""), {"purse": {"coins": 7}}, 0, NO_RESOURCES)


def test_nobody_is_asked_where_nobody_watches() -> None:
    host = host_of(())
    host.open(TaskView("t", ""), {"purse": {"coins": 7}}, 0, NO_RESOURCES)
    assert host.act("lock", {}).fault is None and host.mask == ()


CALLS = st.sampled_from(
    [
        ("pay", {"coins": 1}),
        ("pay", {"coins": 2}),
        ("pay", {"coins": -2}),
        ("pay", {"coins": 13}),
        ("pay", {"coin": 1}),
        ("lock", {}),
        ("count", {}),
        ("steal", {}),
    ]
)


def shrank(step: Step) -> float:
    return float(step.previous_state["coins"] - step.current_state["coins"])


@pytest.mark.parametrize("rewards", [[], [shrank]], ids=["none", "one"])
@settings(max_examples=60, deadline=None)
@given(calls=st.lists(CALLS, max_size=8))
def test_the_short_way_keeps_the_same_mask(rewards: list[Any], calls: list[Any]) -> None:
    told: list[list[Any]] = []
    for kind in (DirectSession, Session):
        host = host_of()
        hooks = LocalHooks([HookSet.of(reward) for reward in rewards])
        session: Session = kind(host, hooks, Environment(name="e").limits)
        session.open(TaskView("t", ""), {}, 0, NO_RESOURCES)
        said: list[Any] = []
        for name, arguments in calls:
            if session.stop_reason is not None:
                break
            outcome = session.act(name, arguments)
            fault = outcome.fault and str(outcome.fault)
            said.append((outcome.observation, outcome.error, fault, outcome.stop_reason, host.mask))
        told.append(said)
    assert told[0] == told[1]


def test_a_step_where_nobody_forbids_has_no_line_about_masks() -> None:
    """The hot path of training: what an App does not say costs nothing."""
    for app, asked in ((Sign, False), (Purse, True)):
        host = AppHost(Environment(name="e", apps={"app": app}).declarations)
        if host.forbids:
            host.watch(("lock",))
        session = DirectSession(host, LocalHooks(()), Environment(name="e").limits)
        course = session.courses("return session.last", {})["lock" if asked else "count"]
        assert ("mask" in course.__code__.co_varnames) is asked is ("is_legal" in course.__code__.co_names)
