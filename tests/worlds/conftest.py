"""What the tests of the shipped worlds share: the project's folder, its code, and a seat to play from."""

import json
from pathlib import Path
from typing import Any

import pytest

from plural_gym import refs
from plural_gym.app import AppDeclaration
from plural_gym.errors import ActionRejected, EpisodeOver
from plural_gym.host.host import AppHost
from plural_gym.state import thaw
from plural_gym.step import Step, TaskView

ROOT = Path(__file__).parents[2]


class Table:
    """One App and a seat before it, as a Harness finds one; counts turns and keeps a Step of each."""

    def __init__(self, reference: str, folder: str, setup: dict[str, Any], turns: int) -> None:
        self.app_class = refs.load(reference, ROOT / folder)
        self.host = AppHost({"app": AppDeclaration("python", {"class": self.app_class})})
        self.task = TaskView("", "")
        self.opening = self.host.open(self.task, {"app": setup}, 7, ROOT)
        self.turns, self.steps = turns, list[Step]()
        self.terminated = False

    @property
    def finished(self) -> bool:
        return self.terminated or len(self.steps) == self.turns

    @property
    def state(self) -> dict[str, Any]:
        frozen = self.host.snapshot("app")
        assert frozen is not None
        return thaw(frozen)

    def act(self, name: str, **arguments: Any) -> Any:
        if self.finished:
            raise EpisodeOver("the episode is over.")
        outcome = self.host.act(name, arguments)
        assert outcome.fault is None, outcome.fault
        turn = len(self.steps) + 1
        before, after = outcome.before, outcome.after
        seen, error = outcome.observation, outcome.error
        step = Step(self.task, "app", name, arguments, turn, seen, error, before, after, self.host)
        self.steps.append(step)
        self.terminated = outcome.terminated
        if outcome.error is not None:
            raise ActionRejected(outcome.error)
        return outcome.observation

    def try_act(self, name: str, **arguments: Any) -> str:
        """Why the action was refused; "" where it was not."""
        try:
            self.act(name, **arguments)
        except ActionRejected as error:
            return str(error)
        return ""


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def load() -> Any:
    """`load("harnesses/novice/play.py:play")`: an object of the project's code."""

    def load(reference: str) -> Any:
        path, _, name = reference.partition(":")
        return refs.load(f"{Path(path).name}:{name}", ROOT / Path(path).parent)

    return load


@pytest.fixture(scope="session")
def rows() -> Any:
    """`rows("envs/wordle/tasks/wordle/words.jsonl")`: the rows of a Task."""

    def rows(path: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]

    return rows


@pytest.fixture(scope="session")
def table() -> type[Table]:
    """`table("app.py:Wordle", "envs/wordle", {"secret": "crane"}, turns=12)`: an App and a seat before it."""
    return Table
