"""What tests of several folders share: author code in files of its own, and Jobs over it."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from plural_gym import refs
from plural_gym.agent import Agent
from plural_gym.job import Job, JobResult
from plural_gym.task import Task

COUNTER = """
from plural import App, State, action

class Count(State):
    n: int = 0
    goal: int = 3

class Counter(App):
    state: Count

    @action
    def add(self, by: int = 1) -> int:
        "Add to the count."
        if by <= 0:
            raise ValueError(f"by is above 0, got {by}")
        self.state.n += by
        return self.state.n

    @action(read_only=True)
    def look(self) -> dict:
        "Show the count."
        return {"n": self.state.n}

    @action
    def roll(self) -> int:
        "Add a random number."
        drawn = int(self.rng.integers(1, 1000))
        self.state.n += drawn
        return drawn

    def terminated(self) -> bool:
        return self.state.n == self.state.goal
"""


class Code:
    """A file of author code: its names are attributes."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")

    def __getattr__(self, name: str) -> Any:
        return refs.load(f"{self.path.name}:{name}", self.path.parent)

    def at(self, fragment: str) -> str:
        """`verify.py:14`, the one line that holds `fragment`."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        (number,) = [number for number, line in enumerate(lines, 1) if fragment in line]
        return f"{self.path.name}:{number}"


@pytest.fixture
def code(tmp_path: Path) -> Callable[..., Code]:
    """`code(text, "verify.py")`: author code in a file, loaded as a project's."""
    made: list[Code] = []

    def code(text: str, name: str = "verify.py") -> Code:
        made.append(Code(tmp_path / f"code-{len(made)}" / name, text))
        return made[-1]

    return code


@pytest.fixture
def counter(code: Callable[..., Code]) -> Code:
    """An App that counts to a goal: `counter.Counter`."""
    return code(COUNTER, "app.py")


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., JobResult]:
    """`run(task, play)`: a Job of one Agent that plays with `play`, run to its end."""

    def run(tasks: Task | Iterable[Task], play: Any, **options: Any) -> JobResult:
        chosen = [tasks] if isinstance(tasks, Task) else list(tasks)
        agents = options.pop("agents", None) or [Agent(name="player", harness=play)]
        return Job(tasks=chosen, agents=agents, directory=tmp_path / "jobs", **options).run()

    return run


class Workshop:
    """A project on disk: a counter world with three Tasks, a Verifier that rewards, and an Agent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("project.yaml", "name: workshop\nversion: 0.1.0\n")
        self.write("environments/counter/app.py", COUNTER)
        self.write(
            "environments/counter/environment.yaml",
            """
            name: counter
            version: 0.1.0
            apps: {counter: {kind: python, class: "app.py:Counter"}}
            resources: [notes.md]
            limits: {turns: 10}
            """,
        )
        self.write("environments/counter/notes.md", "count to the goal\n")
        self.write(
            "verifiers/full/verify.py",
            """
            from plural import Episode, Step, VerifierOutput

            def full(episode: Episode) -> VerifierOutput:
                return VerifierOutput(score=float(episode.state["n"] >= episode.state["goal"]))

            def growth(step: Step) -> float | None:
                return step.current_state["n"] - step.previous_state["n"] or None
            """,
        )
        self.write(
            "verifiers/full/verifier.yaml",
            "name: full\nversion: 0.1.0\nkind: deterministic\n"
            "check: verify.py:full\nreward: verify.py:growth\n",
        )
        self.write(
            "harnesses/counting/play.py",
            """
            def play(task, seat):
                seat.act("roll")
                for _ in range(3):
                    seat.act("add")
                return "done"
            """,
        )
        self.write(
            "harnesses/counting/harness.yaml",
            "name: counting\nversion: 0.1.0\nkind: scripted\nplay: play.py:play\n",
        )
        self.write("agents/ada/agent.yaml", "name: ada\nversion: 0.1.0\nharness: counting\n")
        self.write(
            "tasks/count/task.yaml",
            """
            name: count
            version: 0.1.0
            instructions: Count.
            environment: counter
            verifiers: [full]
            rows: rows.jsonl
            """,
        )
        goals = {"a": 2000, "b": 5, "c": 7}
        rows = [{"name": name, "setup": {"counter": {"goal": goal}}} for name, goal in goals.items()]
        self.write("tasks/count/rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def write(self, path: str, text: str) -> None:
        """Write one file, with the indent of a test taken off."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a part of a file that is there."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    @property
    def project(self) -> Any:
        """The project as it is on disk now."""
        from plural_gym.project import Project

        return Project.open(self.root)

    def job(self, **options: Any) -> Job:
        """A Job of all its Tasks and its Agent."""
        project = self.project
        options = {"directory": self.root.parent / "jobs", **options}
        return Job(tasks=project.tasks, agents=[project.agents["ada"]], **options)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """A project on disk, `workshop.root`, that tests may edit."""
    return Workshop(tmp_path / "workshop")
