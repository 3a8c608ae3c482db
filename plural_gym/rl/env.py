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

from plural_gym.environment import FINISH, Environment, Limits
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
from plural_gym.host.direct import Course, DirectSession
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
Answer = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]
"""What `step` returns."""

_OPTIONS = ("task", "setup", "verifiers")
_COUNTED = 1025
"""Turns below this number have their array made in advance; copying one costs a fifth of making it."""
_KEPT_PLANS = 16_384
NO_STATUS, VALUE, FAULT = 0, 1, 2

ANSWER = """
text = observation if observation.__class__ is str else as_text(observation)
if error is not None or fault is not None or turn >= counted or len(text) > max_chars:
    return session.last
if reason is not None and scored:
    return session.last
value, status = rewards, VALUE                                    #? one
if value.__class__ is not float:                                  #? one
    value, failure = rewards[0]                                   #? one
    if failure is not None:                                       #? one
        return session.last                                       #? one
    if value is None:                                             #? one
        value, status = 0.0, NO_STATUS                            #? one
return (
    {"text": text, "turn": turns[turn].copy()},
    value,                                                        #? one
    0.0,                                                          #? none
    terminated,
    truncated,
    {
        "rewards": {verifier: value},                             #? one
        "reward_status": {verifier: status},                      #? one
        "rewards": {},                                            #? none
        "reward_status": {},                                      #? none
        "action": action,
        "error": "",
    },
)
"""
"""What `DirectSession.courses` answers to GymEnv: what `step` returns, or an Outcome for `_result`."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A live episode as a value: `GymEnv.restore` takes it, any number of times."""

    apps: Mapping[str, Any]
    session: Mapping[str, Any]
    text: str
    task: Task | None
    setup: Mapping[str, Any]
    seed: int
    environment: tuple[str, str]
    """Name and content hash of the Environment it was taken from."""


class _Plan(NamedTuple):
    """All that an episode needs of its Task; holds the Task, so that its id stays its own."""

    task: Task | None
    view: TaskView
    setup: Mapping[str, Any]
    session: DirectSession
    rewards: dict[str, float]
    status: dict[str, int]
    """What `info` says of every Verifier before the first step."""


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
        self._finishes = "finish" not in environment.actions.table and "finish" in self._codec.names
        self.action_space = self._codec.space
        self.observation_space = observation_space(max_chars)
        self._turns = [np.array([turn], dtype=np.int32) for turn in range(_COUNTED)]
        self._host: AppHost | None = None
        self._sessions: dict[Any, DirectSession] = {}
        self._plans: dict[int, _Plan] = {}
        self._drawn: dict[int, _Plan] = {}
        self._task_count = 1 if self._tasks is None else len(self._tasks.names)
        self._session: DirectSession | None = None
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
            if not isinstance(options, Mapping):
                raise UsageError(f"options is a mapping such as {{'task': name}}, got {options!r}.")
            for key in options:
                if key not in _OPTIONS:
                    raise UsageError(f"reset has no option {key!r}; {suggest(key, _OPTIONS)}")
            chosen, setup = options.get("task"), options.get("setup")
            verifiers = options.get("verifiers") if verifiers is None else verifiers
        draw = (self._np_random or self.np_random).bit_generator.random_raw() >> 1
        if chosen is None and verifiers is None:
            index = draw % self._task_count
            plan = self._drawn.get(index) or self._draw(index)
        else:
            plan = self._plan(self._pick(chosen, draw), verifiers)
        return self._begin(plan, setup, draw)

    def _draw(self, index: int) -> _Plan:
        """The plan of one of the Tasks that are drawn from; found again by its number."""
        if len(self._drawn) >= _KEPT_PLANS:
            self._drawn.clear()
        plan = self._drawn[index] = self._plan(self._pick(None, index), None)
        return plan

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
        self, plan: _Plan, setup: Mapping[str, Any] | None, seed: int
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if setup is not None:
            check_setup(self.environment, setup, "options['setup']")
        self._task, view, own_setup, session, rewards, status = plan
        self._session = session
        self._setup = own_setup if setup is None else setup
        self._seed = seed
        resources = self._resources() if self._has_resources else NO_RESOURCES
        opening = session.open(view, self._setup, seed, resources)
        text = view.instructions
        if opening is not None:
            text = f"{text}\n\n{_text(opening)}" if text else _text(opening)
        self._transcript = [text]
        self._shown = 0, text
        if self.render_mode == "human":
            print(text)
        info = {"rewards": rewards.copy(), "reward_status": status.copy(), "action": "", "error": ""}
        if self._reveal:
            info["state"] = self._states()
        return self._observe(text, 0), info

    def step(self, action: Any, /, **arguments: Any) -> Answer:  # type: ignore[override]
        """Take one action, in any of the forms of the class docstring.

        Raises:
            gymnasium.error.ResetNeeded: the episode is over, or has not begun.
            AppFault: an App's code failed and `on_fault` is "raise".
        """
        session = self._session
        if session is None or session.stop_reason is not None:
            raise gym.error.ResetNeeded(f"{_why_over(session)}; call reset() before step().")
        name: Any = None
        given: Any = arguments
        if arguments:
            name = action
            if type(name) is not str:
                raise UsageError(f"keywords go with an action's name, got {action!r}.")
        elif action.__class__ is dict:
            name, given = action.get("action"), action.get("arguments")
        course = session.answers.get(name) if name.__class__ is str else None
        answer = None if course is None else course(given)
        if answer is None:
            return self._step(session, action, arguments)
        return answer if answer.__class__ is tuple else self._result(session, answer)

    def _step(self, session: Session, action: Any, arguments: dict[str, Any]) -> Answer:
        """Any step that the Session has no answer to."""
        if arguments:
            name = action
        else:
            try:
                name, arguments = self._codec.parse(action)
            except UnknownAction as error:  # the host answers it, as it does for a name with keywords
                name, arguments = error.name, dict(error.arguments)
            except ActionRejected as error:
                return self._result(session, session.reject("", str(error)))
        if self._finishes and name == "finish":
            return self._finish(session, arguments)
        return self._result(session, session.act(name, arguments))

    def _result(self, session: Session, outcome: Outcome) -> Answer:
        error = outcome.error
        text = outcome.observation
        if error is not None or outcome.fault is not None:
            text = _text({"error": "the action failed" if error is None else error})
        elif type(text) is not str:
            text = _text(text)
        self._shown = session.turn, text
        total, parts, status = _parts(session.hooks.rewarding, outcome.rewards)
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
        observation = self._observe(text, session.turn)
        return observation, total, outcome.terminated, outcome.truncated, info

    def _finish(self, session: Session, arguments: Mapping[str, Any]) -> Answer:
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

    def _plan(self, task: Task | None, verifiers: Sequence[Grader] | None) -> _Plan:
        """What an episode of a Task starts from; kept, since reading a Task costs more than a step."""
        plan = self._plans.get(id(task)) if verifiers is None else None
        if plan is not None:
            return plan
        session = self._session_for(task, verifiers)
        names = session.hooks.rewarding
        zeros, status = dict.fromkeys(names, 0.0), dict.fromkeys(names, NO_STATUS)
        if task is None:
            plan = _Plan(None, TaskView("", ""), {}, session, zeros, status)
        else:
            plan = _Plan(task, task.view, task.setup, session, zeros, status)
        if verifiers is None:
            if len(self._plans) >= _KEPT_PLANS:
                self._plans.clear()
            self._plans[id(task)] = plan
        return plan

    def _session_for(self, task: Task | None, verifiers: Sequence[Grader] | None) -> DirectSession:
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
        session = self._new_session(self._host, LocalHooks(sets, warns=True), limits)
        session.answers = self._answers(session)
        if len(self._sessions) >= 64:
            self._sessions.clear()
        self._sessions[key] = session
        session.graders = graders
        return session

    def _new_session(self, host: AppHost, hooks: LocalHooks, limits: Limits) -> DirectSession:
        """The Session of these hooks; a subclass may give it a recorder."""
        return DirectSession(host, hooks, limits)

    def _answers(self, session: DirectSession) -> dict[str, Course]:
        """The actions whose steps the Session answers by itself; none where more is to be shown."""
        rewarding = session.hooks.rewarding
        if self._reveal or self.render_mode is not None or len(rewarding) > 1:
            return {}
        courses = session.courses(
            ANSWER,
            {
                "NO_STATUS": NO_STATUS,
                "VALUE": VALUE,
                "as_text": _text,
                "counted": _COUNTED,
                "max_chars": self._max_chars,
                "scored": self._score_as_reward,
                "turns": self._turns,
                "verifier": rewarding[0] if rewarding else "",
            },
        )
        return {name: course for name, course in courses.items() if name in self._codec.names}

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
            tools.append(FINISH.tool())
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
        turn, text = self._shown
        if turn != session.turn:  # a step that the Session answered by itself
            text = _text(session.observation)
        return Checkpoint(
            self._host.save(), session.save(), text, self._task, self._setup, self._seed, self._identity()
        )

    def _identity(self) -> tuple[str, str]:
        return self.environment.name, self.environment.content_hash

    def restore(self, checkpoint: Checkpoint) -> tuple[dict[str, Any], dict[str, Any]]:
        """Go back to a checkpoint of this Environment; returns `observation, info` as `reset` does."""
        if not isinstance(checkpoint, Checkpoint) or checkpoint.environment != self._identity():
            raise CheckpointError(f"this is no checkpoint of Environment {self.environment.name!r}.")
        graders = self._session.graders if self._session is not None else None
        _, info = self._begin(self._plan(checkpoint.task, graders), checkpoint.setup, checkpoint.seed)
        session = self._live()
        assert self._host is not None
        self._host.restore(checkpoint.apps)
        session.load(checkpoint.session)
        self._shown = session.turn, checkpoint.text
        if self._reveal:
            info["state"] = self._states()
        return self._observe(checkpoint.text, session.turn), info

    def _live(self) -> DirectSession:
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
        self._drawn.clear()
        if self._staged is not None:
            shutil.rmtree(self._staged, ignore_errors=True)
            self._staged = None

    def __getstate__(self) -> dict[str, Any]:
        return self._arguments

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _why_over(session: Session | None) -> str:
    return "there is no episode yet" if session is None else f"the episode is over ({session.stop_reason})"


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
        schemas["finish"] = dict(FINISH.parameters)
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
