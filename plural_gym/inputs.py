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
from plural_gym.command import Command
from plural_gym.environment import Environment
from plural_gym.identity import MADE_IN_PYTHON, sources
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


_WRITTEN = {
    *("name", "version", "title", "description", "weight", "timeout_s", "reward_timeout_s"),
    *("check", "reward", "hindsight"),
}
"""What a Verifier's manifest is given in a way of its own; a kind's other fields are written as they are."""


class Inputs:
    """Writes the copy, each word once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept: dict[tuple[str, str], Any] = {}
        self.problems: dict[str, None] = {}
        """Why the copy does not hold everything, in order; empty where it does."""
        # As private as the Trials: the copy holds answer keys.
        root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
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
        elif self._new("task", task.name, task):
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
        elif self._new("environment", environment.name, environment):
            folder = self._made("environments", environment.name)
            for resource in environment.resources:
                target = folder / resource.staged_name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(environment.resource_path(resource), target)
            apps = {
                name: {"kind": app.kind, "class": self._code(folder, app.options["class"])}
                for name, app in environment.declarations.items()
                if "class" in app.options
            }
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
        elif self._new("verifier", verifier.name, verifier):
            folder = self._made("verifiers", verifier.name)
            code: dict[str, Any] = {
                hook: "total_reward" if function is total_reward else self._code(folder, function)
                for hook, function in verifier.functions().items()
            }
            check = getattr(verifier, "check", None)
            if isinstance(check, Command):
                code["check"] = self._command(folder, check)
            own: dict[str, Any] = {}
            try:
                own = verifier.model_dump(mode="json", exclude=_WRITTEN, exclude_unset=True)
            except ValueError as error:
                self.problems[f"Verifier {verifier.name!r} cannot be kept: {error}"] = None
            timeouts = verifier.timeouts_s()
            self._manifest(
                folder / "verifier.yaml",
                {
                    "name": verifier.name,
                    "version": verifier.version,
                    "kind": verifier.kind,
                    "weight": verifier.weight,
                    "timeout_s": timeouts.get("hindsight", timeouts.get("check")),
                    "reward_timeout_s": timeouts.get("reward"),
                    **own,
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
        if not self._new("agent", agent.name, agent):
            return
        harness = agent.harness if isinstance(agent.harness, str) else None
        if driver.folder is not None:
            harness = driver.folder.name
        elif harness is None:
            harness = agent.name
            folder = self._made("harnesses", harness)
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
        if not self._new(word, folder.name, folder):
            return
        target = self._root / PLURALS[word] / folder.name
        if (folder / MADE_IN_PYTHON).exists():
            self._made(PLURALS[word], folder.name)
        for path in sources(folder):
            copy = target / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)  # a script stays one that may be run

    def _command(self, folder: Path, command: Command) -> dict[str, Any]:
        """Copy the files of a command into `folder`; returns what a manifest says of it."""
        for path, inside in command.files():
            copy = folder / "command" / inside
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        said: dict[str, Any] = {"command": list(command.command), "timeout_s": command.timeout_s}
        if command.folder is not None:
            (folder / "command").mkdir(exist_ok=True)
            said["folder"] = "command"
        return {key: value for key, value in said.items() if value is not None}

    def _code(self, folder: Path, target: Any) -> str:
        """Copy the file of a function or class into `folder`; returns its reference."""
        found = origin(target)
        if found.file is None or not found.portable:
            return f"lost.py:{found.name.rpartition('.')[2]}"
        file = Path(found.file)
        copy = folder / file.name
        if copy.exists() and copy.read_bytes() != file.read_bytes():
            copy = folder / f"{file.stem}_{found.sha256 or ''}.py"
        shutil.copyfile(file, copy)
        return f"{copy.name}:{found.name}"

    def _made(self, plural: str, name: str) -> Path:
        """A folder for a word that was built in Python."""
        folder = self._root / plural / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MADE_IN_PYTHON).touch()
        return folder

    def _new(self, word: str, name: str, kept: Any) -> bool:
        """Whether this word must be written; not where it was, or where its name cannot name a folder."""
        title = word.capitalize()
        if name in (".", "..") or any(part in name for part in "/\\\0"):
            self.problems[f"{title} {name!r} cannot be kept: its name cannot name a folder"] = None
            return False
        known = self._kept.get((word, name))
        if known is None:
            self._kept[word, name] = kept
            return True
        mixed = isinstance(kept, Path) or isinstance(known, Path)
        if known is not kept and (known != kept if mixed else known.content_hash != kept.content_hash):
            self.problems[f"two different {title}s are named {name!r}; give one another name"] = None
        return False

    def _manifest(self, path: Path, content: Mapping[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in content.items() if value is not None}
        # JSON is YAML.
        path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
