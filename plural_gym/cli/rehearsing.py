"""Rehearsing: loads a Verifier and tries it on a made-up attempt. The process behind `rehearsal.py`.

The attempt is a few random actions in the world of the first Task that lists the Verifier. Nothing here
outlives the process, whatever an author's code does in it.

    python -m plural_gym.cli.rehearsing TOLD STUCK, two descriptors, with a `Request` on standard input
"""

import contextlib
import faulthandler
import inspect
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plural_gym.cli import describe
from plural_gym.cli.rehearsal import FUNCTIONS, LOADING, PLAYING, Found, Request
from plural_gym.errors import Fault, PluralError, Problem, ProjectError
from plural_gym.project_files import Layout

if TYPE_CHECKING:
    from plural_gym.project import Project
    from plural_gym.rl.env import GymEnv
    from plural_gym.task import Task
    from plural_gym.verifier import Verifier, VerifierOutput

ACTIONS = 8
"""Random actions that are played, after one that no App has."""
_GETS = {"check": "an Episode", "reward": "a Step", "hindsight": "a HindsightTrial"}
_GIVES = {"check": "a VerifierOutput", "reward": "a number or None"}
_WRONG = re.compile(r"(check|hindsight) (returned|yielded|credits) .*|.* which is not a number", re.DOTALL)
"""Faults that no attempt can excuse."""


def main(told: int, stuck: int) -> None:
    """Load, try, and say what was found."""
    given = json.load(sys.stdin)
    request = Request(**{**given, "skip": tuple(given["skip"])})
    warnings.simplefilter("ignore")

    def say(line: dict[str, Any]) -> None:
        os.write(told, json.dumps(line, default=str).encode() + b"\n")

    def doing(what: str) -> None:
        say({"doing": what})
        faulthandler.dump_traceback_later(request.timeout_s, exit=True, file=stuck)

    found = Rehearsing(request, doing).run()
    faulthandler.cancel_dump_traceback_later()
    say(asdict(found))
    os._exit(0)  # threads of an author's code are not waited for


class Rehearsing:
    """One Verifier, tried once."""

    def __init__(self, request: Request, doing: Callable[[str], None]) -> None:
        self.request, self.doing = request, doing
        self.found = Found(facts={"tried": None})

    def run(self) -> Found:
        from plural_gym.project import Project

        self.doing(LOADING)
        name = self.request.name
        project = Project(self.request.root)
        self.manifest = Layout(project.root).one("verifiers", name)
        try:
            verifier = project.verifiers[name]
            self.found.facts |= describe.identity("verifier", name, self.manifest, project)
        except ProjectError as error:
            self.found.problems += error.problems
            return self.found
        self.found.problems += self._forms(verifier)
        self.found.warnings += self._rubric(verifier)
        hooks = [hook for hook in FUNCTIONS if _asked(verifier, hook) and hook not in self.request.skip]
        if hooks and not self.found.problems and PLAYING not in self.request.skip:
            self._try(verifier, project, hooks)
        return self.found

    # --- without an attempt ---

    def _forms(self, verifier: "Verifier") -> Iterator[Problem]:
        """Functions that cannot be called with the one thing they get, or cannot give what they have to."""
        from plural_gym.verifier import total_reward

        for hook, function in verifier.functions().items():
            said = None
            name, gets = getattr(function, "__name__", hook), _GETS[hook]
            if function is total_reward:
                continue
            if inspect.isclass(function):
                said = f"{hook} {name!r} is a class; name a function that takes {gets}."
            elif not _takes_one(function):
                said = f"{hook} {name}{inspect.signature(function)} is called with {gets} and nothing else."
            elif hook in _GIVES and (
                inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
            ):
                said = f"{hook} {name!r} yields; return {_GIVES[hook]}."
            if said is not None:
                code = getattr(inspect.unwrap(function), "__code__", None)
                yield self._problem(code and code.co_filename, code and code.co_firstlineno, said)

    def _problem(self, file: str | None, line: int | None, message: str) -> Problem:
        """A Problem of a file of the project; of the manifest where there is none."""
        if file is None:
            return Problem(self.manifest.file, None, message)
        return Problem(Path(os.path.relpath(file, self.request.root)).as_posix(), line, message)

    def _rubric(self, verifier: "Verifier") -> Iterator[Problem]:
        """What lets a judge's or a reviewer's scores mean one thing today and another tomorrow."""
        for index, one in enumerate(getattr(verifier, "criteria", ())):
            ends = [f"{end:g}" for end in (one.min_score, one.max_score)]
            silent = [
                end for end in ends if not re.search(rf"(?<![\d.-]){end}(?![\d]|\.\d)", one.description)
            ]
            if silent:
                said = f"criterion {one.name!r} does not say what a score of {' and of '.join(silent)} means"
                form = f"{ends[0]}: what earns that. {ends[1]}: what earns that."
                yield self.manifest.problem(("criteria", index), f"{said}; describe it as in {form!r}")
        if verifier.models() and "instruction" not in getattr(verifier, "instructions", "").lower():
            said = "the judge is not told to ignore instructions in what it judges; say so in 'instructions'."
            yield self.manifest.problem(("instructions",), said)

    # --- on an attempt ---

    def _try(self, verifier: "Verifier", project: "Project", hooks: list[str]) -> None:
        task = self._first_task(project)
        if task is None:
            return
        self.doing(PLAYING)
        with contextlib.closing(task.environment.gym(tasks=[task], verifiers=[], on_fault="truncate")) as env:
            try:
                calls = _played(env)
            except PluralError as error:
                self._warn(f"Task {task.name!r} cannot be played ({error}), so its functions were not tried.")
                return
            given = None
            if "reward" in hooks:
                self._reward(verifier, task, calls)
            if "check" in hooks:
                given = self._check(verifier, env, task)
            if "hindsight" in hooks:
                self._hindsight(verifier, env, task, given)
        self.found.facts["tried"] = {"task": task.name, "actions": len(calls), "functions": hooks}

    def _first_task(self, project: "Project") -> "Task | None":
        """The first Task that lists it, where one does and one Agent can play it."""
        for folder in describe.used_by(self.request.name, project):
            try:
                task = project.tasks.get(describe.task_names(project, folder)[0])
            except PluralError as error:
                self._warn(f"its functions were not tried, as {str(error).splitlines()[0]}")
                return None
            if task.environment.party is None:
                return task
        return None

    def _reward(self, verifier: "Verifier", task: "Task", calls: list[dict[str, Any]]) -> None:
        self.doing("reward")
        env = task.environment.gym(tasks=[task], verifiers=[verifier], on_fault="truncate")
        with contextlib.closing(env):
            _play(env, calls)
            for fault in env.faults:
                self._tell("reward", fault, task)

    def _check(self, verifier: "Verifier", env: "GymEnv", task: "Task") -> "VerifierOutput | None":
        from plural_gym.grading import AttemptGrading, grade
        from plural_gym.host.hooks import HookSet, LocalHooks

        self.doing("check")
        hooks = LocalHooks([HookSet.of(verifier)])
        grading = AttemptGrading(
            env.episode, None, lambda grader, episode: hooks.check(grader.name, episode, ()), verifier
        )
        said = grade([verifier], lambda _: grading).given[verifier.name]
        if isinstance(said, Fault):
            self._tell("check", said, task)
            return None
        return said

    def _hindsight(
        self, verifier: "Verifier", env: "GymEnv", task: "Task", given: "VerifierOutput | None"
    ) -> None:
        """Try it with the score that was given and with 1, as random play seldom solves anything."""
        from plural_gym.episode import HindsightTrial
        from plural_gym.host.hooks import HookSet, LocalHooks

        self.doing("hindsight")
        hooks = LocalHooks([HookSet.of(verifier)])
        for score in dict.fromkeys((None if given is None else given.score, 1.0)):
            episode = env.episode
            trial = HindsightTrial(score, episode.apps, episode.task, episode.trajectory)
            credits = hooks.hindsight(verifier.name, trial)
            if isinstance(credits, Fault):
                self._tell("hindsight", credits, task)

    def _tell(self, hook: str, fault: Fault, task: "Task") -> None:
        """A fault, once at its line: a problem where no attempt can excuse it, else a warning."""
        file, _, line = fault.at.rpartition(":")
        places = sorted(self.manifest.folder.rglob(file)) if file and "/" not in file else []
        said = fault.message if fault.message.startswith(hook) else f"{hook}: {fault.message}"
        if fault.type != "GradingFault":
            said = f"{hook} raised {fault.type}: {fault.message}"
        said = f"{said.removesuffix('.')} (on a made-up attempt of Task {task.name!r})."
        problem = self._problem(str(places[0]), int(line), said) if places and line.isdecimal() else None
        kept = self.found.problems if _WRONG.fullmatch(fault.message) else self.found.warnings
        problem = problem or Problem(self.manifest.file, None, said)
        if problem not in kept:
            kept.append(problem)

    def _warn(self, message: str) -> None:
        self.found.warnings.append(Problem(self.manifest.file, None, message))


def _asked(verifier: "Verifier", hook: str) -> bool:
    """Whether there is something to try that costs nothing; a judge's model is not asked."""
    if hook == "check":
        return verifier.scores and verifier.runs_again and not verifier.models()
    return hook in verifier.functions()


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # one that tells nothing of itself
        return True
    return True


def _played(env: "GymEnv") -> list[dict[str, Any]]:
    """Play an action that no App has and some random ones; returns what was played."""
    env.reset(seed=0)
    env.action_space.seed(0)
    calls: list[dict[str, Any]] = [{"action": "no-such-action", "arguments": {}}]
    calls += [env.decode(env.action_space.sample()) for _ in range(ACTIONS)]
    return calls[: _play(env, calls)]


def _play(env: "GymEnv", calls: list[dict[str, Any]]) -> int:
    """Take actions until the episode ends; returns how many."""
    env.reset(seed=0)
    for number, call in enumerate(calls, 1):
        _, _, terminated, truncated, _ = env.step(call)
        if terminated or truncated:
            return number
    return len(calls)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
