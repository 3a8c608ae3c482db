"""Hooks in this process: three states of a reward, and faults that never leave."""

import math
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plural_gym.app import App, AppDeclaration, action
from plural_gym.environment import Limits
from plural_gym.episode import HindsightTrial
from plural_gym.errors import Fault, GradingFault
from plural_gym.host.hooks import HookSet, LocalHooks, finite_number, sum_of_rewards
from plural_gym.host.host import AppHost
from plural_gym.host.session import Session
from plural_gym.state import State
from plural_gym.step import TaskView
from plural_gym.verifier import VerifierOutput, total_reward
from plural_gym.verifiers.deterministic import DeterministicVerifier


class Count(State):
    n: int = 0


class Counter(App):
    state: Count

    @action
    def add(self, by: int = 1) -> dict[str, int]:
        self.state.n += by
        return {"n": self.state.n}

    @action(read_only=True)
    def look(self) -> int:
        return self.state.n


def played(*hooks: HookSet, turns: int = 2) -> Session:
    host = AppHost({"app": AppDeclaration("python", {"class": Counter})})
    session = Session(host, LocalHooks(hooks), Limits())
    session.open(TaskView("t", "", {"k": [1]}), {}, 0, Path("/nowhere"))
    for _ in range(turns):
        session.act("add", {"by": 1})
    return session


def leave(step: Any) -> None:
    sys.exit(1)


def deep(step: Any) -> Any:
    return deep(step)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda step: 1, 1.0),
        (lambda step: -2.5, -2.5),
        (lambda step: np.float32(0.5), 0.5),
        (lambda step: np.int64(3), 3.0),
        (lambda step: Fraction(1, 4), 0.25),
        (lambda step: None, None),
        (lambda step: step.apps["app"].query("look"), 1.0),
        (lambda step: step.current_state["n"] - step.previous_state["n"], 1.0),
    ],
)
def test_a_reward_is_a_finite_number_or_no_signal(function: Any, value: float | None) -> None:
    (outcome,) = played(HookSet("v", reward=function), turns=1).trail
    assert outcome.rewards == [(value, None)] and type(outcome.rewards[0][0]) in (float, type(None))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda step: math.nan, "reward returned nan, which is not a finite number"),
        (lambda step: -math.inf, "reward returned -inf, which is not a finite number"),
        (lambda step: 10**400, "not a finite number"),
        (lambda step: True, "reward returned True, which is not a number"),
        (lambda step: "1", "reward returned '1', which is not a number"),
        (lambda step: Decimal(1), "which is not a number"),
        (lambda step: [1.0], "which is not a number"),
        (lambda step: "x" * 1000, "..., which is not a number"),
        (lambda step: 1 / 0, "division by zero"),
        (lambda step: step.apps["app"].query("add"), "query refuses 'add'"),
        (lambda step: step.apps["ap"], "no App 'ap'; did you mean 'app'?"),
        (lambda step: setattr(step, "observation", 1), "observation"),
        (leave, "1"),
        (deep, "maximum recursion depth exceeded"),
    ],
)
def test_anything_else_is_a_fault_and_the_action_is_answered(function: Any, message: str) -> None:
    session = played(HookSet("v", reward=function), HookSet("w", reward=lambda step: 0.5), turns=1)
    (outcome,) = session.trail
    (value, fault), second = outcome.rewards
    assert value is None and fault is not None and message in fault.message
    assert fault.where == "verifier v reward" and fault.at.startswith("test_hooks.py:")
    assert second == (0.5, None) and outcome.observation == {"n": 1} and outcome.error is None


def test_what_a_reward_changes_reaches_nobody() -> None:
    def meddling(step: Any) -> None:
        for value in (
            step.current_state,
            step.previous_state,
            step.arguments,
            step.task.info,
            step.observation,
        ):
            value.clear()
        step.action = step.error = "mine"

    def watching(step: Any) -> float:
        seen = (step.current_state, step.previous_state, step.arguments, step.task.info, step.observation)
        expected = ({"n": step.turn}, {"n": step.turn - 1}, {"by": 1}, {"k": [1]}, {"n": step.turn})
        return float(seen == expected and step.action == "add" and step.error is None)

    session = played(HookSet("m", reward=meddling), HookSet("w", reward=watching))
    assert session.own_rewards("w") == [1.0, 1.0]
    assert [record["arguments"] for record in session.trajectory()] == [{"by": 1}] * 2
    assert session.observation == {"n": 2}


def test_rewards_may_be_async() -> None:
    async def later(step: Any) -> float:
        return 0.5

    async def failing(step: Any) -> float:
        raise LookupError("x")

    session = played(HookSet("l", reward=later), HookSet("f", reward=failing), turns=1)
    (value, _), (_, fault) = session.trail[0].rewards
    assert value == 0.5 and fault is not None and fault.type == "LookupError"


def test_a_plain_function_is_a_verifier_by_its_name() -> None:
    assert HookSet.of(deep).name == "deep" and HookSet.of(deep).reward is deep
    made = DeterministicVerifier(name="v", version="1.2.0", check=total_reward, reward=deep)
    assert HookSet.of(made) == HookSet("v", "1.2.0", total_reward, deep, None)


def check(function: Any) -> VerifierOutput | Fault:
    session = played(HookSet("v", check=function))
    assert isinstance(session.hooks, LocalHooks)
    return session.hooks.check("v", session.episode(), [0.25, -1.0])


def test_a_check_answers_an_output_or_its_fault() -> None:
    output = check(lambda episode: VerifierOutput(score=episode.apps["app"].query("look")))
    assert isinstance(output, VerifierOutput) and output.score == 2.0
    summed = check(total_reward)
    assert isinstance(summed, VerifierOutput) and summed.score == -0.75
    assert summed.evidence == ("2 rewards sum to -0.75",)
    for function, message in (
        (lambda episode: 1.0, "check returned 1.0, which is no VerifierOutput"),
        (lambda episode: None, "check returned None"),
        (lambda episode: VerifierOutput(score=math.nan), "score"),
        (lambda episode: episode.apps["app"].query("add"), "query refuses 'add'"),
        (leave, "1"),
    ):
        fault = check(function)
        assert isinstance(fault, Fault) and message in fault.message and fault.where == "verifier v check"


def test_an_infinite_sum_of_rewards_is_no_score() -> None:
    assert isinstance(sum_of_rewards([1e308, 1e308]), Fault)
    assert isinstance(sum_of_rewards([]), VerifierOutput)


def hindsight(function: Any) -> Any:
    session = played()
    episode = session.episode()
    hooks = LocalHooks([HookSet("v", hindsight=function)])
    return hooks.hindsight("v", HindsightTrial(1.0, episode.apps, episode.task, episode.trajectory))


def test_hindsight_credits_all_or_nothing() -> None:
    credits = hindsight(lambda trial: [trial.credit(step["event_id"], 0.5) for step in trial.steps("add")])
    assert [(credit.event_id, credit.value) for credit in credits] == [("step-1", 0.5), ("step-2", 0.5)]
    assert hindsight(lambda trial: None) == []

    def halfway(trial: Any) -> Any:
        yield trial.credit("step-1", 1.0)
        yield 0.5

    fault = hindsight(halfway)
    assert isinstance(fault, Fault) and "hindsight yielded 0.5; yield trial.credit" in fault.message


def test_a_number_is_told_from_what_looks_like_one() -> None:
    assert finite_number(None) is None and finite_number(2) == 2.0
    with pytest.raises(GradingFault):
        finite_number(False)
