"""What every Environment keeps as a `gymnasium.Env`: `check_environment`.

It plays random actions on the live environment that training loops use; what its Apps keep for themselves is
`check_app`'s to hold.
"""

import io
import math
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import check_env, data_equivalence

from plural_gym.environment import Environment
from plural_gym.errors import CheckpointError
from plural_gym.task import Task, TaskSet
from plural_gym.testing.conformance import Rule, described, shown

PASSES_CHECK_ENV = Rule(
    "gymnasium's check_env has nothing to say, not even a warning",
    "See what it says of spaces, seeds, spec or copies.",
)
RANDOM_ACTIONS_NEVER_RAISE = Rule(
    "reset() and random actions never raise",
    "Raise ValueError in an action to refuse an input; tighten the type hints of its arguments.",
)
OBSERVATIONS_FIT = Rule(
    "every observation is in observation_space",
    "Cut the text to max_chars and write it as UTF-8.",
)
INFO_IS_CONSTANT = Rule(
    "info holds rewards, reward_status, action and error, and action_mask where an App says what is legal, "
    "of the same types at reset and at every step",
    "Put nothing else into info, and leave nothing out; '' stands for no error.",
)
REWARDS_ADD_UP = Rule(
    "info['rewards'] gives each of the Task's rewarding Verifiers a finite float, which sum up to the reward",
    "List every Verifier with a reward, 0.0 where it gave no signal.",
)
SAME_SEED_SAME_COURSE = Rule(
    "the same seed and actions repeat every episode that follows",
    "Draw Tasks from np_random, and all randomness of Apps from self.rng.",
)
OVER_IS_OVER = Rule(
    "step() after the end of an episode raises gymnasium.error.ResetNeeded",
    "Note in step() that the episode has ended, and look before the next.",
)
RESTORE_BRINGS_BACK = Rule(
    "restore() brings back what checkpoint() saw, any number of times; the same actions lead on from there",
    "Save State, generator, turn and limits as values, or raise CheckpointError in checkpoint().",
)
CLOSES_TWICE = Rule("close() can be called twice", "Do nothing in close() where nothing is held any more.")

_TYPES = {"rewards": dict, "reward_status": dict, "action": str, "error": str}
_EPISODES = 3
_LONG = 40
"""Actions of an episode whose course is compared."""
Event = tuple[Any, ...]


def check_environment(
    environment: Environment,
    tasks: Sequence[Task] | None = None,
    *,
    seeds: Sequence[int] = (0, 1),
    actions: int = 300,
) -> None:
    """Hold an Environment, with its Tasks, to the rules of this file.

    Args:
        environment: the world.
        tasks: what is played in it; None or empty: an unnamed Task without Verifiers.
        seeds: one run each.
        actions: random actions of a run, over as many episodes as they make.

    Raises:
        ConformanceError: the first rule that is broken.
    """
    chosen = tasks if tasks is not None and len(tasks) else None
    _check_env(environment.gym(tasks=chosen))
    env, other = environment.gym(tasks=chosen), environment.gym(tasks=chosen)
    for seed in seeds:
        _random_play(env, chosen, seed, actions)
        _same_course(env, other, seed)
        _restore(env, seed)
    for live in (env, other):
        with CLOSES_TWICE.never_raises("the second close()"):
            live.close()
            live.close()


def _check_env(env: gym.Env[Any, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with PASSES_CHECK_ENV.never_raises("check_env()"):
            try:
                with redirect_stdout(io.StringIO()):  # check_env renders for people
                    check_env(env)
            finally:
                env.close()
    said = [" ".join(str(warning.message).split()) for warning in caught]
    PASSES_CHECK_ENV.require(not said, "; ".join(said)[:400])


def _random_play(env: Any, tasks: Sequence[Task] | None, seed: int, actions: int) -> None:
    env.action_space.seed(seed)
    over = True
    names: set[str] = set()
    for count in range(actions):
        if over:
            with RANDOM_ACTIONS_NEVER_RAISE.never_raises(f"reset() before action {count} of seed {seed}"):
                observation, info = env.reset(seed=seed if count == 0 else None)
            names = _rewarding(env, tasks)
            _hold("reset()", env, observation, info, 0.0, names)
        action = env.action_space.sample()
        said = f"action {count} of seed {seed}, {shown(_readable(env, action))},"
        with RANDOM_ACTIONS_NEVER_RAISE.never_raises(said):
            observation, reward, terminated, truncated, info = env.step(action)
        _hold(said, env, observation, info, reward, names)
        over = terminated or truncated
        if over:
            _over(env, action)


def _readable(env: Any, action: Any) -> Any:
    try:
        return env.decode(action)
    except Exception:
        return action


def _rewarding(env: Any, tasks: Sequence[Task] | None) -> set[str]:
    """The Verifiers that reward in the episode that has begun."""
    if tasks is None:
        return set()
    name = env.episode.task.name
    task = tasks.get(name) if isinstance(tasks, TaskSet) else next(one for one in tasks if one.name == name)
    return {verifier.name for verifier in task.verifiers if "reward" in verifier.functions()}


def _hold(when: str, env: Any, observation: Any, info: Any, reward: Any, names: set[str]) -> None:
    """The rules that concern one observation, reward and info."""
    OBSERVATIONS_FIT.require(observation in env.observation_space, f"after {when} {shown(observation)}")
    types = {key: type(value) for key, value in info.items()}
    forbids = getattr(getattr(env.unwrapped, "host", None), "forbids", False)
    expected = {**_TYPES, "action_mask": np.ndarray} if forbids else _TYPES
    INFO_IS_CONSTANT.require(types == expected, f"after {when} {shown(info)}")
    parts, status = info["rewards"], info["reward_status"]
    REWARDS_ADD_UP.require(
        set(parts) == names == set(status), f"after {when} {shown(info)}; rewarding are {sorted(names)}"
    )
    finite = all(type(value) is float and math.isfinite(value) for value in (*parts.values(), float(reward)))
    REWARDS_ADD_UP.require(finite, f"after {when} {shown(parts)} and reward {reward!r}")
    total = math.fsum(parts.values())
    REWARDS_ADD_UP.require(
        math.isclose(total, reward, abs_tol=1e-9), f"after {when} {shown(parts)} and reward {reward!r}"
    )


def _over(env: Any, action: Any) -> None:
    try:
        result = env.step(action)
    except gym.error.ResetNeeded:
        return
    except Exception as error:
        OVER_IS_OVER.require(False, f"it raised {described(error)}")
    OVER_IS_OVER.require(False, f"it returned {shown(result)}")


def _sampled(env: Any, seed: int, count: int) -> list[Any]:
    space = deepcopy(env.action_space)
    space.seed(seed)
    return [space.sample() for _ in range(count)]


def _same_course(env: Any, other: Any, seed: int) -> None:
    actions = _sampled(env, seed, _EPISODES * _LONG)
    first, second = (_episodes(live, seed, actions) for live in (env, other))
    _alike(SAME_SEED_SAME_COURSE, first, second, f"seed {seed}")


def _episodes(env: Any, seed: int, actions: Sequence[Any]) -> list[Event]:
    """The course of several episodes, of which only the first is seeded."""
    events: list[Event] = []
    for episode in range(_EPISODES):
        events.append(env.reset(seed=seed if episode == 0 else None))
        events += _play(env, actions[episode * _LONG : (episode + 1) * _LONG])
    return events


def _play(env: Any, actions: Sequence[Any]) -> list[Event]:
    """Take actions until they or the episode end."""
    events: list[Event] = []
    for action in actions:
        with RANDOM_ACTIONS_NEVER_RAISE.never_raises(shown(_readable(env, action))):
            events.append(env.step(action))
        if events[-1][2] or events[-1][3]:
            break
    return events


def _restore(env: Any, seed: int) -> None:
    actions = _sampled(env, seed, _LONG)
    env.reset(seed=seed)
    length = len(_play(env, actions))
    observation, _ = env.reset(seed=seed)
    for event in _play(env, actions[: length // 2]):
        observation = event[0]
    try:
        checkpoint = env.checkpoint()
    except CheckpointError:
        return
    rest = actions[length // 2 : length]
    first = _play(env, rest)
    for _ in range(2):
        with RESTORE_BRINGS_BACK.never_raises("restore()"):
            back, _ = env.restore(checkpoint)
        RESTORE_BRINGS_BACK.require(
            data_equivalence(back, observation), f"{shown(observation)} came back as {shown(back)}"
        )
        _alike(RESTORE_BRINGS_BACK, first, _play(env, rest), "restored")


def _alike(rule: Rule, first: Sequence[Event], second: Sequence[Event], how: str) -> None:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        rule.require(
            data_equivalence(one, other), f"{how}: event {index} was {shown(one)}, then {shown(other)}"
        )
    rule.require(len(first) == len(second), f"{how}: {len(first)} events, then {len(second)}")
