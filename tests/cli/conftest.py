"""What tests of the command line share: the command itself, and a project whose Jobs were run once."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from plural_gym.job import Job
from plural_gym.project import Project
from plural_gym.records.job_folder import JobStore

FILES = {
    "project.yaml": "name: garden\nversion: 0.1.0\n",
    "environments/garden/environment.yaml": """
        name: garden
        version: 0.1.0
        apps: {bed: {kind: python, class: "app.py:Bed"}}
        limits: {turns: 6}
    """,
    "environments/garden/app.py": """
        from plural import App, State, action

        class Patch(State):
            plants: int = 0
            wanted: int = 3

        class Bed(App):
            state: Patch

            @action
            def plant(self, count: int = 1) -> str:
                "Plant some."
                if count < 1:
                    raise ValueError("plant at least one")
                self.state.plants += count
                return f"{self.state.plants} grow"

            def terminated(self) -> bool:
                return self.state.plants >= self.state.wanted
    """,
    "verifiers/grown/verifier.yaml": """
        name: grown
        version: 0.1.0
        check: verify.py:grown
        hindsight: verify.py:last
    """,
    "verifiers/grown/verify.py": """
        from plural import Episode, HindsightTrial, VerifierOutput

        def grown(episode: Episode) -> VerifierOutput:
            bed = episode.state
            share = min(bed["plants"] / bed["wanted"], 1.0)
            found = {"plants": bed["plants"]}
            return VerifierOutput(score=share, scores=found, evidence=[f"{bed['plants']} grow"])

        def last(trial: HindsightTrial):
            if trial.score == 1.0:
                yield trial.credit(trial.steps("plant")[-1]["event_id"], 0.5)
    """,
    "verifiers/growth/verifier.yaml": "name: growth\nversion: 0.1.0\nreward: verify.py:growth\n",
    "verifiers/growth/verify.py": """
        from plural import Step

        def growth(step: Step) -> float | None:
            if step.error:
                return None
            return {1: 0.25, 2: 0.5}[step.arguments["count"]]
    """,
    "tasks/beds/task.yaml": """
        name: beds
        version: 0.1.0
        instructions: Fill the bed.
        environment: garden
        verifiers: [grown, growth]
        rows: rows.jsonl
    """,
    "tasks/beds/rows.jsonl": "".join(
        json.dumps({"name": name, "setup": {"bed": {"wanted": wanted}}}) + "\n"
        for name, wanted in (("small", 2), ("large", 6))
    ),
    "benchmarks/beds/benchmark.yaml": "name: beds\nversion: 1.0.0\ntasks: [beds/small, beds/large]\n",
    "harnesses/hands/harness.yaml": "name: hands\nversion: 0.1.0\nplay: play.py:play\n",
    "harnesses/hands/play.py": """
        from plural import ActionRejected

        def play(task, seat, count=1):
            try:
                seat.act("plant", count=0)
            except ActionRejected:
                pass
            for _ in range(2):
                seat.act("plant", count=count)
            return {"planted": 2 * count}
    """,
    "agents/slow/agent.yaml": "name: slow\nversion: 0.1.0\nharness: hands\n",
    "agents/quick/agent.yaml": "name: quick\nversion: 0.1.0\nharness: hands\nharness_options: {count: 3}\n",
}
"""`slow` plants two, `quick` three at once, for which `growth` has no price and raises."""


class Garden:
    """A project on disk with its Jobs in `.plural/jobs`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    @property
    def project(self) -> Project:
        return Project.open(self.root)

    @property
    def store(self) -> JobStore:
        return JobStore(self.root / ".plural/jobs")

    def run(self, *agents: str, benchmark: bool = True, **options: Any) -> str:
        """Run a Job of the Benchmark `beds`, or of its Tasks; returns its id."""
        found = self.project
        exam = found.benchmarks["beds"] if benchmark else None
        tasks = None if benchmark else found.tasks
        players = [found.agents[name] for name in agents]
        options = {"directory": self.root / ".plural/jobs", **options}
        return Job(tasks, players, benchmark=exam, **options).run().id


@pytest.fixture(scope="session")
def _played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    garden = Garden(tmp_path_factory.mktemp("garden") / "garden")
    for path, text in FILES.items():
        garden.write(path, text)
    garden.run("slow", "quick", job_id="job_both", attempts=2)
    return garden.root


@pytest.fixture
def garden(_played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Garden:
    """A project that a test may edit, with the finished Job `job_both`; it is the current folder."""
    shutil.copytree(_played, tmp_path / "garden")
    monkeypatch.chdir(tmp_path / "garden")
    return Garden(tmp_path / "garden")


@dataclass(frozen=True)
class Said:
    """What a command wrote."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def plural(capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """`plural("job", "list", code=0)`: runs the command in this process and returns what it wrote."""
    from plural_gym.cli.main import app

    def plural(*arguments: str, code: int = 0) -> Said:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([*arguments])
        said = Said(*capfd.readouterr())
        assert ended.value.code == code, said
        return said

    return plural
