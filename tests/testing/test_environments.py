"""`check_environment`: the shipped worlds keep every rule; for each rule a world that breaks it."""

import random
from typing import Any

import gymnasium as gym
import pytest

from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.errors import AppFault
from plural_gym.project import Project
from plural_gym.rl.env import GymEnv
from plural_gym.state import State
from plural_gym.task import Task
from plural_gym.testing import environments
from plural_gym.testing.conformance import ConformanceError
from plural_gym.testing.environments import check_environment
from plural_gym.verifier import total_reward
from plural_gym.verifiers.deterministic import DeterministicVerifier


class Board(State):
    total: int = 0


class Dice(App):
    state: Board

    @action
    def roll(self) -> int:
        number = int(self.rng.integers(1, 7))
        self.state.total += number
        return number

    def terminated(self) -> bool:
        return self.state.total > 30


class Fragile(Dice):
    @action
    def roll(self) -> int:
        self.state.total += 1
        if self.state.total > 20:
            raise KeyError("die")
        return 1


class Unwritten(GymEnv):
    """Warns in check_env: it has no spec to be made from."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.spec = None


class DrawsAnew(GymEnv):
    """Forgets its seed after the first episode."""

    def reset(self, *, seed: int | None = None, **options: Any) -> Any:
        return super().reset(seed=random.getrandbits(30) if seed is None else seed, **options)


class OtherText(GymEnv):
    def step(self, action: Any, /, **arguments: Any) -> Any:
        observation, *rest = super().step(action, **arguments)
        return {**observation, "text": "\ud800" if observation["turn"][0] > 3 else ""}, *rest


class MoreInfo(GymEnv):
    def step(self, action: Any, /, **arguments: Any) -> Any:
        *rest, info = super().step(action, **arguments)
        return *rest, {**info, "state": {}}


class Unnamed(GymEnv):
    def step(self, action: Any, /, **arguments: Any) -> Any:
        *rest, info = super().step(action, **arguments)
        return *rest, {**info, "rewards": {}, "reward_status": {}}


class Shaped(GymEnv):
    def step(self, action: Any, /, **arguments: Any) -> Any:
        observation, reward, *rest = super().step(action, **arguments)
        return observation, reward + 1.0, *rest


class GoesOn(GymEnv):
    def step(self, action: Any, /, **arguments: Any) -> Any:
        try:
            return super().step(action, **arguments)
        except gym.error.ResetNeeded:
            return {}, 0.0, True, False, {}


class RestoresBadly(GymEnv):
    def restore(self, checkpoint: Any) -> Any:
        observation, info = super().restore(checkpoint)
        return {**observation, "text": ""}, info


class RestoresElsewhere(GymEnv):
    def restore(self, checkpoint: Any) -> Any:
        back = super().restore(checkpoint)
        assert self._host is not None
        self._host.act("roll", {})
        return back


class CannotRestore(GymEnv):
    def restore(self, checkpoint: Any) -> Any:
        raise AppFault("lost")


class ClosesOnce(GymEnv):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise OSError("closed already")
        self.closed = True


class Faced(Environment):
    """A world whose live face is another class."""

    face: Any = GymEnv

    def gym(self, **options: Any) -> Any:
        return self.face(self, **options)


def world(face: type[GymEnv] = GymEnv, app: type[App] = Dice) -> Environment:
    return Faced(name="dice", apps={"dice": app}, limits=Limits(turns=60), face=face)


def rolled(step: Any) -> float:
    return float(step.current_state["total"] - step.previous_state["total"])


def tasks(environment: Environment) -> list[Task]:
    verifier = DeterministicVerifier(name="rolled", check=total_reward, reward=rolled)
    return [
        Task(
            name=f"from-{total}",
            instructions="Roll.",
            environment=environment,
            setup={"dice": {"total": total}},
            verifiers=(verifier,),
        )
        for total in (0, 5)
    ]


BROKEN: list[tuple[str, Environment, str]] = [
    ("PASSES_CHECK_ENV", world(Unwritten), "spec"),
    (
        "RANDOM_ACTIONS_NEVER_RAISE",
        world(app=Fragile),
        "action .* of seed 0, {'action': 'roll'.* raised AppFault",
    ),
    ("OBSERVATIONS_FIT", world(OtherText), "after action 3 of seed 0"),
    ("INFO_IS_CONSTANT", world(MoreInfo), "'state': {}"),
    ("REWARDS_ADD_UP", world(Unnamed), r"'rewards': {}.*rewarding are \['rolled'\]"),
    ("REWARDS_ADD_UP", world(Shaped), "{'rolled': .*} and reward"),
    ("SAME_SEED_SAME_COURSE", world(DrawsAnew), "seed 0: event .* was"),
    ("OVER_IS_OVER", world(GoesOn), "it returned"),
    ("RESTORE_BRINGS_BACK", world(RestoresBadly), "came back as {'text': ''"),
    ("RESTORE_BRINGS_BACK", world(RestoresElsewhere), "restored: event 0 was"),
    ("RESTORE_BRINGS_BACK", world(CannotRestore), "raised AppFault: lost"),
    ("CLOSES_TWICE", world(ClosesOnce), "the second close.. raised OSError: closed already"),
]


@pytest.mark.parametrize(("rule", "environment", "seen"), BROKEN)
def test_what_breaks_a_rule_is_caught(rule: str, environment: Environment, seen: str) -> None:
    with pytest.raises(ConformanceError, match=seen) as raised:
        check_environment(environment, tasks(environment))
    assert raised.value.rule is getattr(environments, rule)


def test_every_rule_is_broken_once(rules_of: Any) -> None:
    assert rules_of(environments) == {rule for rule, _, _ in BROKEN}


def test_a_world_that_keeps_the_rules_and_one_that_cannot_be_saved(capsys: Any) -> None:
    class Held(Dice):
        def reset(self, task: Any) -> None:
            self.held = (part for part in "abc")

    check_environment(world(), tasks(world()))
    check_environment(world(app=Held))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["support-desk", "wordle"])
def test_the_shipped_worlds(name: str, project: Project) -> None:
    check_environment(project.environments[name], project.tasks_of(name))
    check_environment(project.environments[name])
