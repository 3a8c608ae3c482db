"""Inputs: a Job's own copy of everything, as a project that can be opened again."""

import json
from pathlib import Path
from typing import Any

from plural_gym.agent import Agent
from plural_gym.environment import Environment, Limits, Resource
from plural_gym.inputs import Inputs
from plural_gym.project import Project
from plural_gym.task import Task
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier


def test_a_projects_folders_are_copied_with_what_lies_beside_the_code(workshop: Any, tmp_path: Path) -> None:
    workshop.write("harnesses/counting/words.txt", "crane\n")
    workshop.write("harnesses/counting/__pycache__/old.pyc", "")
    project = workshop.project
    inputs = Inputs(tmp_path / "inputs")
    inputs.keep(project.tasks, [project.agents["ada"]], None)
    copy = Project.open(tmp_path / "inputs")
    assert not inputs.problems and copy.validate().ok
    assert [task.content_hash for task in copy.tasks] == [task.content_hash for task in project.tasks]
    assert copy.agents["ada"].content_hash == project.agents["ada"].content_hash
    assert (copy.root / "harnesses" / "counting" / "words.txt").read_text() == "crane\n"
    assert not list(copy.root.rglob("*.pyc"))


def test_tasks_inside_an_environments_folder_are_kept_once(workshop: Any, tmp_path: Path) -> None:
    workshop.write(
        "project.yaml", "name: workshop\nversion: 0.1.0\nfolders: {tasks: environments/counter/tasks}\n"
    )
    (workshop.root / "tasks").rename(workshop.root / "environments" / "counter" / "tasks")
    project = workshop.project
    Inputs(tmp_path / "inputs").keep(project.tasks, [project.agents["ada"]], None)
    copy = Project.open(tmp_path / "inputs")
    assert copy.validate().ok and len(copy.tasks) == 3
    assert [path.relative_to(copy.root).as_posix() for path in copy.root.rglob("task.yaml")] == [
        "tasks/count/task.yaml"
    ]
    assert copy.tasks["a"].content_hash == project.tasks["a"].content_hash


def test_words_built_in_python_become_manifests(counter: Any, code: Any, tmp_path: Path) -> None:
    verify = code("def check(episode):\n    pass\ndef reward(step):\n    pass\n")
    late = code("def late(trial):\n    pass\n")
    play = code("def play(task, seat):\n    pass\n", "play.py")
    note = tmp_path / "note.md"
    note.write_text("a note")
    tasks = [
        Task(
            name=name,
            instructions="Count:\n- 'so' # and so",
            environment=Environment(
                name="counter",
                apps={"counter": counter.Counter, "other": counter.Counter},
                limits=Limits(turns=7, seconds=2.5),
                resources=[Resource(path=note, name="n.md")],
                finish="never",
                metadata={"m": [1]},
            ),
            verifiers=[
                DeterministicVerifier(
                    name="v",
                    check=verify.check,
                    reward=verify.reward,
                    hindsight=late.late,
                    weight=2,
                    timeout_s=9,
                )
            ],
            info=[1, None, {"é": 2.5}],
            expected={"n": 2**60},
            metadata={"a": "b"},
            split="train",
            limits=Limits(turns=3),
        )
        for name in ("one", "two")
    ]
    agent = Agent(
        name="ada", harness=play.play, instructions="Be kind.", settings={"t": 0.5}, credentials=["KEY"]
    )
    inputs = Inputs(tmp_path / "inputs")
    inputs.keep(tasks, [agent], None)
    copy = Project.open(tmp_path / "inputs")
    assert not inputs.problems and copy.validate().ok
    for task in tasks:
        kept = copy.tasks[task.name]
        assert kept.content_hash == task.content_hash and kept.split == "train"
        assert (kept.info, kept.expected, kept.limits) == (task.info, task.expected, task.limits)
        assert kept.verifiers[0].timeouts_s() == task.verifiers[0].timeouts_s()
    ada = copy.agents["ada"]
    assert ada.content_hash == agent.content_hash and ada.credentials == ("KEY",)
    assert copy.environments["counter"].metadata == {"m": [1]}


def test_files_of_one_name_do_not_overwrite_each_other(code: Any, tmp_path: Path) -> None:
    apps = [
        code(
            "from plural import App, action\n"
            f"class {name}(App):\n    @action\n    def go(self) -> str:\n        return ''\n",
            "app.py",
        )
        for name in ("One", "Two")
    ]
    environment = Environment(
        name="e", apps={"one": apps[0].One, "two": apps[1].Two}, resources=[apps[0].path]
    )
    task = Task(
        name="t",
        instructions="",
        environment=environment,
        verifiers=[DeterministicVerifier(name="v", check=code("def check(e):\n    pass\n").check)],
    )
    Inputs(tmp_path / "inputs").keep([task], [], None)
    kept = Project.open(tmp_path / "inputs").environments["e"]
    assert (
        kept.apps["one"].options["class"].__name__ == "One"
        and kept.apps["two"].options["class"].__name__ == "Two"
    )
    assert kept.content_hash == environment.content_hash


def check(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=0.0)


def test_what_cannot_be_kept_is_told_and_written_nowhere(code: Any, tmp_path: Path) -> None:
    def task(name: str, limits: int = 1, verifier: str = "v") -> Task:
        return Task(
            name=name,
            instructions="",
            environment=Environment(name="e", limits=Limits(turns=limits)),
            verifiers=[DeterministicVerifier(name=verifier, check=check)],
        )

    inputs = Inputs(tmp_path / "in" / "inputs")
    inputs.keep([task("a"), task("b"), task("../x"), task("..", 2), task("c", 1, "a\\b")], [], None)
    assert list(inputs.problems) == [
        "Task '../x' cannot be kept: its name cannot name a folder",
        "two different Environments are named 'e'; give one another name",
        "Task '..' cannot be kept: its name cannot name a folder",
        "Verifier 'a\\\\b' cannot be kept: its name cannot name a folder",
    ]
    assert sorted(path.name for path in (tmp_path / "in" / "inputs" / "tasks").iterdir()) == ["a", "b", "c"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["inputs"]
    manifest = json.loads((tmp_path / "in" / "inputs" / "tasks" / "a" / "task.yaml").read_text())
    assert manifest["environment"] == "e" and manifest["verifiers"] == ["v"]
