"""Inputs: a Job's own copy of everything it was run with, as a project that can be opened again.

Words from a project are copied with their folders. Words built in Python are written as manifests beside a
copy of the file their code stands in. Code that stands in no file cannot be kept, and the Receipt says so.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from plural_gym.agent import Agent
from plural_gym.benchmark import Benchmark
from plural_gym.environment import Environment
from plural_gym.identity import sources
from plural_gym.refs import origin
from plural_gym.task import Task
from plural_gym.verifier import Verifier, total_reward

PLURALS = {
    "environment": "environments",
    "task": "tasks",
    "verifier": "verifiers",
    "agent": "agents",
    "harness": "harnesses",
    "benchmark": "benchmarks",
    "app": "apps",
}


class Inputs:
    """Writes the copy, each word once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept: set[tuple[str, str]] = set()
        root.mkdir(parents=True, exist_ok=True)
        self._manifest(root / "project.yaml", {"name": "inputs", "version": "0.1.0"})

    def keep(self, tasks: Iterable[Task], agents: Iterable[Agent], benchmark: Benchmark | None) -> None:
        """Copy Tasks with their Environments and Verifiers, Agents with their Harnesses, and a Benchmark."""
        for task in tasks:
            self._task(task)
        for agent in agents:
            self._agent(agent)
        if benchmark is not None and benchmark.folder is not None:
            self._folder("benchmark", benchmark.folder)

    def _task(self, task: Task) -> None:
        self._environment(task.environment)
        for verifier in task.verifiers:
            self._verifier(verifier)
        if task.folder is not None:
            self._folder("task", task.folder)
        elif self._new("task", task.name):
            folder = self._root / "tasks" / task.name
            limits = None if task.limits is None else task.limits.model_dump(exclude_unset=True)
            self._manifest(
                folder / "task.yaml",
                {
                    "name": task.name,
                    "version": task.version,
                    "instructions": task.instructions,
                    "environment": task.environment.name,
                    "verifiers": [verifier.name for verifier in task.verifiers],
                    "setup": task.setup,
                    "info": task.info,
                    "expected": task.expected,
                    "metadata": task.metadata,
                    "split": task.split,
                    "limits": limits,
                },
            )

    def _environment(self, environment: Environment) -> None:
        for app in environment.declarations.values():
            if app.folder is not None and app.folder != environment.folder:
                self._folder("app", app.folder)
        if environment.folder is not None:
            self._folder("environment", environment.folder)
        elif self._new("environment", environment.name):
            folder = self._root / "environments" / environment.name
            apps = {
                name: {"kind": app.kind, "class": self._code(folder, app.options["class"])}
                for name, app in environment.declarations.items()
                if "class" in app.options
            }
            for resource in environment.resources:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(environment.resource_path(resource), folder / resource.staged_name)
            self._manifest(
                folder / "environment.yaml",
                {
                    "name": environment.name,
                    "version": environment.version,
                    "apps": apps,
                    "runtime": environment.runtime.kind,
                    "resources": [resource.staged_name for resource in environment.resources],
                    "limits": environment.limits.model_dump(exclude_none=True),
                    "finish": environment.finish,
                    "metadata": environment.metadata,
                },
            )

    def _verifier(self, verifier: Verifier) -> None:
        if verifier.folder is not None:
            self._folder("verifier", verifier.folder)
        elif self._new("verifier", verifier.name):
            folder = self._root / "verifiers" / verifier.name
            code: dict[str, Any] = {
                hook: "total_reward" if function is total_reward else self._code(folder, function)
                for hook, function in verifier.functions().items()
            }
            timeouts = verifier.timeouts_s()
            self._manifest(
                folder / "verifier.yaml",
                {
                    "name": verifier.name,
                    "version": verifier.version,
                    "kind": verifier.kind,
                    "weight": verifier.weight,
                    "timeout_s": timeouts.get("check"),
                    "reward_timeout_s": timeouts.get("reward"),
                    **code,
                },
            )

    def _agent(self, agent: Agent) -> None:
        driver = agent.driver()
        if driver.folder is not None:
            self._folder("harness", driver.folder)
        if agent.folder is not None:
            self._folder("agent", agent.folder)
            return
        if not self._new("agent", agent.name):
            return
        harness = agent.harness if isinstance(agent.harness, str) else None
        if driver.folder is not None:
            harness = driver.folder.name
        elif harness is None:
            harness = agent.name
            folder = self._root / "harnesses" / harness
            play = self._code(folder, driver.code)
            self._manifest(
                folder / "harness.yaml", {"name": harness, "play": play, "config": dict(driver.config)}
            )
        self._manifest(
            self._root / "agents" / agent.name / "agent.yaml",
            {
                "name": agent.name,
                "version": agent.version,
                "model": agent.model,
                "instructions": agent.instructions,
                "harness": harness,
                "settings": agent.settings,
                "credentials": list(agent.credentials),
            },
        )

    def _folder(self, word: str, folder: Path) -> None:
        if not self._new(word, folder.name):
            return
        target = self._root / PLURALS[word] / folder.name
        # An Environment's folder may hold its Tasks, which are kept where Tasks are.
        inner = {f"{kind}.yaml" for kind in PLURALS if kind != word}
        skipped = {path.parent for path in folder.rglob("*.yaml") if path.name in inner and path.parent != folder}
        for path in sources(folder):
            if any(path.is_relative_to(other) for other in skipped):
                continue
            copy = target / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)

    def _code(self, folder: Path, target: Any) -> str:
        """Copy the file of a function or class into `folder`; returns its reference."""
        found = origin(target)
        if found.file is None or not found.portable:
            return f"lost.py:{found.name.rpartition('.')[2]}"
        file = Path(found.file)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / file.name)
        return f"{file.name}:{found.name}"

    def _new(self, word: str, name: str) -> bool:
        if (word, name) in self._kept:
            return False
        self._kept.add((word, name))
        return True

    def _manifest(self, path: Path, content: Mapping[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in content.items() if value is not None}
        # JSON is YAML.
        path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
