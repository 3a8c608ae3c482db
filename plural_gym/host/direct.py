"""DirectSession: the course of a step in one function, for one Python App and hooks in this process.

Training loops step small worlds a hundred thousand times a second. There, passing an action through Session,
AppHost, LiveApp and LocalHooks costs more than the game. This is the same course with the layers laid into
each other, for the ordinary action: known, with arguments that fit as they are, nothing recorded. Everything
else goes the long way, through Session.act. `tests/host/test_direct.py` holds both ways to the same outcomes.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from plural_gym.environment import Limits
from plural_gym.errors import Fault
from plural_gym.host.hooks import LocalHooks
from plural_gym.host.host import AppHost, Outcome, as_seen, blame
from plural_gym.host.session import Session
from plural_gym.step import Step


class DirectSession(Session):
    """A Session without a recorder on an AppHost of this process, with one App."""

    host: AppHost
    hooks: LocalHooks

    def __init__(self, host: AppHost, hooks: LocalHooks, limits: Limits) -> None:
        super().__init__(host, hooks, limits)
        self._live, self._entries = host.direct_actions()
        self._app_name = host.only or ""
        self._copier = None if self._live is None else self._live.copier
        self._reward = hooks.single_reward
        self._long_way = super().act

    def act(self, name: str, arguments: Mapping[str, Any], seat: str | None = None) -> Outcome:
        """Take one action, as `Session.act` does."""
        entry = self._entries.get(name)
        if entry is None or self.stop_reason is not None or not entry[1](arguments):
            return self._long_way(name, arguments, seat)
        action, _, call = entry
        live, host, watch = self._live, self.host, self._watch
        app, app_name = live.app, self._app_name
        self.turn = turn = self.turn + 1
        sent = arguments.copy()  # type: ignore[attr-defined]
        before = after = error = fault = None
        terminated = truncated = False
        try:
            if watch:
                before = host.last or live.snapshot()
            host.last = None
            observation = call(app, sent)
            if observation.__class__ is not str:
                observation = as_seen(observation)
        except (Exception, SystemExit) as raised:
            observation, error, fault = None, *blame(raised, app_name)
        try:
            if watch:
                copier = self._copier
                after = (copier, copier(app.state.__dict__)) if copier is not None else live.snapshot()
                host.last = after
            if live.ends and app.terminated():
                terminated = True
            if live.cuts and app.truncated():
                truncated = True
        except (Exception, SystemExit) as raised:
            observation, fault = None, fault or Fault.of(raised, f"app {app_name}")
        # The trail keeps no State: a large one over many steps would not fit in memory.
        outcome = Outcome(
            app_name, action, sent, observation, error, fault, None, None, terminated, truncated
        )
        if watch and fault is None:
            reward = self._reward
            if reward is None:
                outcome.before, outcome.after = before, after
                outcome.rewards = self.hooks.reward(self.task, outcome, turn, host)
                outcome.before = outcome.after = None
            else:
                try:
                    value = reward(
                        Step(self.task, app_name, action, sent, turn, observation, error, before, after, host)
                    )
                except (Exception, SystemExit) as raised:
                    outcome.rewards = self.hooks.failed(raised)
                else:
                    if value.__class__ is float and isfinite(value):
                        outcome.rewards = ((value, None),)
                    else:
                        outcome.rewards = self.hooks.settled(value)
        if (
            terminated
            or truncated
            or fault is not None
            or turn >= self._max_turns
            or self._deadline is not None
        ):
            self._conclude(outcome)
        self.trail.append(outcome)
        return outcome
