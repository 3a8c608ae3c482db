"""What every Verifier keeps: `check_verifier`; and Episodes and Steps to hold one to: `play_at_random`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, get_args

from plural_gym.episode import Credit, Episode, HindsightTrial
from plural_gym.errors import Fault, UsageError
from plural_gym.host.hooks import HookSet, LocalHooks
from plural_gym.host.host import Outcome
from plural_gym.rl.env import GymEnv
from plural_gym.state import Frozen, freeze_value
from plural_gym.step import Step, World
from plural_gym.task import Task
from plural_gym.testing.conformance import Rule, shown
from plural_gym.verifier import Hook, Verifier, VerifierOutput

DECLARES_ITS_HOOKS = Rule(
    "functions() maps hooks to functions, time limits are positive, and a Verifier with a check scores",
    "Use the keys 'check', 'reward' and 'hindsight'; let `scores` be True where there is a check.",
)
IDENTITY_IS_STABLE = Rule(
    "identity() is JSON and the same at every call",
    "Return names, plain values and code_identity() of the functions; no ids, times or open objects.",
)
HOOKS_ANSWER = Rule(
    "a check gives a VerifierOutput, a reward a finite number or None, hindsight credits, and none raises",
    "Return VerifierOutput(score=...); None for no signal; yield trial.credit(event_id, value). "
    "A Step may be rejected, an answer or an observation None.",
)
HOOKS_ARE_PURE = Rule(
    "the same record gives the same answer, whenever it is asked for",
    "Read nothing but the argument: no clock, no randomness, nothing kept from one call to the next.",
)
HOOKS_LEAVE_RECORDS = Rule(
    "a check or hindsight leaves its record as it was",
    "Copy what you sort, pop or overwrite.",
)


class Played(NamedTuple):
    """Episodes, and the Steps they are made of."""

    episodes: tuple[Episode, ...]
    steps: tuple[Step, ...]


def check_verifier(
    verifier: Verifier | Callable[..., Any], episodes: Sequence[Episode], steps: Sequence[Step] = ()
) -> None:
    """Hold a Verifier to the rules of this file.

    Args:
        verifier: a Verifier, or a plain function of a Step.
        episodes: what its check and hindsight are asked about, such as `env.unwrapped.episode` after play.
        steps: what its reward is asked about. Both come from `play_at_random(task)`.

    Raises:
        ConformanceError: the first rule that is broken.
        UsageError: it has a hook for which there is nothing to ask about.
    """
    if isinstance(verifier, Verifier):
        _declaration(verifier)
    hooks = HookSet.of(verifier)
    given = {"check": episodes, "hindsight": episodes, "reward": steps}
    for hook, records in given.items():
        if getattr(hooks, hook) is not None and not records:
            what = "steps" if hook == "reward" else "episodes"
            raise UsageError(f"{hooks.name!r} has a {hook}; give {what}, such as play_at_random(task) makes.")
    local = LocalHooks((hooks,))
    if hooks.reward is not None:
        _ask_twice("reward", lambda step: _reward(local, step), steps)
    if hooks.check is not None:
        _ask_twice("check", lambda episode: _check(local, hooks.name, episode), episodes)
    if hooks.hindsight is not None:
        _ask_twice("hindsight", lambda episode: _hindsight(local, hooks.name, episode), episodes)


def _declaration(verifier: Verifier) -> None:
    with DECLARES_ITS_HOOKS.never_raises("functions(), timeouts_s() or scores"):
        functions, timeouts, scores = verifier.functions(), verifier.timeouts_s(), verifier.scores
    known = set(get_args(Hook))
    for hook, function in functions.items():
        DECLARES_ITS_HOOKS.require(hook in known and callable(function), f"{hook!r}: {shown(function)}")
    for hook, limit in timeouts.items():
        DECLARES_ITS_HOOKS.require(hook in known and limit > 0, f"timeouts_s()[{hook!r}] is {limit!r}")
    DECLARES_ITS_HOOKS.require(scores or "check" not in functions, "it has a check, and scores is False")
    with IDENTITY_IS_STABLE.never_raises("writing identity() as JSON"):
        first, again = (json.dumps(verifier.identity(), sort_keys=True, allow_nan=False) for _ in range(2))
    IDENTITY_IS_STABLE.require(first == again, f"{shown(first)}, then {shown(again)}")


def _ask_twice(hook: Hook, ask: Callable[[Any], Any], records: Sequence[Any]) -> None:
    """All records in order, then all in reverse: what was asked in between must not matter."""
    first = [ask(record) for record in records]
    for index in reversed(range(len(records))):
        again = ask(records[index])
        HOOKS_ARE_PURE.require(
            first[index] == again,
            f"{hook} of {shown(records[index], 100)} gave {shown(first[index])}, then {shown(again)}",
        )


def _reward(hooks: LocalHooks, step: Step) -> float | None:
    own = _copied(step, step._world)
    outcome = Outcome(
        own.app,
        own.action,
        own.arguments,
        own.observation,
        own.error,
        None,
        own._before,
        own._after,
        False,
        False,
    )
    [(value, fault)] = hooks.reward(own.task, outcome, own.turn, own._world, own.event_id, own.seat)
    HOOKS_ANSWER.require(fault is None, f"{shown(step)}: {fault}")
    return value


def _check(hooks: LocalHooks, name: str, episode: Episode) -> dict[str, Any]:
    own = _own(episode)
    before = _record(own)
    output = hooks.check(name, own, ())
    if isinstance(output, Fault):
        HOOKS_ANSWER.require(False, f"{_named(episode)}: {output}")
    assert isinstance(output, VerifierOutput)
    _unchanged("check", episode, before, _record(own))
    return output.model_dump()


def _hindsight(hooks: LocalHooks, name: str, episode: Episode) -> list[Credit]:
    own = _own(episode)
    before = _record(own)
    credits = hooks.hindsight(name, HindsightTrial(0.5, own.apps, own.task, own.trajectory, (), own.seat))
    if isinstance(credits, Fault):
        HOOKS_ANSWER.require(False, f"{_named(episode)}: {credits}")
    assert not isinstance(credits, Fault)
    _unchanged("hindsight", episode, before, _record(own))
    return credits


def _own(episode: Episode) -> Episode:
    """The same Episode with values that nobody else holds."""
    return replace(
        episode,
        task=episode.task.fresh(),
        trajectory=deepcopy(episode.trajectory),
        observation=deepcopy(episode.observation),
        answer=deepcopy(episode.answer),
        artifacts=deepcopy(episode.artifacts),
    )


def _record(episode: Episode) -> dict[str, bytes]:
    """All that a hook can change in an Episode, as values."""
    task = episode.task
    parts = {
        "trajectory": episode.trajectory,
        "observation": episode.observation,
        "answer": episode.answer,
        "artifacts": episode.artifacts,
        "task": [task.name, task.instructions, task.info, task.metadata, task.expected],
    }
    return {name: freeze_value(value) for name, value in parts.items()}


def _unchanged(hook: Hook, episode: Episode, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    for part, value in before.items():
        HOOKS_LEAVE_RECORDS.require(
            value == after[part],
            f"{_named(episode)}: {hook} made {part} {shown(after[part])} of {shown(value)}",
        )


def _named(episode: Episode) -> str:
    return f"Episode of Task {episode.task.name!r} with {len(episode.trajectory)} actions"


class _Then:
    """The world at the time of a step: its States as they were; queries reach the living Apps."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._states = {name: world.snapshot(name) for name in world.app_names()}

    def app_names(self) -> tuple[str, ...]:
        return tuple(self._states)

    def snapshot(self, app: str) -> Frozen | None:
        return self._states[app]

    def query(self, app: str, action: str, arguments: Mapping[str, Any]) -> Any:
        return self._world.query(app, action, arguments)


def _copied(step: Step, world: World) -> Step:
    """The same Step with values that nobody else holds."""
    before, after = (
        None if state is None else freeze_value(state) for state in (step.previous_state, step.current_state)
    )
    return Step(
        step.task,
        step.app,
        step.action,
        step.arguments,
        step.turn,
        step.observation,
        step.error,
        before,
        after,
        world,
        step.seat,
        step.event_id,
    )


@contextmanager
def play_at_random(
    task: Task,
    *,
    episodes: int = 3,
    seed: int = 0,
    actions: int = 50,
    calls: Sequence[tuple[str, Mapping[str, Any]]] = (),
) -> Iterator[Played]:
    """Episodes of a Task with random actions, whose Apps live until the block ends.

        with play_at_random(task, calls=[("guess", {"word": "crane"})]) as played:
            check_verifier(verifier, *played)

    Args:
        task: what is played.
        episodes: how many.
        seed: repeats them exactly.
        actions: how long an episode is, where it does not end before.
        calls: one more episode of these `(action, arguments)`: random play seldom solves anything.
    """
    steps: list[Step] = []
    worlds: list[GymEnv] = []

    def keep(step: Step) -> None:
        steps.append(_copied(step, _Then(step._world)))

    try:
        for number in range(episodes + bool(calls)):
            env: GymEnv = task.environment.gym(tasks=[task], verifiers=[keep])
            worlds.append(env)
            env.reset(seed=seed + number)
            env.action_space.seed(seed + number)
            planned = [{"action": name, "arguments": dict(given)} for name, given in calls]
            for turn in range(len(planned) if number == episodes else actions):
                _, _, terminated, truncated, _ = env.step(
                    planned[turn] if number == episodes else env.action_space.sample()
                )
                if terminated or truncated:
                    break
        yield Played(tuple(env.episode for env in worlds), tuple(steps))
    finally:
        for env in worlds:
            env.close()
