"""GymEnv: an Environment as a live `gymnasium.Env`, for training loops and for trying things by hand.

Apps and hooks run in this process, without time limits on their code; Jobs run them in workers.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from pydantic_core import to_json

from plural_gym.environment import Environment
from plural_gym.episode import Episode
from plural_gym.errors import (
    ActionRejected,
    AppFault,
    CheckpointError,
    Fault,
    UnknownName,
    UsageError,
    suggest,
)
from plural_gym.host.direct import DirectSession
from plural_gym.host.hooks import HookSet, LocalHooks, Reward
from plural_gym.host.host import AppHost, Outcome
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.host.session import Session
from plural_gym.rl.codec import ActionCodec, UnknownAction, observation_space
from plural_gym.state import thaw
from plural_gym.step import TaskView
from plural_gym.task import Task, TaskSet, check_setup
from plural_gym.verifier import Verifier, VerifierOutput, combine

Grader = Verifier | Callable[..., Any]

_OPTIONS = ("task", "setup", "verifiers")
_COUNTED = 1025
"""Turns below this number have their array made in advance; copying one costs a fifth of making it."""
_KEPT_PLANS = 16_384
FINISH_SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "default": "", "description": "Your final answer, if one is asked for."}
    },
    "additionalProperties": False,
}
NO_STATUS, VALUE, FAULT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A live episode as a value: `GymEnv.restore` takes it, any number of times."""

    apps: Mapping[str, Any]
    session: Mapping[str, Any]
    text: str
    task: Task | None
    setup: Mapping[str, Any]
    seed: int


class _Plan(NamedTuple):
    """All that an episode needs of its Task; holds the Task, so that its id stays its own."""

    task: Task | None
    view: TaskView
    setup: Mapping[str, Any]
    session: Session


class GymEnv(gym.Env[dict[str, Any], Any]):
    """One Agent's view of an Environment.

    Observation: `{"text": str, "turn": int32 array (1,)}`. The text of `reset` is the Task's instructions
    with the opening observation; of `step`, what the action returned: a string as it is, else compact JSON,
    or `{"error": ...}` for rejected input. Action: an element of `action_space`, a mapping
    `{"action": name, "arguments": {...}}`, its JSON, or a name with keywords. Wrong input is a rejected step,
    never an exception. `reward` is the sum of the Verifiers' step rewards.

    Args:
        environment: the world.
        tasks: what `reset` draws from by seed; none: an unnamed Task without instructions.
        task: name of the one Task to play, out of `tasks`.
        split: draw only from this split of `tasks`.
        verifiers: graders in place of the Task's own; Verifiers or plain functions of a Step.
        score_as_reward: add the Trial's score to the last step's reward.
        reveal_state: show every App's State in `info["state"]`; for debugging only.
        on_fault: "raise" AppFault when an App's code fails, or "truncate" the episode.
        max_chars: longest observation text; longer ones are cut, with a mark.
        render_mode: "ansi", "human" or None.
    """

    metadata = {"render_modes": ["ansi", "human"], "render_fps": 2}  # noqa: RUF012  gymnasium's own form

    def __init__(
        self,
        environment: Environment,
        *,
        tasks: Sequence[Task] | None = None,
        task: str | None = None,
        split: str | None = None,
        verifiers: Sequence[Grader] | None = None,
        score_as_reward: bool = False,
        reveal_state: bool = False,
        on_fault: Literal["raise", "truncate"] = "raise",
        max_chars: int = 4096,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise UsageError(
                f"render_mode {render_mode!r} is unknown; "
                f"{suggest(render_mode, self.metadata['render_modes'])}"
            )
        if on_fault not in ("raise", "truncate"):
            raise UsageError(f"on_fault is 'raise' or 'truncate', not {on_fault!r}.")
        self._arguments = {
            "environment": environment,
            "tasks": tasks,
            "task": task,
            "split": split,
            "verifiers": verifiers,
            "score_as_reward": score_as_reward,
            "reveal_state": reveal_state,
            "on_fault": on_fault,
            "max_chars": max_chars,
            "render_mode": render_mode,
        }
        self.environment = environment
        self.render_mode = render_mode
        self._tasks = _choose(environment, tasks, task, split)
        self._verifiers = None if verifiers is None else tuple(verifiers)
        self._score_as_reward = score_as_reward
        self._reveal = reveal_state
        self._raise = on_fault == "raise"
        self._max_chars = max_chars
        self._has_resources = bool(environment.resources)
        self._codec = _codec(environment)
        self._parse = self._codec.parse
        self._finishes = "finish" not in environment.actions.table and "finish" in self._codec.names
        self.action_space = self._codec.space
        self.observation_space = observation_space(max_chars)
        self._turns = [np.array([turn], dtype=np.int32) for turn in range(_COUNTED)]
        self._host: AppHost | None = None
        self._sessions: dict[Any, Session] = {}
        self._plans: dict[int, _Plan] = {}
        self._session: Session | None = None
        self._staged: Path | None = None
        self._task: Task | None = None
        self.spec = EnvSpec(
            id=f"plural/{environment.name}-v{environment.version.split('.')[0]}",
            entry_point="plural_gym.rl.env:GymEnv",
            max_episode_steps=None,
            kwargs={key: value for key, value in self._arguments.items() if key != "render_mode"},
        )

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        verifiers: Sequence[Grader] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode.

        Args:
            seed: repeats everything from here on: which Tasks are drawn, and all randomness in Apps.
            options: {"task": name or Task, "setup": {app: {field: value}}, "verifiers": [...]}, all optional.
            verifiers: graders of this episode in place of the Task's.
        """
        if seed is not None:
            super().reset(seed=seed)
        setup: Mapping[str, Any] | None = None
        chosen: Any = None
        if options:
            for key in options:
                if key not in _OPTIONS:
                    raise UsageError(f"reset has no option {key!r}; {suggest(key, _OPTIONS)}")
            chosen, setup = options.get("task"), options.get("setup")
            verifiers = options.get("verifiers") if verifiers is None else verifiers
        draw = self.np_random.bit_generator.random_raw() >> 1
        return self._begin(self._pick(chosen, draw), setup, draw, verifiers)

    def _pick(self, chosen: Any, draw: int) -> Task | None:
        tasks = self._tasks
        if chosen is None:
            return None if tasks is None else tasks.get(tasks.names[draw % len(tasks.names)])
        if isinstance(chosen, Task):
            if chosen.environment != self.environment:
                raise UsageError(
                    f"Task {chosen.name!r} plays in {chosen.environment.name!r}, "
                    f"not {self.environment.name!r}."
                )
            return chosen
        if tasks is None:
            raise UnknownName(f"there is no Task {chosen!r}: this environment was made without tasks.")
        return tasks.get(chosen)

    def _begin(
        self,
        task: Task | None,
        setup: Mapping[str, Any] | None,
        seed: int,
        verifiers: Sequence[Grader] | None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if setup is not None:
            check_setup(self.environment, setup, "options['setup']")
        plan = None if verifiers is not None else self._plans.get(id(task))
        if plan is None:
            plan = self._plan(task, verifiers)
        self._task, view, own_setup, session = plan
        self._session = session
        self._names = session.hooks.rewarding
        self._setup = own_setup if setup is None else setup
        self._seed = seed
        resources = self._resources() if self._has_resources else NO_RESOURCES
        opening = session.open(view, self._setup, seed, resources)
        text = view.instructions
        if opening is not None:
            text = f"{text}\n\n{_text(opening)}" if text else _text(opening)
        self._transcript = [text]
        self._last_text = text
        if self.render_mode == "human":
            print(text)
        names = self._names
        info = {
            "rewards": dict.fromkeys(names, 0.0),
            "reward_status": dict.fromkeys(names, NO_STATUS),
            "action": "",
            "error": "",
        }
        if self._reveal:
            info["state"] = self._states()
        return self._observe(text, 0), info

    def step(  # type: ignore[override]
        self, action: Any, /, **arguments: Any
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take one action, in any of the forms of the class docstring.

        Raises:
            gymnasium.error.ResetNeeded: the episode is over, or has not begun.
            AppFault: an App's code failed and `on_fault` is "raise".
        """
        session = self._session
        if session is None or session.stop_reason is not None:
            why = (
                "there is no episode yet"
                if session is None
                else f"the episode is over ({session.stop_reason})"
            )
            raise gym.error.ResetNeeded(f"{why}; call reset() before step().")
        if arguments:
            name = action
            if type(name) is not str:
                raise UsageError(f"keywords go with an action's name, got {action!r}.")
        else:
            try:
                parse = self._parse
                name, arguments = parse(action)
            except UnknownAction as error:  # the host answers it, as it does for a name with keywords
                name, arguments = error.name, dict(error.arguments)
            except ActionRejected as error:
                return self._result(session, session.reject("", str(error)))
        if self._finishes and name == "finish":
            return self._finish(session, arguments)
        return self._result(session, session.act(name, arguments))

    def _result(
        self, session: Session, outcome: Outcome
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        error = outcome.error
        text = outcome.observation
        if error is not None or outcome.fault is not None:
            text = _text({"error": "the action failed" if error is None else error})
        elif type(text) is not str:
            text = _text(text)
        self._last_text = text
        names, rewards = self._names, outcome.rewards
        if len(names) == 1 and rewards and rewards[0][1] is None:
            value = rewards[0][0]  # the usual case, for which the loop below costs twice as much
            total = 0.0 if value is None else value
            parts = {names[0]: total}
            status = {names[0]: NO_STATUS if value is None else VALUE}
        else:
            total, parts, status = _parts(names, rewards)
        info = {
            "rewards": parts,
            "reward_status": status,
            "action": outcome.action,
            "error": "" if error is None else error,
        }
        if outcome.stop_reason is not None:
            if outcome.fault is not None:
                if self._raise:
                    raise AppFault(f"{outcome.fault}; the episode ends here.", outcome.fault)
                info["error"] = str(outcome.fault)
            elif self._score_as_reward:
                total += self.score() or 0.0
        if self._reveal:
            info["state"] = self._states()
        if self.render_mode is not None:
            self._show(outcome, text, total)
        turn = session.turn
        if turn < _COUNTED and len(text) <= self._max_chars:  # as `_observe`, without the call
            observation = {"text": text, "turn": self._turns[turn].copy()}
        else:
            observation = self._observe(text, turn)
        return observation, total, outcome.terminated, outcome.truncated, info

    def _finish(
        self, session: Session, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        answer = arguments.get("answer")
        unknown = [key for key in arguments if key != "answer"]
        if unknown:
            said = f"finish: {unknown[0]} is no argument (it takes: answer)."
            return self._result(session, session.reject("finish", said, app=False))
        session.finish(answer)
        outcome = Outcome(None, "finish", arguments, "", None, None, None, None, True, False)
        outcome.stop_reason = session.stop_reason
        return self._result(session, outcome)

    def _observe(self, text: str, turn: int) -> dict[str, Any]:
        if len(text) > self._max_chars:
            text = _cut(text, self._max_chars)
        shown = self._turns[turn].copy() if turn < _COUNTED else np.array([turn], dtype=np.int32)
        return {"text": text, "turn": shown}

    def _plan(self, task: Task | None, verifiers: Sequence[Grader] | None) -> "_Plan":
        """What an episode of a Task starts from; made once, since reading a Task costs more than a step."""
        session = self._session_for(task, verifiers)
        if task is None:
            return _Plan(None, TaskView("", ""), {}, session)
        plan = _Plan(task, task.view, task.setup, session)
        if verifiers is None:
            if len(self._plans) >= _KEPT_PLANS:
                self._plans.clear()
            self._plans[id(task)] = plan
        return plan

    def _session_for(self, task: Task | None, verifiers: Sequence[Grader] | None) -> Session:
        graders: tuple[Grader, ...]
        if verifiers is not None:
            graders = tuple(verifiers)
        elif self._verifiers is not None:
            graders = self._verifiers
        else:
            graders = task.verifiers if task is not None else ()
        limits = self.environment.limits if task is None else task.effective_limits
        key = (id(limits), *map(id, graders))
        known = self._sessions.get(key)
        if known is not None:
            return known
        for grader in graders:
            if not (isinstance(grader, Verifier) or callable(grader)):
                raise UsageError(f"verifiers are Verifiers or functions of a Step, got {grader!r}.")
        sets = tuple(HookSet.of(grader) for grader in graders)
        names = [hooks.name for hooks in sets]
        doubled = next((name for name in names if names.count(name) > 1), None)
        if doubled is not None:
            raise UsageError(f"two verifiers are named {doubled!r}; rewards are listed by name.")
        if self._host is None:
            self._host = AppHost(self.environment.declarations, self.environment.actions)
        session = DirectSession(self._host, LocalHooks(sets), limits)
        if len(self._sessions) >= 64:
            self._sessions.clear()
        self._sessions[key] = session
        session.graders = graders
        return session

    def _resources(self) -> Path:
        if self._staged is None:
            self._staged = Path(tempfile.mkdtemp(prefix="plural-"))
            weakref.finalize(self, shutil.rmtree, self._staged, ignore_errors=True)
            stage(self.environment, self._staged)
        return self._staged

    def _states(self) -> dict[str, Any]:
        assert self._host is not None
        return {
            name: None if frozen is None else thaw(frozen) for name, frozen in self._host.snapshots().items()
        }

    def outputs(self) -> dict[str, VerifierOutput | Fault]:
        """What every check says of the episode so far, by Verifier."""
        session = self._live()
        hooks = session.hooks
        assert isinstance(hooks, LocalHooks)
        return {
            hook_set.name: hooks.check(hook_set.name, session.episode(), session.own_rewards(hook_set.name))
            for hook_set in hooks.sets
            if hook_set.check is not None
        }

    def score(self) -> float | None:
        """The episode's score so far by the checks attached; None without one, or where one fails."""
        outputs = self.outputs()
        weights = {
            grader.name: grader.weight for grader in self._live().graders if isinstance(grader, Verifier)
        }
        return combine(
            (weights.get(name, 1.0), output.score if isinstance(output, VerifierOutput) else None)
            for name, output in outputs.items()
        )

    @property
    def episode(self) -> Episode:
        """The record so far, as a check would see it."""
        return self._live().episode()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Reward functions' failures in this episode, in order."""
        return tuple(
            fault for outcome in self._live().trail for _, fault in outcome.rewards if fault is not None
        )

    def tools(self) -> list[dict[str, Any]]:
        """The actions as OpenAI function tools."""
        tools = self.environment.actions.tools()
        if self._finishes:
            tools.append(
                {
                    "type": "function",
                    "function": {
                        "name": "finish",
                        "description": "End the attempt.",
                        "parameters": FINISH_SCHEMA,
                    },
                }
            )
        return tools

    def encode(self, name: str, /, **arguments: Any) -> Any:
        """The element of `action_space` for a call."""
        return self._codec.encode(name, arguments)

    def decode(self, element: Any) -> dict[str, Any]:
        """The call that an element of `action_space` stands for."""
        name, arguments = self._codec.decode(element)
        return {"action": name, "arguments": arguments}

    def checkpoint(self) -> Checkpoint:
        """The live episode as a value: State, randomness, turn, limits and what happened so far.

        Raises:
            CheckpointError: an App cannot be saved; says which.
        """
        session = self._live()
        assert self._host is not None
        return Checkpoint(
            self._host.save(), session.save(), self._last_text, self._task, self._setup, self._seed
        )

    def restore(self, checkpoint: Checkpoint) -> tuple[dict[str, Any], dict[str, Any]]:
        """Go back to a checkpoint of this Environment; returns `observation, info` as `reset` does."""
        if not isinstance(checkpoint, Checkpoint) or set(checkpoint.apps) != set(self.environment.apps):
            raise CheckpointError(f"this is no checkpoint of Environment {self.environment.name!r}.")
        graders = self._session.graders if self._session is not None else None
        _, info = self._begin(checkpoint.task, checkpoint.setup, checkpoint.seed, graders)
        session = self._live()
        assert self._host is not None
        self._host.restore(checkpoint.apps)
        session.load(checkpoint.session)
        self._last_text = checkpoint.text
        if self._reveal:
            info["state"] = self._states()
        return self._observe(checkpoint.text, session.turn), info

    def _live(self) -> Session:
        if self._session is None:
            raise gym.error.ResetNeeded("there is no episode yet; call reset() first.")
        return self._session

    def _show(self, outcome: Outcome, text: str, reward: float) -> None:
        shown = ", ".join(f"{key}={value!r}" for key, value in outcome.arguments.items())
        line = f"> {outcome.action}({shown})\n{text}" + (f"\nreward {reward:+g}" if reward else "")
        self._transcript.append(line)
        if self.render_mode == "human":
            print(line)

    def render(self) -> Any:
        """The transcript so far in mode "ansi"; None in "human", which prints as it goes."""
        if self.render_mode is None:
            gym.logger.warn("render() needs a render_mode; give one to make(), such as render_mode='ansi'.")
            return None
        return "\n".join(self._transcript) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Let go of the Apps and the staged Resources. Safe to call twice."""
        if self._host is not None:
            self._host.close()
            self._host = None
        self._session = None
        self._sessions.clear()
        self._plans.clear()
        if self._staged is not None:
            shutil.rmtree(self._staged, ignore_errors=True)
            self._staged = None

    def __getstate__(self) -> dict[str, Any]:
        return self._arguments

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _parts(
    names: tuple[str, ...], rewards: Sequence[Reward]
) -> tuple[float, dict[str, float], dict[str, int]]:
    """The step's reward, each Verifier's part, and what each part is."""
    total = 0.0
    parts = dict.fromkeys(names, 0.0)
    status = dict.fromkeys(names, NO_STATUS)
    for name, (value, fault) in zip(names, rewards, strict=False):
        if value is not None:
            total += value
            parts[name] = value
            status[name] = VALUE
        elif fault is not None:
            status[name] = FAULT
    return total, parts, status


def _choose(
    environment: Environment, tasks: Sequence[Task] | None, task: str | None, split: str | None
) -> TaskSet | None:
    if tasks is None:
        if task is not None or split is not None:
            raise UsageError("task= and split= choose from tasks=, which was not given.")
        return None
    chosen = tasks if isinstance(tasks, TaskSet) else TaskSet.of(tasks)
    if len(chosen) == 0:
        raise UsageError("tasks= is empty; give at least one Task, or leave it out.")
    if not isinstance(tasks, TaskSet):
        for one in chosen:
            if one.environment != environment:
                raise UsageError(
                    f"Task {one.name!r} plays in {one.environment.name!r}, not {environment.name!r}."
                )
    if split is not None:
        chosen = chosen.split(split)
    if task is not None:
        name = chosen.full_name(task)
        chosen = TaskSet([name], chosen.get)
    return chosen


_codecs: dict[int, tuple[Any, ActionCodec]] = {}


def _codec(environment: Environment) -> ActionCodec:
    """The action codec of an Environment; building one takes milliseconds, so one serves all its GymEnvs."""
    actions = environment.actions
    known = _codecs.get(id(actions))
    if known is not None and known[0] is actions:
        return known[1]
    schemas = {name: dict(spec.parameters) for name, (_, spec) in actions.public.items()}
    offered = environment.finish == "always" or (environment.finish == "auto" and not environment.ends_itself)
    if "finish" not in actions.table and (offered or not schemas):
        schemas["finish"] = FINISH_SCHEMA
    named = {(app, spec.name): name for name, (app, spec) in actions.public.items()}
    made = ActionCodec(
        schemas, {alias: named[app, spec.name] for alias, (app, spec) in actions.table.items()}
    )
    _codecs[id(actions)] = (actions, made)
    return made


def _cut(text: str, max_chars: int) -> str:
    mark = f"… [{len(text)} characters in all]"
    return text[: max(max_chars - len(mark), 0)] + mark[:max_chars]


def _text(value: Any) -> str:
    return value if type(value) is str else to_json(value).decode()
