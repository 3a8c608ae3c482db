"""DirectSession: the course of a step in one function, for one Python App and hooks in this process.

Training loops step small worlds a hundred thousand times a second. There, passing an action through Session,
AppHost, LiveApp and LocalHooks costs more than the game. This is the same course with the layers laid into
each other, for the ordinary action: known, with arguments that fit as they are. Everything else goes the long
way, through Session.act. `tests/host/test_direct.py` holds both ways to the same outcomes.

The function is written out from `COURSE` for each action, as dataclasses and namedtuples are: what is known
when a Session is made (is there a reward, a recorder, a time limit; can the App end an episode; which fields
has its State) is not asked again at every step. See `docs/decisions/0005-steps-are-compiled.md`.
"""

import functools
from collections.abc import Callable, Mapping
from math import isfinite
from time import perf_counter
from typing import Any

from plural_gym.environment import Limits
from plural_gym.errors import Fault
from plural_gym.host.hooks import NO_SIGNAL, LocalHooks
from plural_gym.host.host import AppHost, AuthorError, Outcome, as_seen, blame
from plural_gym.host.session import Recorder, Session
from plural_gym.records.strict_json import legible
from plural_gym.step import Step

Course = Callable[[Any], Any]
"""Takes one action with these arguments; None, and nothing done, where they do not certainly fit."""

COURSE = """
def bind($names):
    def course(given):
        if not fits(given):
            return None
        began = perf_counter()                                    #? recorded
        session.turn = turn = session.turn + 1
        sent = given.copy()
        app = live.app
        before = after = error = fault = None
        terminated = truncated = False
        rewards = ()
        try:
            before = host.last or live.snapshot()                 #? watched
            host.last = None
            observation = $call
            if observation.__class__ is not str:
                observation = as_seen(observation)
            elif not observation.isascii():
                observation = legible(observation)
        except AuthorError as raised:
            observation, error, fault = None, *blame(raised, app_name)
        try:
            pass  # where nothing else is left
            fields = app.state.__dict__                           #? watched and plain
            after = host.last = (copier, $copy)                   #? watched and plain
            after = host.last = live.snapshot()                   #? watched and not plain
            if app.terminated():                                  #? ends
                terminated = True                                 #? ends
            if app.truncated():                                   #? cuts
                truncated = True                                  #? cuts
        except AuthorError as raised:
            observation, fault = None, fault or Fault.of(raised, "app " + app_name)
        $reward
        reason = None
        if (
            turn >= max_turns
            or fault is not None
            or terminated                                         #? ends
            or truncated                                          #? cuts
            or session.is_overdue()                               #? timed
        ):
            reason, terminated, truncated = session.conclude(fault, terminated, truncated)
        $record
        session.past.append(
            (app_name, action, sent, observation, error, fault, rewards, terminated, truncated, reason)
        )
        $answer
    return course
"""
"""The course of a step. A line that ends in `#? word` is left out unless the word holds for the Session."""

ONE_REWARD = """
if fault is None:
    step = new(Step)  # field by field: to call its __init__ costs twice as much
    step._task = session.task
    step._world = host
    step.app = app_name
    step.seat = None
    step._event_id = event_id
    step.action = action
    step._arguments = sent
    step.turn = turn
    step._observation = observation
    step.error = error
    step._before = before
    step._after = after
    try:
        value = reward(step)
    except AuthorError as raised:
        rewards = hooks.failed(raised)
    else:
        if value.__class__ is float and isfinite(value):
            rewards = value
        elif value is None:
            rewards = NO_SIGNALS
        else:
            rewards = hooks.settled(value)
"""

SEVERAL_REWARDS = """
if fault is None:
    outcome = Outcome(app_name, action, sent, observation, error, None, before, after, False, False)
    rewards = hooks.reward(session.task, outcome, turn, host, event_id and event_id(turn))
"""

RECORD = """
session.states[app_name] = after
said = error if fault is None else str(fault)
recorder.acted(
    turn, app_name, action, sent, observation, said, after, rewarding, rewards,
    perf_counter() - began, terminated, truncated,
)
"""

OUTCOME = """
return session.last
"""


class DirectSession(Session):
    """A Session on an AppHost of this process, short where that has one App and it is a Python App."""

    host: AppHost
    hooks: LocalHooks

    def __init__(
        self, host: AppHost, hooks: LocalHooks, limits: Limits, recorder: Recorder | None = None
    ) -> None:
        super().__init__(host, hooks, limits, recorder)
        self.answers: Mapping[str, Course] = {}
        """The courses by which the owner of this Session takes its actions, if it has its own."""

    def act(self, name: str, arguments: Mapping[str, Any], seat: str | None = None) -> Outcome:
        """Take one action, as `Session.act` does."""
        course = self._courses.get(name)
        if course is not None and self.stop_reason is None and seat is None:
            outcome: Outcome | None = course(arguments)
            if outcome is not None:
                return outcome
        return super().act(name, arguments, seat)

    @functools.cached_property
    def _courses(self) -> dict[str, Course]:
        return self.courses(OUTCOME, {})

    def courses(self, answer: str, names: Mapping[str, Any]) -> dict[str, Course]:
        """A function for each action that can go the short way, by each of the action's names.

        Args:
            answer: lines that return what the functions answer; all local names of `COURSE` are theirs.
            names: what else these lines use.
        """
        live, entries = self.host.direct_actions()
        if live is None:
            return {}
        hooks, recorder = self.hooks, self._recorder
        bound = {
            "AuthorError": AuthorError,
            "Fault": Fault,
            "NO_SIGNALS": (NO_SIGNAL,),
            "Outcome": Outcome,
            "Step": Step,
            "app_name": self.host.only,
            "as_seen": as_seen,
            "legible": legible,
            "blame": blame,
            "copier": live.copier,
            "event_id": None if recorder is None else recorder.event_id,
            "hooks": hooks,
            "host": self.host,
            "isfinite": isfinite,
            "live": live,
            "max_turns": self._max_turns,
            "new": object.__new__,
            "perf_counter": perf_counter,
            "recorder": recorder,
            "reward": hooks.single_reward,
            "rewarding": hooks.rewarding,
            "session": self,
            **names,
        }
        conditions = {
            "watched": self._watch,
            "plain": live.copier is not None,
            "ends": live.ends,
            "cuts": live.cuts,
            "none": not hooks.rewarding,
            "one": len(hooks.rewarding) == 1,
            "timed": self._max_seconds is not None,
            "recorded": recorder is not None,
        }
        holding = frozenset(word for word, holds in conditions.items() if holds)
        variables = ("action", "fits", *bound)
        return {
            name: _binder(variables, holding, action.call, live.copy(), answer)(
                action=action.name, fits=action.fits, **bound
            )
            for name, action in entries.items()
        }


@functools.lru_cache(1024)
def _binder(
    names: tuple[str, ...], holding: frozenset[str], call: str, copy: str, answer: str
) -> Callable[..., Course]:
    """The function `bind` of `COURSE`; one serves all Sessions of a kind, since to compile takes a while.

    Args:
        names: what `bind` takes.
        holding: the words that hold, of the conditions at the ends of lines.
        call: the expression that calls the action.
        copy: the expression that copies the fields of the State.
        answer: the lines that return.
    """
    reward = "pass" if "none" in holding else ONE_REWARD if "one" in holding else SEVERAL_REWARDS
    blocks = {"$reward": reward, "$record": RECORD if "recorded" in holding else "pass", "$answer": answer}
    lines: list[str] = []
    for line in COURSE.splitlines():
        block = blocks.get(line.strip())
        indent = line[: len(line) - len(line.lstrip())]
        lines += [line] if block is None else [indent + part for part in block.strip().splitlines()]
    kept = [line.partition("#?")[0] for line in lines if _belongs(line, holding)]
    written = (
        "\n".join(kept).replace("$names", ", ".join(names)).replace("$call", call).replace("$copy", copy)
    )
    scope: dict[str, Any] = {}
    # In this file's name, so that no line of it is taken for the author's.
    exec(compile(written, __file__, "exec"), scope)
    bind: Callable[..., Course] = scope["bind"]
    return bind


def _belongs(line: str, holding: frozenset[str]) -> bool:
    """Whether a line's condition holds: `#? word and not word`; a line without one always belongs."""
    _, _, condition = line.partition("#?")
    words = [word.strip() for word in condition.split(" and ")] if condition else []
    return all(word[4:] not in holding if word.startswith("not ") else word in holding for word in words)
