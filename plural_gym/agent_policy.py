"""AgentPolicy: an Agent in a seat of a learner's party, asked for one action at a time.

A Harness is a loop that calls `seat.act`; a learner's environment asks for actions. So the Harness runs in a
thread of its own, only while it is its seat's turn, and hands its calls over. `SeatEnv` finds it by name.
"""

import queue
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from plural_gym.agent import Agent
from plural_gym.environment import FINISH
from plural_gym.errors import ActionRejected, EpisodeOver, Fault, MachineError
from plural_gym.harness import TaskBrief, drive
from plural_gym.rl.game import PartyGame
from plural_gym.seat import SeatedAgent

WAIT_S = 600.0
"""Longest that an Agent may take for one action."""


class _Turn(NamedTuple):
    """What a Harness hears when it may go on."""

    view: Any
    told: Any = None
    """What its last action returned."""
    rejected: str = ""
    over: bool = False


class _Left:
    """What a Harness hands over when it has returned."""


class _AskedSeat:
    """The seat as the Harness holds it."""

    def __init__(self, agent: Agent, actions: list[dict[str, Any]]) -> None:
        self.agent = SeatedAgent(agent)
        self.actions = actions
        self.finished = False
        self.asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.turns: queue.SimpleQueue[_Turn] = queue.SimpleQueue()
        self.begin(None)

    def begin(self, view: Any) -> None:
        """What is seen at the seat's first turn."""
        self.observation = self._view = view

    def act(self, name: str, /, **arguments: Any) -> Any:
        """Take one action; returns its observation once it is this seat's turn again, or the end."""
        if self.finished:
            raise EpisodeOver("the episode is over.")
        self.asked.put({"action": name, "arguments": arguments})
        turn = self.turns.get()
        self.finished, self._view = turn.over, turn.view
        self.observation = {"error": turn.rejected} if turn.rejected else turn.told
        if turn.rejected:
            raise ActionRejected(turn.rejected)
        return turn.told

    def view(self) -> Any:
        """What can be seen now: the Harness runs only while it is its turn."""
        self.observation = self._view
        return self._view


class AgentPolicy:
    """Plays one seat of one episode with an Agent's Harness.

    Called with an observation and its info, it returns the action that the Harness takes. A Harness that
    returns, or fails, has left its seat.
    """

    def __init__(self, agent: Agent, game: PartyGame, seat: str) -> None:
        self.fault: Fault | None = None
        """How the Harness failed."""
        self._game = game
        self._name = seat
        self._harness = agent.driver()
        self._agent = agent
        self._thread: threading.Thread | None = None
        tools = [*game.environment.actions.tools(), FINISH.tool()]
        self._seat = _AskedSeat(agent, tools)

    def _play(self, brief: TaskBrief) -> None:
        try:
            drive(self._harness, brief, self._seat)
        except EpisodeOver:
            pass
        except BaseException as error:
            self.fault = Fault.of(error, f"harness {self._harness.name}")
        self._seat.asked.put(_Left())

    def __call__(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """The next action; None where the Agent has left.

        Raises:
            MachineError: the Agent took longer than ten minutes.
        """
        if self._thread is None:
            self._seat.begin(self._game.live.view(self._name))
            role = self._game.party.role(self._name)
            brief = TaskBrief(f"{self._game.live.task.instructions}\n\n{role}".strip())
            name = f"plural-opponent-{self._name}"
            self._thread = threading.Thread(target=self._play, args=(brief,), name=name, daemon=True)
            self._thread.start()
        else:
            self._seat.turns.put(self._turn(str(info.get("error", ""))))
        try:
            asked = self._seat.asked.get(timeout=WAIT_S)
        except queue.Empty:
            raise MachineError(f"Agent {self._agent.name!r} took longer than {WAIT_S:g} s.") from None
        return None if isinstance(asked, _Left) else asked

    def _turn(self, rejected: str, over: bool = False) -> _Turn:
        session = self._game.live
        view = None if over else session.view(self._name)
        return _Turn(view, session.told.get(self._name), rejected, over)

    def close(self) -> None:
        """The episode is over: let the Harness come to its end."""
        self._seat.turns.put(self._turn("", over=True))
        if self._thread is None:
            self._seat.finished = True
