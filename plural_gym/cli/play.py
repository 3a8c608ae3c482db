"""`plural play`: a person takes the actions of a Task, at the terminal or from a pipe.

The player sees what an Agent would: instructions and what actions return. Score, evidence and rewards are
told when it is over.
"""

import json
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli import completion
from plural_gym.cli.run import choose_tasks
from plural_gym.cli.terminal import (
    JsonOption,
    ProjectOption,
    counted,
    open_project,
    print_json,
    say,
    unread_tasks_told,
)
from plural_gym.errors import UsageError

if TYPE_CHECKING:
    from plural_gym.app import ActionSpec
    from plural_gym.rl.env import GymEnv
    from plural_gym.task import Task, TaskSet

_HELP = "help shows this, quit ends the game; where an action has that name, write /help and /quit."


def register(app: typer.Typer) -> None:
    """Add `play` to the command line."""
    app.command("play", rich_help_panel="Run")(play)


def play(
    task: Annotated[
        str,
        typer.Argument(
            help="A Task, or a folder of Tasks of which one is drawn.", autocompletion=completion.task
        ),
    ],
    seed: Annotated[
        int | None, typer.Option("--seed", help="Repeats the draw and all randomness of the Apps.")
    ] = None,
    reveal_state: Annotated[
        bool, typer.Option("--reveal-state", help="Show the hidden State after every action.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play a Task yourself: guess crane, guess word=crane, or JSON.

    With --json the game goes to stderr, and its record to stdout at the end.
    """
    found = open_project(project)
    with unread_tasks_told(found):
        chosen = choose_tasks(found.tasks, [task])
    if seed is None:
        seed = secrets.randbelow(2**31)
    _Game(chosen, seed, reveal_state, as_json).play()


class _Game:
    """One episode between a person and a world."""

    def __init__(self, tasks: "TaskSet", seed: int, reveal: bool, as_json: bool) -> None:
        self._task: Task = tasks[seed % len(tasks)]
        self._seed, self._reveal, self._as_json = seed, reveal, as_json
        self._env = _seated(self._task, reveal)
        self._actions = {name: dict(spec.parameters) for name, (_, spec) in self._public().items()}
        for tool in self._env.tools():
            if tool["function"]["name"] == "finish":
                self._actions.setdefault("finish", tool["function"]["parameters"])
        self._turn_now = 0
        self._rewards: list[dict[str, Any]] = []
        """For each turn its number, the rewards by Verifier, and whose reward failed."""

    def _public(self) -> "Mapping[str, tuple[str, ActionSpec]]":
        return self._task.environment.actions.public

    def play(self) -> None:
        """Play until the episode is over or the player stops, then tell what it was worth."""
        folder, row, _ = self._task.name.partition("/")
        # A row's name is often the answer.
        say(f"{f'A Task of {folder}' if row else f'Task {folder}'}; --seed {self._seed} plays it again.")
        try:
            observation, info = self._env.reset(seed=self._seed)
            self._say(observation["text"])
            self._show_state(info)
            self._say()
            self._help()
            for line in _lines():
                if self._turn(line):
                    break
            self._end()
        finally:
            self._env.close()

    def _turn(self, line: str) -> bool:
        """Do what a line says; returns whether the game is over."""
        word = line.strip()
        if not word:
            return False
        if word in ("/quit", "/exit") or (word in ("quit", "exit") and word not in self._actions):
            return True
        if word in ("/help", "?") or (word == "help" and word not in self._actions):
            self._help()
            return False
        try:
            action = word if word.startswith("{") else read_call(word, self._actions)
        except UsageError as error:
            self._say(str(error))
            return False
        observation, _, terminated, truncated, info = self._env.step(action)
        turn = int(observation["turn"][0])
        if turn > self._turn_now:
            self._turn_now = turn
            self._rewards.append(_rewards(turn, info))
        self._say(f"rejected: {info['error']}" if info["error"] else observation["text"])
        self._show_state(info)
        return terminated or truncated

    def _end(self) -> None:
        episode, outputs, score = self._env.episode, self._env.outputs(), self._env.score()
        if self._as_json:
            print_json(
                {
                    "task": self._task.name,
                    "seed": self._seed,
                    "stop_reason": episode.stop_reason,
                    "score": score,
                    "verifiers": {name: _output(output) for name, output in outputs.items()},
                    "rewards": self._rewards,
                    "faults": [str(fault) for fault in self._env.faults],
                    "steps": list(episode.trajectory),
                }
            )
            return
        self._say()
        over = f"Over ({episode.stop_reason})" if episode.stop_reason else "Stopped"
        self._say(f"{over} after {counted(self._turn_now, 'turn')}. The Task was {self._task.name}.")
        self._say(f"score {'unknown' if score is None else f'{score:g}'}")
        for name, output in outputs.items():
            told = _output(output)
            self._say(f"  {name}: " + (told["fault"] or f"{told['score']:g}"))
            for line in told["evidence"]:
                self._say(f"    {line}")
        self._say_rewards()
        for fault in self._env.faults:
            self._say(f"! {fault}")

    def _say_rewards(self) -> None:
        """For each Verifier the turns that earned something, or whose reward failed."""
        told: dict[str, list[str]] = {}
        sums: dict[str, float] = {}
        for step in self._rewards:
            for name, value in step["rewards"].items():
                told.setdefault(name, []).append(f"{value:+g} at turn {step['turn']}")
                sums[name] = sums.get(name, 0.0) + value
            for name in step["faults"]:
                told.setdefault(name, []).append(f"fault at turn {step['turn']}")
        for name, parts in told.items():
            total = f"; in all {sums[name]:+g}" if name in sums else ""
            self._say(f"rewards of {name}: {', '.join(parts)}{total}")

    def _help(self) -> None:
        self._say("Actions:")
        public = self._public()
        for name, schema in self._actions.items():
            shown = " ".join(_argument(key, part, schema) for key, part in schema["properties"].items())
            about = public[name][1].description if name in public else "End the attempt, with an answer."
            self._say(f"  {name} {shown}".rstrip())
            for line in about.splitlines():
                self._say(f"      {line}".rstrip())
        self._say(_HELP)

    def _show_state(self, info: Mapping[str, Any]) -> None:
        if self._reveal:
            self._say(f"State: {json.dumps(info['state'], ensure_ascii=False, default=str)}")

    def _say(self, text: str = "") -> None:
        """The game is what this command prints; beside JSON it steps back to stderr."""
        if self._as_json:
            say(text)
        else:
            typer.echo(text)


def _seated(task: "Task", reveal: bool) -> "GymEnv":
    """The world of one Task, with `finish` exactly where a Job would offer it to a Harness.

    A GymEnv leaves `finish` out where an App ends the episode itself, for the sake of random policies.
    """
    environment = task.environment
    env: GymEnv = environment.gym(tasks=[task], reveal_state=reveal)
    env._finishes = environment.finish != "never" and "finish" not in environment.actions.table
    return env


def _rewards(turn: int, info: Mapping[str, Any]) -> dict[str, Any]:
    """What a turn was worth, from the `info` of its step."""
    from plural_gym.rl.env import FAULT, VALUE

    status = info["reward_status"]
    return {
        "turn": turn,
        "rewards": {name: value for name, value in info["rewards"].items() if status[name] == VALUE},
        "faults": [name for name in status if status[name] == FAULT],
    }


def read_call(line: str, actions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What `guess crane` or `guess word=crane` calls: a mapping with `action` and `arguments`.

    Arguments without a name are taken in order; the last text takes the rest of the line. An action that
    there is not is left to the world to answer.

    Args:
        line: an action's name and its arguments, as in a shell.
        actions: JSON Schema of the arguments, by action.

    Raises:
        UsageError: more arguments than the action takes.
    """
    try:
        name, *words = shlex.split(line)
    except ValueError:
        name, *words = line.split()
    if name not in actions:
        return {"action": name, "arguments": {}}
    properties = dict(actions[name]["properties"])
    arguments: dict[str, Any] = {}
    for position, word in enumerate(words):
        key, equals, value = word.partition("=")
        if equals and key in properties:
            arguments[key] = _read_value(value, properties[key])
            continue
        free = [key for key in properties if key not in arguments]
        if not free:
            last = list(arguments)[-1] if arguments else None
            if last is not None and isinstance(arguments[last], str) and _is_text(properties[last]):
                arguments[last] = " ".join([arguments[last], *words[position:]])
                break
            takes = ", ".join(properties) or "nothing"
            raise UsageError(f"{name} takes {takes}; there is no argument for {word!r}.")
        arguments[free[0]] = _read_value(word, properties[free[0]])
    return {"action": name, "arguments": arguments}


def _read_value(text: str, schema: Mapping[str, Any]) -> Any:
    """A word as the argument's type reads it: text as it is, anything else as JSON where it is JSON."""
    if _is_text(schema):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_text(schema: Mapping[str, Any]) -> bool:
    if schema.get("type") == "string":
        return True
    choices = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return bool(choices) and all(isinstance(choice, str) for choice in choices)


def _argument(name: str, schema: Mapping[str, Any], all_of: Mapping[str, Any]) -> str:
    kind = "|".join(map(str, schema["enum"])) if "enum" in schema else schema.get("type", "")
    shown = f"{name}:{kind}" if isinstance(kind, str) and kind else name
    return f"<{shown}>" if name in all_of.get("required", ()) else f"[{shown}]"


def _output(output: Any) -> dict[str, Any]:
    """A check's output or fault, as JSON values."""
    if hasattr(output, "evidence"):
        return {"score": output.score, "evidence": list(output.evidence), "fault": None}
    return {"score": None, "evidence": [], "fault": str(output)}


def _lines() -> Iterator[str]:
    """What the player types, until the end of input; a prompt only in a terminal."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    with suppress(ImportError):
        import readline  # noqa: F401  gives `input` a history and keys to edit with
    while True:
        try:
            yield input("> ")
        except EOFError:
            return
