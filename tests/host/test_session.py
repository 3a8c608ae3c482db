"""Session: one live episode; act, reward, record, reply; limits and the end."""

import time
from pathlib import Path
from typing import Any

import pytest

from plural_gym.app import App, AppDeclaration, action
from plural_gym.environment import Limits
from plural_gym.errors import EpisodeOver
from plural_gym.host.hooks import HookSet, LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.session import Session
from plural_gym.state import State
from plural_gym.step import TaskView


class Count(State):
    n: int = 0
    note: str = ""


class Counter(App):
    state: Count

    @action
    def add(self) -> int:
        self.state.n += 1
        return self.state.n

    @action
    def fail(self) -> None:
        raise RuntimeError

    def terminated(self) -> bool:
        return self.state.n == 3

    def truncated(self) -> bool:
        return self.state.note == "cut"


def session(limits: Limits | None = None, setup: dict[str, Any] | None = None, **rewards: Any) -> Session:
    host = AppHost({"app": AppDeclaration("python", {"class": Counter})})
    hooks = LocalHooks([HookSet(name, reward=function) for name, function in rewards.items()])
    made = Session(host, hooks, limits or Limits())
    made.open(TaskView("t", "Count."), {"app": setup or {}}, 0, Path("/nowhere"))
    return made


def test_an_episode_ends_for_one_reason() -> None:
    ended = session()
    assert [ended.act("add", {}).stop_reason for _ in range(3)] == [None, None, "environment_terminated"]
    cut = session(setup={"note": "cut"}).act("add", {})
    assert (cut.stop_reason, cut.terminated, cut.truncated) == ("environment_truncated", False, True)
    limited = session(Limits(turns=1)).act("nothing", {})
    assert (limited.stop_reason, limited.truncated, limited.error is None) == ("max_turns", True, False)
    failed = session().act("fail", {})
    assert (failed.stop_reason, failed.terminated, failed.truncated) == ("error", False, True)
    last = session(Limits(turns=3))
    reasons = [last.act("add", {}).stop_reason for _ in range(3)]
    assert reasons[-1] == "environment_terminated"


def test_time_runs_out_at_an_action() -> None:
    made = session(Limits(seconds=0.02))
    assert made.act("add", {}).stop_reason is None
    time.sleep(0.03)
    assert made.act("add", {}).stop_reason == "max_seconds" and made.truncated
    assert made.seconds > 0.02 and made.seconds_left is not None and made.seconds_left < 0
    assert session().seconds_left is None


def test_nothing_happens_after_the_end() -> None:
    made = session()
    made.finish({"answer": 1})
    assert (made.stop_reason, made.terminated, made.answer, made.turn) == (
        "agent_finished",
        True,
        {"answer": 1},
        0,
    )
    for call in (lambda: made.act("add", {}), lambda: made.finish(2)):
        with pytest.raises(EpisodeOver, match=r"the episode is over \(agent_finished\)"):
            call()
    made.stop("max_cost", truncated=True)
    assert made.stop_reason == "agent_finished" and made.answer == {"answer": 1}
    made.open(TaskView("t", ""), {}, 0, Path("/nowhere"))
    assert made.act("add", {}).observation == 1


def test_rewards_follow_each_action_and_not_a_fault() -> None:
    seen: list[tuple[str, int]] = []

    def reward(step: Any) -> float:
        seen.append((step.action, step.turn))
        return float(step.current_state["n"])

    made = session(growth=reward, none=lambda step: None)
    for name in ("add", "nothing", "add"):
        made.act(name, {})
    made.reject("garbled", "no action")
    made.act("fail", {})
    assert seen == [("add", 1), ("nothing", 2), ("add", 3), ("garbled", 4)]
    assert made.own_rewards("growth") == [1.0, 1.0, 2.0, 2.0]
    assert made.own_rewards("none") == made.own_rewards("nobody") == []


def test_a_session_tells_what_happened() -> None:
    made = session()
    assert made.observation is None
    made.act("add", {})
    made.act("ad", {})
    assert made.observation == {"error": "App 'app' has no action 'ad'; did you mean 'add'?"}
    first, second = made.trajectory()
    assert (first["event_id"], first["turn"], first["observation"]) == ("step-1", 1, 1)
    assert second["error"] is not None and second["app"] == "app"
    episode = made.episode()
    assert episode.apps["app"].initial["n"] == 0 and episode.state["n"] == 1
    assert episode.usage.turns == 2 and episode.stop_reason is None


def test_a_saved_session_goes_on_from_its_turn() -> None:
    made = session(Limits(turns=3, seconds=60))
    made.act("add", {})
    apps, saved = made.host.save(), made.save()  # type: ignore[attr-defined]
    made.act("add", {})
    made.open(TaskView("t", ""), {}, 0, Path("/nowhere"))
    made.host.restore(apps)  # type: ignore[attr-defined]
    made.load(saved)
    assert made.turn == 1 and len(made.trajectory()) == 1
    assert made.act("add", {}).observation == 2 and made.seconds_left is not None
    assert made.act("add", {}).stop_reason == "environment_terminated"
