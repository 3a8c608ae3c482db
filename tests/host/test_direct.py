"""The short way through a step comes to the same outcomes as the long way."""

import json
import random
import tempfile
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.errors import ActionRejected, AppFault
from plural_gym.host.direct import OUTCOME, DirectSession, _binder
from plural_gym.host.hooks import HookSet, LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.recorder import TrialRecorder
from plural_gym.host.resources import NO_RESOURCES
from plural_gym.host.session import Session
from plural_gym.state import State
from plural_gym.step import Step, TaskView
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier


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


def session_of(kind: Any, rewards: list[Any], recorder: Any = None, limits: Any = None) -> Session:
    host = AppHost(ENVIRONMENT.declarations)
    hooks = LocalHooks([HookSet.of(reward) for reward in rewards])
    made: Session = kind(host, hooks, limits or ENVIRONMENT.limits, recorder)
    return made


SECONDS = st.sampled_from([None, 1e-9, 60])
REWARDS = pytest.mark.parametrize(
    "rewards", [[], [watchful], [second], [watchful, second]], ids=["none", "one", "sparse", "two"]
)


@REWARDS
@settings(max_examples=100, deadline=None)
@given(
    calls=st.lists(CALLS, max_size=12), seed=st.integers(0, 2**32), seconds=st.sampled_from([None, 1e-9, 60])
)
def test_both_ways_come_to_the_same(
    rewards: list[Any], calls: list[Any], seed: int, seconds: float | None
) -> None:
    limits = Limits(turns=10, seconds=seconds)
    short, long = (session_of(kind, rewards, limits=limits) for kind in (DirectSession, Session))
    assert course(short, calls, seed) == course(long, calls, seed)


@REWARDS
@settings(max_examples=25, deadline=None)
@given(calls=st.lists(CALLS, max_size=12), seed=st.integers(0, 2**32))
def test_both_ways_write_the_same_record(rewards: list[Any], calls: list[Any], seed: int) -> None:
    records, courses = [], []
    for kind in (DirectSession, Session):
        with tempfile.TemporaryDirectory() as folder:
            steps, rows = Path(folder, "steps.jsonl"), Path(folder, "rewards.jsonl")
            recorder = TrialRecorder(steps, rows, "trl_1", {"watchful": "1%d"}, {"second": "sha256:1"})
            session = session_of(kind, rewards, recorder)
            courses.append([course(session, calls, seed) for _ in range(2)])
            recorder.close()
            records.append(
                [timeless(line) for path in (steps, rows) for line in path.read_text().splitlines()]
            )
            records[-1].append([str(fault) for fault in recorder.faults])
    assert courses[0] == courses[1]
    assert records[0] == records[1]


def timeless(line: str) -> str:
    """A line in its own order of fields, without its times; a number has one way to be written."""
    record = json.loads(line)
    assert record.pop("ts") > 0 and record.pop("duration_ms", 0.0) >= 0
    return json.dumps(record)


@pytest.mark.parametrize(
    "options", [{}, {"score_as_reward": True}, {"max_chars": 3}, {"on_fault": "truncate"}]
)
@REWARDS
@settings(max_examples=12, deadline=None)
@given(calls=st.lists(CALLS, max_size=12), seed=st.integers(0, 2**32))
def test_an_environment_answers_the_same_on_both_ways(
    rewards: list[Any], options: dict[str, Any], calls: list[Any], seed: int
) -> None:
    graders = [*rewards, DeterministicVerifier(name="half", check=half)]
    envs = [ENVIRONMENT.gym(verifiers=graders, **options) for _ in range(2)]
    told: list[list[Any]] = [[], []]
    for env, said in zip(envs, told, strict=True):
        env.reset(seed=seed)
        assert env._session is not None and (len(rewards) > 1) is not ("add" in env._session.answers)
        if env is envs[1]:
            env._session.answers = {}
        for name, arguments in calls:
            try:
                answer = env.step({"action": name, "arguments": arguments})
            except AppFault as fault:
                said.append(str(fault))
                break
            said.append(
                (answer, env.checkpoint().text, env.episode.trajectory, [str(one) for one in env.faults])
            )
            if answer[2] or answer[3]:
                break
        env.close()
    assert repr(told[0]) == repr(told[1])


def half(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=0.5)


def test_a_fault_names_the_line_of_the_author_and_none_of_ours() -> None:
    def failing(step: Step) -> float:
        raise LookupError("x")

    def endless(step: Step) -> float:
        return len(step)  # type: ignore[arg-type]

    for reward in (failing, endless):
        session = session_of(DirectSession, [reward])
        session.open(TaskView("t", ""), {}, 0, NO_RESOURCES)
        ((_, fault),) = session.act("add", {"title": "a"}).rewards
        assert fault is not None and fault.at.startswith("test_direct.py:")
        crashed = session.act("add", {"title": "crash"}).fault
        assert crashed is not None and crashed.at.startswith("test_direct.py:")


def test_a_step_that_is_kept_keeps_what_it_was() -> None:
    kept: list[Step] = []
    session = session_of(DirectSession, [kept.append])
    session.open(TaskView("t", ""), {}, 0, NO_RESOURCES)
    for title in "abc":
        session.act("add", {"title": title})
    assert [(len(step.previous_state["books"]), step.current_state["books"]) for step in kept] == [
        (0, ["a"]),
        (1, ["a", "b"]),
        (2, ["a", "b", "c"]),
    ]
    assert [step.arguments for step in kept] == [{"title": title} for title in "abc"]
    assert kept[0].current_state is kept[0].current_state, "one value for one Step"


def test_actions_of_sessions_alike_are_compiled_once() -> None:
    _binder.cache_clear()  # however full other tests have left it
    session_of(DirectSession, [second]).courses(OUTCOME, {})
    before = _binder.cache_info().misses
    session_of(DirectSession, [second]).courses(OUTCOME, {})
    assert _binder.cache_info().misses == before


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
