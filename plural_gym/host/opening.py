"""The start of an episode in one function, for one Python App in this process: the other half of `direct`.

Small worlds begin an episode every few steps, and there the way through Session, AppHost and PythonApp costs
more than what an App does in `reset`. This is the same way in one function, written out for a Session.
`tests/host/test_direct.py` holds both to the same outcomes.
"""

import functools
from collections.abc import Callable, Hashable
from time import monotonic
from typing import Any

from plural_gym.app import settle
from plural_gym.apps.python import PythonApp
from plural_gym.errors import AppFault, Fault
from plural_gym.host.host import AppHost
from plural_gym.host.session import Session
from plural_gym.host.written import binder
from plural_gym.state import freeze_value, thaw
from plural_gym.step import TaskView

CONSTANTS = {
    "AppFault": AppFault,
    "Fault": Fault,
    "NO_SETUP": {},
    "TaskView": TaskView,
    "freeze_value": freeze_value,
    "monotonic": monotonic,
    "new": object.__new__,
    "settle": settle,
    "thaw": thaw,
}
Opening = Callable[..., Any]
"""Starts an episode as `Session.open` does, of `task, setup, seed, resources`."""

OPENING = """
def bind(session, host, live):
    def opened(task, setup, seed, resources):
        session.task = task
        session.turn = 0
        session.answer = session.fault = None
        session.terminated = session.truncated = False
        session.past = []
        session._started = started = monotonic()
        session._deadline = started + max_seconds                 #? timed
        session.stop_reason = "error"
        host.last = opening = None
        try:
            live.app = app = new(kind)                            #? made
            live.app = app = kind()                               #? not made
            app.state = state = make(setup.get(app_name, NO_SETUP))
            app._entropy = seed
            app.resources = resources
            view = new(TaskView)
            view.name = task.name
            view.instructions = task.instructions
            view._frozen = task._frozen
            app.task = view
            app.seat = None
            app.__init__()                                        #? made
            opening = settle(app.reset(view))                     #? resets
            if opening is not None and opening.__class__ is not str:
                opening = thaw(freeze_value(opening))
            host.mask = ($mask)                                   #? masked
        except Exception as error:
            fault = Fault.of(error, "app " + app_name)
            raise AppFault(f"{fault} while the episode was being set up.", fault) from error
        session.stop_reason = None
        session.opening = opening
        fields = app.state.__dict__                               #? plain
        $copied
        host.last = initial = (copier, copied)                    #? plain
        host.last = initial = live.snapshot()                     #? not plain
        session.initial = {app_name: initial}
        return opening
    return opened
"""


def opening_of(session: Session, host: AppHost, live: PythonApp, mask: str) -> Opening:
    """The function that starts the episodes of a Session without a recorder.

    Args:
        session: the Session.
        host: its host.
        live: the host's only App, which lets the host set its attributes plainly.
        mask: the items of a tuple that says which of the host's `watched` actions are legal.
    """
    constants = {
        "app_name": host.only,
        "copier": live.copier,
        "kind": live.kind,
        "make": live.make,
        "max_seconds": session.limits.seconds,
    }
    conditions = {
        "made": not live.plain_init,
        "masked": bool(host.watched),
        "plain": live.copier is not None,
        "resets": not live.plain_reset,
        "timed": session.limits.seconds is not None,
    }
    holding = frozenset(word for word, holds in conditions.items() if holds)
    bind = _binder(tuple(constants.items()), holding, live.copy_lines(), mask)
    return bind(session, host, live)


@functools.lru_cache(256)
def _binder(
    constants: tuple[tuple[str, Hashable], ...], holding: frozenset[str], copied: tuple[str, ...], mask: str
) -> Callable[..., Opening]:
    blocks = {"$copied": "\n".join(copied) or "pass"}
    return binder(OPENING, {**CONSTANTS, **dict(constants)}, holding, blocks, {"$mask": mask}, __file__)
