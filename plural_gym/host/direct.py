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
from collections.abc import Callable, Hashable, Mapping
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

from plural_gym.app import CertainFit
from plural_gym.environment import Limits
from plural_gym.errors import Fault
from plural_gym.host.hooks import NO_SIGNAL, LocalHooks
from plural_gym.host.host import AppHost, AuthorError, Outcome, as_seen, blame
from plural_gym.host.opening import Opening, opening_of
from plural_gym.host.reading import attributes_read
from plural_gym.host.session import Recorder, Session
from plural_gym.host.written import binder
from plural_gym.records.strict_json import legible
from plural_gym.step import UNREAD, BlankStep, PromptStep, Step, TaskView

_PUBLIC = frozenset(name for name in vars(Step) if not name.startswith("_"))
Course = Callable[[Any], Any]
"""Takes one action with these arguments; None, and nothing done, where they do not certainly fit."""

COURSE = """
def bind($names):
    def course(given):
        if not ($fits):
            return None
        began = perf_counter()                                    #? recorded
        session.turn = turn = session.turn + 1
        sent = $packed                                            #? packed
        sent = given.copy()                                       #? not packed
        app = live.app
        before = after = error = fault = None
        terminated = truncated = False
        rewards = ()
        try:
            before = host.last or live.snapshot()                 #? earlier
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
            fields = app.state.__dict__                           #? later and plain
            $copied
            after = host.last = (copier, copied)                  #? later and plain and kept
            after = copied                                        #? prompt
            after = host.last = live.snapshot()                   #? later and not plain
            if app.terminated():                                  #? ends
                terminated = True                                 #? ends
            if app.truncated():                                   #? cuts
                truncated = True                                  #? cuts
            mask = host.mask = ($mask)                            #? masked
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
"""The course of a step, as `written.binder` takes it; its words hold for a Session.

packed: arguments are kept as `step.unpacked` reads them. earlier, later: somebody may read the State before,
after. kept: a State must stay as it was taken. prompt: the State after is for the reward function alone.
"""

CONSTANTS = {
    "AuthorError": AuthorError,
    "BlankStep": BlankStep,
    "Fault": Fault,
    "NO_SIGNALS": (NO_SIGNAL,),
    "Outcome": Outcome,
    "PromptStep": PromptStep,
    "UNREAD": UNREAD,
    "as_seen": as_seen,
    "blame": blame,
    "isfinite": isfinite,
    "legible": legible,
    "perf_counter": perf_counter,
}

ONE_REWARD = """
if fault is None:
    step = BlankStep()                                            #? not prompt
    step = PromptStep()                                           #? prompt
    step._task = session.task
    step._world = host
    step.app = app_name
    step.seat = None
    step._event_id = event_id                                     #? recorded
    step._event_id = None                                         #? not recorded
    step.action = action
    step._arguments = sent
    step.turn = turn
    step._observation = observation
    step.error = error
    step._before = before                                         #? earlier
    step._before = UNREAD                                         #? not earlier
    step._after = after                                           #? later and not prompt
    step.current_state = after                                    #? prompt
    step._after = UNREAD                                          #? not later
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
    identity = event_id(turn)                                     #? recorded
    identity = None                                               #? not recorded
    rewards = hooks.reward(session.task, outcome, turn, host, identity)
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
        self.rows: Mapping[str, Course] | None = None
        """Those by which a vector environment does, once it has asked for them."""
        # No cached properties: they would make a dict of the attributes, which are read faster without one.
        self._courses: Mapping[str, Course] | None = None
        self._opened: Opening | None = None

    def open(
        self,
        task: TaskView,
        setup: Mapping[str, Mapping[str, Any]],
        seed: int,
        resources: Path,
        keep_initial: bool = True,
    ) -> Any:
        """Start an episode, as `Session.open` does."""
        if self._opened is None:
            self._opened = self._opening() or super().open
        return self._opened(task, setup, seed, resources)

    def _opening(self) -> Opening | None:
        live, _ = self.host.direct_actions()
        if live is None or not live.plain or self.host.seats or self._recorder is not None:
            return None
        return opening_of(self, self.host, live, self._mask())

    def act(self, name: str, arguments: Mapping[str, Any], seat: str | None = None) -> Outcome:
        """Take one action, as `Session.act` does."""
        if self._courses is None:
            self._courses = self.courses(OUTCOME)
        course = self._courses.get(name)
        if course is not None and self.stop_reason is None and seat is None:
            outcome: Outcome | None = course(arguments)
            if outcome is not None:
                return outcome
        return super().act(name, arguments, seat)

    def courses(
        self,
        answer: str,
        constants: Mapping[str, Hashable] | None = None,
        names: Mapping[str, Any] | None = None,
    ) -> dict[str, Course]:
        """A function for each action that can go the short way, by each of the action's names.

        Args:
            answer: lines that return what the functions answer; all local names of `COURSE` are theirs.
            constants: what else these lines use and many Sessions share.
            names: what else they use.
        """
        live, entries = self.host.direct_actions()
        if live is None:
            return {}
        hooks, recorder = self.hooks, self._recorder
        own = {
            "copier": live.copier,
            "event_id": None if recorder is None else recorder.event_id,
            "hooks": hooks,
            "host": self.host,
            "live": live,
            "recorder": recorder,
            "reward": hooks.single_reward,
            "session": self,
            **(names or {}),
        }
        shared = {
            "app_name": self.host.only,
            "max_turns": self._max_turns,
            "rewarding": hooks.rewarding,
            **(constants or {}),
        }
        earlier, later = self._looks
        conditions = {
            "earlier": earlier,
            "later": later,
            "kept": earlier or recorder is not None,
            "prompt": later and live.copier is not None and not earlier and recorder is None,
            "plain": live.copier is not None,
            "packed": recorder is None and len(hooks.rewarding) < 2,
            "ends": live.ends,
            "cuts": live.cuts,
            "none": not hooks.rewarding,
            "one": len(hooks.rewarding) == 1,
            "masked": bool(self.host.watched),
            "timed": self._max_seconds is not None,
            "recorded": recorder is not None,
        }
        holding = frozenset(word for word, holds in conditions.items() if holds)
        return {
            name: _binder(
                tuple(own),
                tuple({**shared, "action": action.name}.items()),
                holding,
                action.fits,
                action.call,
                live.copy_lines(),
                self._mask(),
                answer,
            )(**own)
            for name, action in entries.items()
        }

    @property
    def _looks(self) -> tuple[bool, bool]:
        """Whether somebody may read the State before an action, and the State after it."""
        if len(self.hooks.rewarding) != 1:
            return bool(self.hooks.rewarding), self._watch
        read = attributes_read(self.hooks.single_reward)
        if read is None or not read <= _PUBLIC:
            return True, True
        return "previous_state" in read, "current_state" in read or self._recorder is not None

    def _mask(self) -> str:
        """The items of the expression that says which of the host's `watched` actions are legal."""
        table = self.host.actions.table
        return "".join(
            f"not not app.is_legal({table[name][1].name!r}, None), " if name in table else "True, "
            for name in self.host.watched
        )


@functools.lru_cache(1024)
def _binder(
    names: tuple[str, ...],
    constants: tuple[tuple[str, Hashable], ...],
    holding: frozenset[str],
    fits: CertainFit,
    call: str,
    copied: tuple[str, ...],
    mask: str,
    answer: str,
) -> Callable[..., Course]:
    """The function `bind` of `COURSE`; one serves all Sessions of a kind, since to compile takes a while.

    Args:
        names: what `bind` takes: whatever each Session has of its own.
        constants: all else that the lines name. Sessions by the hundred read them in one place, which stays
            in the processor's cache.
        holding: the words that hold, of the conditions at the ends of lines.
        fits: the test of the arguments.
        call: the expression that calls the action.
        copied: lines that copy the fields of the State.
        mask: the items of a tuple that says which actions are legal, each with a comma.
        answer: the lines that return.
    """
    blocks = {
        "$reward": "pass" if "none" in holding else ONE_REWARD if "one" in holding else SEVERAL_REWARDS,
        "$record": RECORD if "recorded" in holding else "pass",
        "$answer": answer,
        "$copied": "\n".join(f"{line} #? later" for line in copied) or "pass",
    }
    values = "".join(f", given[{name!r}]" for name in fits.arguments)
    holes = {
        "$names": ", ".join(names),
        "$fits": fits.text,
        "$packed": f"({fits.arguments!r}{values},)" if values else f"({fits.arguments!r},)",
        "$call": call,
        "$mask": mask,
    }
    scope = {**CONSTANTS, **dict(constants), **dict(fits.names)}
    return binder(COURSE, scope, holding, blocks, holes, __file__)
