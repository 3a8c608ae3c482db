"""GymEnv: an Environment as a live `gymnasium.Env`, for training loops and for trying things by hand.

Apps and hooks run in this process, without time limits on their code; Jobs run them in workers.
"""

import copy
import functools
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from pydantic_core import to_json

from plural_gym import kinds, notebook
from plural_gym.environment import FINISH, Environment, Limits
from plural_gym.episode import Episode
from plural_gym.errors import (
    ActionRejected,
    AppFault,
    CheckpointError,
    Fault,
    UsageError,
    suggest,
)
from plural_gym.grading import AttemptGrading, Grade, Grades, grade
from plural_gym.host.direct import Course, DirectSession
from plural_gym.host.hooks import HookSet, LocalHooks, Reward
from plural_gym.host.host import AppHost, Outcome
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.host.session import Session
from plural_gym.records.strict_json import legible
from plural_gym.rl import rendering
from plural_gym.rl.codec import UnknownAction, codec_of, observation_space
from plural_gym.rl.plans import Grader, Plan, Plans, choose
from plural_gym.rl.registration import gym_id, repeatable
from plural_gym.rl.rendering import RENDER_FPS, RENDER_MODES
from plural_gym.state import freeze_value, thaw
from plural_gym.task import Task, check_setup
from plural_gym.verifier import Verifier, VerifierOutput

Answer = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]
"""What `step` returns."""

_OPTIONS = ("task", "setup", "verifiers")
_COUNTED = 1025
"""Turns below this number have their array made in advance; copying one costs a fifth of making it."""
_TURNS = [np.array([turn], dtype=np.int32) for turn in range(_COUNTED)]
_KEPT_MASKS = 16_384
NO_STATUS, VALUE, FAULT = 0, 1, 2
MAX_REWARD = sys.float_info.max

ANSWER = """
if fault is not None or turn >= counted:
    return session.last
said = ""
if error is None:
    text = observation if observation.__class__ is str else as_text(observation)
else:
    said, text = error, as_text({"error": error})
if len(text) > max_chars or (reason is not None and scored):
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
        "error": said,
        "action_mask": masks[mask].copy(),                        #? masked
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


class _Masks(dict[tuple[bool, ...], Any]):
    """Which actions are legal -> the int8 array that says so; to copy one is cheaper than to make it."""

    def __missing__(self, mask: tuple[bool, ...]) -> Any:
        if len(self) >= _KEPT_MASKS:
            self.clear()
        made = self[mask] = np.array(mask, dtype=np.int8)
        return made


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
        render_mode: what `render` gives: "ansi", "human", "rgb_array" (needs Pillow), or None.
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # noqa: RUF012  gymnasium's own form

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
        rendering.check_mode(render_mode)
        if isinstance(max_chars, bool) or not isinstance(max_chars, int) or max_chars < 1:
            raise UsageError(f"max_chars is a whole number from 1, got {max_chars!r}.")
        if environment.runtime.kind != "local":
            kinds.load(
                "plural.runtimes", environment.runtime.kind
            )  # one that does not exist is told here too
        if environment.party is not None:
            raise UsageError(
                f"Environment {environment.name!r} is a party of several seats; use environment.aec(), "
                "environment.parallel(), or a SeatEnv around the first."
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
        self.plans = Plans(environment, choose(environment, tasks, task, split), verifiers)
        """What episodes start from; the members of a vector environment share one."""
        self._score_as_reward = score_as_reward
        self._reveal = reveal_state
        self._raise = on_fault == "raise"
        self._max_chars = max_chars
        self._has_resources = bool(environment.resources)
        self._codec = codec_of(environment)
        self._finishes = "finish" not in environment.actions.table and "finish" in self._codec.names
        self.action_space = copy.deepcopy(self._codec.space)
        self.observation_space = observation_space(max_chars)
        self._masks = _Masks()
        self._host: AppHost | None = None
        self._sessions: dict[Any, DirectSession] = {}
        self._session: DirectSession | None = None
        self._staged: Path | None = None
        self._task: Task | None = None
        self.spec = EnvSpec(
            id=gym_id(environment),
            entry_point="plural_gym.rl.env:GymEnv",
            nondeterministic=not repeatable(environment),
            kwargs=dict(self._arguments),
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
        text = self.start(seed, options, verifiers)
        return {"text": text, "turn": _TURNS[0].copy()}, self.first_info(self._live())

    def first_info(self, session: DirectSession) -> dict[str, Any]:
        """What `info` says before the first step."""
        rewards, status = silence(session.hooks.rewarding)
        info = {"rewards": rewards.copy(), "reward_status": status.copy(), "action": "", "error": ""}
        if session.host.watched:
            info["action_mask"] = self._masks[session.host.mask].copy()
        if self._reveal:
            info["state"] = self._states()
        return info

    def start(
        self, seed: int | None, options: dict[str, Any] | None, verifiers: Sequence[Grader] | None = None
    ) -> str:
        """Start an episode as `reset` does; returns the text of its observation."""
        if seed is not None:
            super().reset(seed=seed)
        setup: Mapping[str, Any] | None = None
        chosen: Any = None
        if options:
            if not isinstance(options, Mapping):
                raise UsageError(f"options is a mapping such as {{'task': name}}, got {options!r}.")
            for key in options:
                if key not in _OPTIONS:
                    hint = suggest(str(key), _OPTIONS)
                    if key == "split":
                        hint = "a split is chosen when the environment is made: split='train'."
                    raise UsageError(f"reset has no option {key!r}; {hint}")
            chosen, setup = options.get("task"), options.get("setup")
            verifiers = options.get("verifiers") if verifiers is None else verifiers
        draw = (self._np_random or self.np_random).bit_generator.random_raw() >> 1
        plans = self.plans
        number = draw % plans.count
        if chosen is None and verifiers is None:
            return self._begin(plans.drawn.get(number) or plans.draw(number), setup, draw)
        task = plans.draw(number).task if chosen is None else plans.chosen(chosen)
        return self._begin(plans.of(task, verifiers), setup, draw)

    def _begin(self, plan: Plan, setup: Mapping[str, Any] | None, seed: int) -> str:
        if setup is not None:
            check_setup(self.environment, setup, "options['setup']")
        session = self._sessions.get(plan.key) or self._session_for(plan)
        self._session = session
        self._added = 0.0
        self._task, view, own_setup, _, _, _ = plan
        self._setup = own_setup if setup is None else setup
        self._seed = seed
        resources = self._resources() if self._has_resources else NO_RESOURCES
        opening = session.open(view, self._setup, seed, resources)
        text = view.instructions
        if opening is not None:
            text = f"{text}\n\n{as_text(opening)}" if text else as_text(opening)
        self._shown = 0, text
        if self.render_mode == "human":
            rendering.say(self._scene(1))
        return cut(text, self._max_chars) if len(text) > self._max_chars else text

    def step(self, action: Any, /, **arguments: Any) -> Answer:  # type: ignore[override]
        """Take one action, in any of the forms of the class docstring.

        Raises:
            gymnasium.error.ResetNeeded: the episode is over, or has not begun.
            AppFault: an App's code failed and `on_fault` is "raise".
        """
        session = self._session
        if session is None or session.stop_reason is not None:
            raise gym.error.ResetNeeded(f"{_why_over(session)}; call reset() before step().")
        course = None
        if arguments:
            if type(action) is not str:
                raise UsageError(f"keywords go with an action's name, got {action!r}.")
            course, given = session.answers.get(action), arguments
        elif action.__class__ is dict:
            try:
                course, given = session.answers[action["action"]], action["arguments"]
            except (KeyError, TypeError):  # an action in another form
                course = None
        answer = None if course is None else course(given)
        if answer is None:
            return self._step(session, action, arguments)
        return answer if answer.__class__ is tuple else self._result(session, answer)

    def _step(self, session: DirectSession, action: Any, arguments: dict[str, Any]) -> Answer:
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
            course = session.answers.get(name)
            answer = None if course is None else course(arguments)
            if answer.__class__ is tuple:
                return answer
            if answer is not None:
                return self._result(session, answer)
        if self._finishes and name == "finish":
            return self._finish(session, arguments)
        return self._result(session, session.act(name, arguments))

    def _result(self, session: Session, outcome: Outcome) -> Answer:
        error = outcome.error
        text = outcome.observation
        if error is not None or outcome.fault is not None:
            text = as_text({"error": "the action failed" if error is None else error})
        elif type(text) is not str:
            text = as_text(text)
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
                self._added = self.score() or 0.0
                total += self._added
        if self._host is not None and self._host.watched:
            info["action_mask"] = self._masks[self._host.mask].copy()
        if self._reveal:
            info["state"] = self._states()
        if self.render_mode == "human":
            rendering.say(self._scene(1))
        observation = self._observe(text, session.turn)
        return observation, total, outcome.terminated, outcome.truncated, info

    def _finish(self, session: Session, arguments: Mapping[str, Any]) -> Answer:
        unknown = [legible(key) for key in arguments if key != "answer"]
        said = f"{unknown[0]} is no argument (it takes: answer)." if unknown else ""
        try:
            answer = thaw(freeze_value(arguments.get("answer")))
        except Exception:  # of a stranger's object, or of what contains itself
            said = said or "the answer is, or holds, what has no JSON form."
        if said:
            return self._result(session, session.reject("finish", f"finish: {said}", app=False))
        session.finish(answer)
        given = dict.fromkeys(arguments, answer)
        outcome = Outcome(None, "finish", given, "", None, None, None, None, True, False)
        outcome.stop_reason = session.stop_reason
        return self._result(session, outcome)

    def _observe(self, text: str, turn: int) -> dict[str, Any]:
        if len(text) > self._max_chars:
            text = cut(text, self._max_chars)
        shown = _TURNS[turn].copy() if turn < _COUNTED else np.array([turn], dtype=np.int32)
        return {"text": text, "turn": shown}

    def _session_for(self, plan: Plan) -> DirectSession:
        """The Session that plays a Plan, made for the first one of its key."""
        graders = plan.graders
        for grader in graders:
            if not (isinstance(grader, Verifier) or callable(grader)):
                raise UsageError(
                    f"verifiers are Verifiers or functions of a Step, got {grader!r}; "
                    "names are for gymnasium.make."
                )
        sets = tuple(HookSet.of(grader) for grader in graders)
        names = [hooks.name for hooks in sets]
        doubled = next((name for name in names if names.count(name) > 1), None)
        if doubled is not None:
            raise UsageError(f"two verifiers are named {doubled!r}; rewards are listed by name.")
        if self._host is None:
            self._host = AppHost(self.environment.declarations, self.environment.actions)
            if self._host.forbids:
                self._host.watch(self._codec.names)
        session = self._new_session(self._host, LocalHooks(sets, warns=True), plan.limits)
        session.answers = self.courses(session, ANSWER)
        if len(self._sessions) >= 64:
            self._sessions.clear()
        self._sessions[plan.key] = session
        session.graders = graders
        return session

    def _new_session(self, host: AppHost, hooks: LocalHooks, limits: Limits) -> DirectSession:
        """The Session of these hooks; a subclass may give it a recorder."""
        return DirectSession(host, hooks, limits)

    def courses(self, session: DirectSession, answer: str) -> dict[str, Course]:
        """The actions whose steps a Session answers by itself; none where more is to be shown.

        Args:
            answer: lines that return the answer, as `DirectSession.courses` takes them.
        """
        rewarding = session.hooks.rewarding
        if self._reveal or self.render_mode == "human" or len(rewarding) > 1:
            return {}
        courses = session.courses(
            answer,
            {
                "NO_STATUS": NO_STATUS,
                "VALUE": VALUE,
                "as_text": as_text,
                "counted": _COUNTED,
                "max_chars": self._max_chars,
                "scored": self._score_as_reward,
                "verifier": rewarding[0] if rewarding else "",
            },
            {"masks": self._masks, "turns": _TURNS},
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

    def _grades(self) -> Grades:
        session = self._live()
        hooks = session.hooks
        assert isinstance(hooks, LocalHooks)

        def run(verifier: Verifier, episode: Episode) -> VerifierOutput | Fault:
            return hooks.check(verifier.name, episode, session.own_rewards(verifier.name))

        graders = [grader for grader in session.graders if isinstance(grader, Verifier)]
        return grade(graders, lambda verifier: AttemptGrading(session.episode(), None, run, verifier))

    def outputs(self) -> dict[str, Grade]:
        """What every Verifier that scores says of the episode so far, by name."""
        return self._grades().given

    def score(self) -> float | None:
        """The episode's score so far by the Verifiers attached; None without one, or where one gives none.

        Raises:
            MachineError: what a Verifier grades with, such as a judge's model, could not be reached.
        """
        return self._grades().known_score()

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

    @property
    def schemas(self) -> dict[str, dict[str, Any]]:
        """The JSON Schema of each action's arguments, by name, as `action_space` was made of them."""
        return self._codec.schemas

    @property
    def task(self) -> Task | None:
        """The Task of this episode; None where there are none, and before the first `reset`."""
        return self._task

    @property
    def session(self) -> DirectSession:
        """The live episode: turn, what came of each action, why it ended. Raises ResetNeeded without one."""
        return self._live()

    @property
    def seed_of_episode(self) -> int:
        """The seed that all randomness of this episode comes from."""
        self._live()
        return self._seed

    @property
    def host(self) -> AppHost | None:
        """The Apps; None before the first `reset` and after `close`."""
        return self._host

    def action_masks(self) -> Any:
        """Which actions may be taken now: a bool array over `action_space.names`.

        All True where no App says what is legal. The name is the one that sb3-contrib looks for.
        """
        host = self._live().host
        return np.array(host.mask, bool) if host.watched else np.ones(len(self._codec.names), bool)

    def is_legal(self, name: str, arguments: Mapping[str, Any] | None = None) -> bool:
        """Whether a call may be taken now; `arguments` None: with some arguments.

        False also where there is no such action, or the arguments do not fit. Never enforced.

        Raises:
            AppFault: an App's `is_legal` failed.
        """
        return self.legal([(name, arguments)])[0]

    def legal(self, calls: Sequence[tuple[str, Mapping[str, Any] | None]]) -> list[bool]:
        """What `is_legal` says of each of many calls, `(name, arguments)`."""
        return self.judge(calls)()

    def judge(self, calls: Sequence[tuple[str, Mapping[str, Any] | None]]) -> Callable[[], list[bool]]:
        """A function that gives the answer of `legal` to the same calls, cheaper, until the env is closed."""
        ask = self._live().host.judge(calls)
        finishing = [
            (index, set(arguments or ()) <= {"answer"})
            for index, (name, arguments) in enumerate(calls)
            if self._finishes and name == "finish"
        ]
        if not finishing:
            return ask

        def legal() -> list[bool]:
            found = ask()
            for index, fits in finishing:
                found[index] = fits
            return found

        return legal

    def checkpoint(self) -> Checkpoint:
        """The live episode as a value: State, randomness, turn, limits and what happened so far.

        Raises:
            CheckpointError: an App cannot be saved; says which.
        """
        session = self._live()
        assert self._host is not None
        turn, text = self._shown
        if turn != session.turn:  # a step that the Session answered by itself
            text = as_text(session.observation)
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
        self._begin(self.plans.of(checkpoint.task, graders), checkpoint.setup, checkpoint.seed)
        session = self._live()
        session.host.restore(checkpoint.apps)
        session.load(checkpoint.session)
        self._shown = session.turn, checkpoint.text
        return self._observe(checkpoint.text, session.turn), self.first_info(session)

    def _live(self) -> DirectSession:
        if self._session is None:
            raise gym.error.ResetNeeded("there is no episode yet; call reset() first.")
        return self._session

    def render(self) -> Any:
        """The episode so far as a person may see it: the transcript, and the boards of Apps that have one.

        Returns:
            "ansi": text, its boards coloured by ANSI codes. "rgb_array": a uint8 array (540, 960, 3).
            "human": None; it prints as it goes.
        """
        mode = self.render_mode
        if mode is None:
            gym.logger.warn("render() needs a render_mode; give one to make(), such as render_mode='ansi'.")
        elif mode == "ansi":
            return rendering.ansi(self._scene())
        elif mode == "rgb_array":
            from plural_gym.rl import frame

            return frame.draw(self._scene(frame.MOMENTS))
        return None

    def _scene(self, last: int | None = None) -> rendering.Scene:
        title = self.environment.title or self.environment.name
        return rendering.Scene.of(self._live(), title, last, self._added)

    def _repr_html_(self) -> str:
        """The latest step, as a notebook shows it."""
        if self._session is None:
            title = self.environment.title or self.environment.name
            return notebook.card(title, notebook.pre("there is no episode; call reset()"))
        return rendering.html(self._scene(1))

    def close(self) -> None:
        """Let go of the Apps and the staged Resources. Safe to call twice."""
        if self._host is not None:
            self._host.close()
            self._host = None
        self._session = None
        self._sessions.clear()
        if self._staged is not None:
            shutil.rmtree(self._staged, ignore_errors=True)
            self._staged = None

    def __getstate__(self) -> dict[str, Any]:
        return {"arguments": self._arguments, "spec": self.spec}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["arguments"])  # type: ignore[misc]
        self.spec = state["spec"]


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
    # Finite parts may have no finite sum: then the largest number there is.
    return max(-MAX_REWARD, min(total, MAX_REWARD)), parts, status


@functools.lru_cache(1024)
def silence(names: tuple[str, ...]) -> tuple[dict[str, float], dict[str, int]]:
    """What `info` says of Verifiers that said nothing yet; to be copied."""
    return dict.fromkeys(names, 0.0), dict.fromkeys(names, NO_STATUS)


def cut(text: str, max_chars: int) -> str:
    """A text of at most `max_chars`, with a mark where something was left out."""
    mark = f"… [{len(text)} characters in all]"
    return text[: max(max_chars - len(mark), 0)] + mark[:max_chars]


def as_text(value: Any) -> str:
    """An observation as text: a string as it is, anything else as compact JSON."""
    return value if type(value) is str else to_json(value).decode()
