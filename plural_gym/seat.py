"""The seat door: all that a Harness can reach of a live episode, observations and errors.

It holds its Session in closures rather than attributes, so that reward, score and State are not one dot away.
"""

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic_core import PydanticSerializationError

from plural_gym.agent import Agent
from plural_gym.environment import FINISH
from plural_gym.errors import ActionRejected, AppFault, EpisodeOver, MachineError, UsageError
from plural_gym.host.host import Outcome
from plural_gym.host.party import PartySession
from plural_gym.host.session import Session
from plural_gym.records.strict_json import legible
from plural_gym.state import freeze_value, thaw

WAIT_S = 1.0
"""Longest that a waiting seat sleeps before it looks again."""


class SeatedAgent:
    """What a Harness sees of the Agent it plays."""

    __slots__ = ("_name", "instructions", "model", "settings")

    def __init__(self, agent: Agent) -> None:
        self._name = agent.name
        self.model = agent.model
        self.instructions = agent.instructions
        self.settings: Mapping[str, Any] = copy.deepcopy(agent.settings)

    def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None = None) -> Any:
        """One answer of the Agent's model.

        Raises:
            UsageError: the Agent has no model.
            MachineError: nothing here serves that model.
        """
        if self.model is None:
            raise UsageError(f"Agent {self._name!r} has no model to ask; give it one, or play without.")
        raise MachineError(f"Agent {self._name!r}: nothing here serves the model {self.model!r}.")


class SeatDoor:
    """One Agent's place in a live episode. Used by the Harness's thread; closed by the Trial's.

    What it shows are values: a Harness that changes them changes no record.
    """

    def __init__(self, session: Session, agent: Agent, tools: list[dict[str, Any]], finish: bool) -> None:
        lock = threading.Lock()
        closed = threading.Event()
        self.agent = SeatedAgent(agent)
        self.actions = [*tools, FINISH.tool()] if finish else tools
        shown: list[Any] = [copy.deepcopy(session.opening)]

        def act(name: Any, arguments: dict[str, Any]) -> Any:
            with lock:
                if closed.is_set():
                    raise EpisodeOver(f"the episode is over ({session.stop_reason or 'closed'}).")
                if finish and name == "finish":
                    session.finish(_answer_of(arguments))
                    return None
                outcome = _taken(session, name, arguments, None)
                if outcome.fault is not None:
                    raise EpisodeOver("the action failed, and the episode ends.")
                if outcome.error is not None:
                    shown[0] = {"error": outcome.error}
                    raise ActionRejected(outcome.error)
                shown[0] = copy.deepcopy(outcome.observation)
                return copy.deepcopy(outcome.observation)

        def close() -> None:
            with lock:
                closed.set()

        def over() -> bool:
            return closed.is_set() or session.stop_reason is not None

        def leave(answer: Any) -> None:
            with lock:
                if answer is not None and session.answer is None and not closed.is_set():
                    session.answer = answer

        self._act, self._close, self._leave = act, close, leave
        self._view: Callable[[], Any] = lambda: shown[0]
        self._shown, self._over = shown, over

    @property
    def observation(self) -> Any:
        """The last thing seen: the opening observation, then what each action returned."""
        return self._shown[0]

    @property
    def finished(self) -> bool:
        """Whether the episode is over."""
        return self._over()

    def act(self, name: str, /, **arguments: Any) -> Any:
        """Take one action; returns its observation.

        Raises:
            ActionRejected: the input was not accepted; the episode goes on.
            EpisodeOver: the episode has ended.
        """
        return self._act(name, arguments)

    def view(self) -> Any:
        """What can be seen now. In a party it waits until this seat may act or the episode is over for it."""
        return self._view()

    def close(self) -> None:
        """Take no more actions; waits for one that is under way."""
        self._close()

    def leave(self, answer: Any) -> None:
        """The Agent plays no more, and gives this answer; None for none."""
        self._leave(answer)


class PartyDoor(SeatDoor):
    """One Agent's seat in a party. Every seat's thread waits for its turn on the same condition."""

    def __init__(
        self,
        session: PartySession,
        agent: Agent,
        tools: list[dict[str, Any]],
        finish: bool,
        seat: str,
        turns: threading.Condition,
    ) -> None:
        closed = threading.Event()
        self.agent = SeatedAgent(agent)
        self.actions = [*tools, FINISH.tool()] if finish else tools
        # What is seen first: nobody acts before every door is there.
        shown: list[Any] = [None]

        def look() -> None:
            # An App that fails here has ended the episode, and nothing is told of why.
            with suppress(AppFault):
                shown[0] = copy.deepcopy(session.view(seat))

        look()

        def over() -> bool:
            gone = seat in session.left or seat in session.out
            return closed.is_set() or session.stop_reason is not None or gone

        def wait() -> None:
            """Until this seat may act, or may act no more."""
            while not over() and seat not in session.movers:
                turns.wait(WAIT_S)

        def act(name: Any, arguments: dict[str, Any]) -> Any:
            with turns:
                wait()
                if over():
                    raise EpisodeOver(f"the episode is over for seat {seat!r}.")
                try:
                    if finish and name == "finish":
                        session.finish(_answer_of(arguments), seat)
                        return None
                    outcome = _taken(session, name, arguments, seat)
                finally:
                    turns.notify_all()
                if outcome.fault is not None:
                    raise EpisodeOver("the action failed, and the episode ends.")
                if outcome.error is not None:
                    shown[0] = {"error": outcome.error}
                    raise ActionRejected(outcome.error)
                shown[0] = copy.deepcopy(outcome.observation)
                return copy.deepcopy(outcome.observation)

        def view() -> Any:
            with turns:
                wait()
                if not closed.is_set() and seat in session.movers:
                    look()
                return copy.deepcopy(shown[0])

        def close() -> None:
            with turns:
                closed.set()
                turns.notify_all()

        def leave(answer: Any) -> None:
            with turns:
                if not closed.is_set():
                    session.leave(seat, answer)
                turns.notify_all()

        self._act, self._view, self._close, self._leave = act, view, close, leave
        self._shown, self._over = shown, over


def _answer_of(arguments: Mapping[str, Any]) -> Any:
    """The answer that `finish` was given. Raises ActionRejected for any other argument."""
    unknown = [key for key in arguments if key != "answer"]
    if unknown:
        raise ActionRejected(f"finish: {unknown[0]} is no argument (it takes: answer).")
    return json_answer(arguments.get("answer"))


def _taken(session: Session, name: Any, arguments: dict[str, Any], seat: str | None) -> Outcome:
    """What an action came to, whatever it was named by."""
    if isinstance(name, str):
        return session.act(name, arguments, seat)
    said = ascii(name)[:80]
    return session.reject(said, f"an action is named by a string, got {said}.", seat=seat)


def json_answer(answer: Any) -> Any:
    """A Harness's answer as a JSON value that nobody else holds; its text where it has no JSON form."""
    try:
        return thaw(freeze_value(answer))
    except (PydanticSerializationError, ValueError):
        return legible(str(answer))
