"""Playing: lets the Harness of every seat play in a thread of its own, until the episode is over.

`execution.py` comes here between opening a Trial's session and grading it. A Harness thread cannot be ended,
only left behind.
"""

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from plural_gym.agent import Agent
from plural_gym.errors import EpisodeOver, Fault, MachineError
from plural_gym.harness import TaskBrief, drive
from plural_gym.host.host import Outcome
from plural_gym.host.party import PartySession
from plural_gym.host.session import Session
from plural_gym.seat import PartyDoor, SeatDoor, SeatedAgent, json_answer
from plural_gym.task import Task

POLL_S = 0.25
"""How often a Trial looks whether its Job was stopped."""
GRACE_S = 0.5
"""How long past its time limit a Harness may take to notice that the episode is over."""
ANSWER_S = 10.0
"""How long after the end of the episode a Harness may take to give its answer."""


@dataclass(slots=True)
class Attempt:
    """What came of playing, before grading."""

    stop_reason: str
    failure: str = "none"
    faults: list[Fault] = field(default_factory=list)
    failed_seats: Mapping[str, Fault] = field(default_factory=dict)
    """Seats of a party whose Agents failed, and how; the others' attempt counts."""


class _Guarded(Session):
    """A Session that keeps what went wrong in this package, or on the disk, out of the Harness's hands."""

    broken: BaseException | None = None
    """What an action raised that is neither an App's nor the Agent's doing; ends the Trial."""

    def act(self, name: str, arguments: Mapping[str, Any], seat: str | None = None) -> Outcome:
        with self._guarded():
            return super().act(name, arguments, seat)

    def reject(self, action: str, error: str, app: bool = True, seat: str | None = None) -> Outcome:
        with self._guarded():
            return super().reject(action, error, app, seat)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except EpisodeOver:
            raise
        except BaseException as error:
            self.broken = self.broken or error
            self.stop("error", truncated=True)
        if self.broken is not None:
            raise EpisodeOver("the action failed, and the episode ends.")


class TrialSession(_Guarded, Session):
    """The Session of a Trial that one Agent plays."""


class PartyTrialSession(_Guarded, PartySession):
    """The Session of a Trial with several seats."""


class _Place:
    """One seat, the Agent in it and the thread that plays."""

    def __init__(self, seat: str | None, agent: Agent, door: SeatDoor, brief: TaskBrief) -> None:
        self.seat = seat
        self.agent = agent
        self.door = door
        self.answer: Any = None
        self.raised: BaseException | None = None
        self._brief = brief
        self.thread = threading.Thread(target=self._play, name=f"plural-harness-{seat or ''}", daemon=True)

    def _play(self) -> None:
        try:
            self.answer = json_answer(drive(self.agent.driver(), self._brief, self.door))
        except EpisodeOver:
            pass
        except BaseException as error:
            self.raised = error
        self.door.leave(self.answer)

    @property
    def fault(self) -> Fault | None:
        """How its Harness failed."""
        if self.raised is None:
            return None
        return Fault.of(self.raised, f"harness {self.agent.driver().name}")


def play(task: Task, agents: Mapping[str | None, Agent], session: Session, stop: threading.Event) -> Attempt:
    """Let every seat's Agent play.

    Args:
        agents: by seat; {None: agent} for a single one.
        session: the opened episode; a TrialSession, or a PartyTrialSession where there are seats.
        stop: once set, everything is left as it is.

    Raises:
        Exception: what broke in this package, or on the disk, while an action was taken.
    """
    assert isinstance(session, _Guarded)
    places = _places(task, agents, session)
    for place in places:
        place.thread.start()
    _wait([place.thread for place in places], session, stop)
    for place in places:
        place.door.close()
    if any(place.thread.is_alive() for place in places):
        session.stop("max_seconds", truncated=True)
    if session.broken is not None:
        if isinstance(session.broken, Exception):
            raise session.broken
        raise RuntimeError("an action was broken off") from session.broken
    if session.fault is not None:
        return Attempt("error", "environment", [session.fault])
    failed = [place for place in places if place.raised is not None]
    unreached = next((place for place in failed if _is_the_models(place.raised)), None)
    if unreached is not None or (failed and not isinstance(session, PartySession)):
        session.stop("error", truncated=True)
        first = unreached or failed[0]
        assert first.fault is not None
        return Attempt("error", "agent" if unreached is None else "infrastructure", [first.fault])
    session.stop("agent_response", terminated=True)
    faults = {place.seat or "": place.fault for place in failed if place.fault is not None}
    return Attempt(session.stop_reason or "agent_response", "none", list(faults.values()), faults)


def _places(task: Task, agents: Mapping[str | None, Agent], session: Session) -> list[_Place]:
    environment = task.environment
    tools = environment.actions.tools()
    offered = environment.finish != "never" and "finish" not in environment.actions.table
    if not isinstance(session, PartySession):
        agent = agents[None]
        door = SeatDoor(session, agent, tools, offered)
        return [_Place(None, agent, door, TaskBrief(task.instructions))]
    turns = threading.Condition()
    places = []
    for seat in session.seats:
        agent = agents[seat]
        role = session.party.role(seat)
        said = f"{task.instructions}\n\n{role}".strip() if role else task.instructions
        door = PartyDoor(session, agent, tools, offered, seat, turns)
        places.append(_Place(seat, agent, door, TaskBrief(said)))
    return places


def _wait(threads: Sequence[threading.Thread], session: Session, stop: threading.Event) -> None:
    """Until every Harness has returned or has had its time."""
    left = session.seconds_left
    deadline = math.inf if left is None else time.monotonic() + max(left, 0.0) + GRACE_S
    over = False
    while time.monotonic() < deadline and not stop.is_set():
        alive = next((thread for thread in threads if thread.is_alive()), None)
        if alive is None:
            return
        alive.join(min(deadline - time.monotonic(), POLL_S))
        if session.stop_reason is not None and not over:
            over, deadline = True, min(deadline, time.monotonic() + ANSWER_S)


def _is_the_models(error: BaseException | None) -> bool:
    """Whether a MachineError came from asking the Agent's model, rather than from the Harness's own code."""
    trace = error.__traceback__ if isinstance(error, MachineError) else None
    while trace is not None:
        if trace.tb_frame.f_code is SeatedAgent.complete.__code__:
            return True
        trace = trace.tb_next
    return False
