"""PartySession: one live episode that several seats share.

The Apps say who may act; the Session holds everybody to it, counts each seat's turns, and goes on without a
seat whose Agent has left. Not thread-safe: `PartyEnv` plays it from one thread, a Trial behind one lock.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from plural_gym.environment import Limits
from plural_gym.episode import Episode, Usage
from plural_gym.errors import AppFault, Fault, UsageError
from plural_gym.host.host import Outcome
from plural_gym.host.session import Host, Recorder, Rewarder, Session
from plural_gym.party import Party, Table, share
from plural_gym.step import TaskView

NOBODY = Table(())


class PartyHost(Host, Protocol):
    """The Apps of a world with seats."""

    table: Table
    """Who may act and who is out, as of the last action."""

    def view(self, seat: str) -> Any: ...

    def forfeit(self, seat: str) -> bool: ...


class PartySession(Session):
    """One episode at a time on one host, played from several seats."""

    host: PartyHost

    def __init__(
        self,
        host: PartyHost,
        hooks: Rewarder,
        limits: Limits,
        party: Party,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(host, hooks, limits, recorder)
        self.party = party
        self.seats = party.names

    def open(
        self,
        task: TaskView,
        setup: Mapping[str, Mapping[str, Any]],
        seed: int,
        resources: Path,
        keep_initial: bool = True,
    ) -> Any:
        """Start an episode; returns the opening observation, which is every seat's, or None."""
        self.answers: dict[str, Any] = dict.fromkeys(self.seats)
        self.turns = dict.fromkeys(self.seats, 0)
        self.told: dict[str, Any] = {}
        """By seat, what its own last action returned."""
        self.left: set[str] = set()
        """Seats that take no more actions, since their Agents finished or failed."""
        return super().open(task, setup, seed, resources, keep_initial)

    @property
    def movers(self) -> tuple[str, ...]:
        """The seats that may act now, in the order of the seats; () once the episode is over."""
        if self.stop_reason is not None:
            return ()
        turn = self.host.table.turn
        return turn if not self.left else tuple(seat for seat in turn if seat not in self.left)

    @property
    def out(self) -> tuple[str, ...]:
        """The seats that the Apps have taken out."""
        return self.host.table.out

    def act(self, name: str, arguments: Mapping[str, Any], seat: str | None = None) -> Outcome:
        """Take one action from a seat whose turn it is.

        Raises:
            EpisodeOver: the episode has ended before.
            UsageError: it is not that seat's turn.
        """
        outcome = super().act(name, arguments, self._mover(seat))
        self._told(outcome)
        return outcome

    def reject(self, action: str, error: str, app: bool = True, seat: str | None = None) -> Outcome:
        """Count an input that names no action as a rejected Step of the seat whose turn it is."""
        outcome = super().reject(action, error, app, self._mover(seat))
        self._told(outcome)
        return outcome

    def _mover(self, seat: str | None) -> str:
        """The seat, its turn counted."""
        if self.stop_reason is None:
            if seat is None or seat not in self.movers:
                raise UsageError(
                    f"it is not the turn of seat {seat!r}; it is that of: {', '.join(self.movers)}."
                )
            self.turns[seat] += 1
        return seat or ""

    def _told(self, outcome: Outcome) -> None:
        assert outcome.seat is not None
        shown = outcome.observation if outcome.error is None else {"error": outcome.error}
        self.told[outcome.seat] = {"error": "the action failed"} if outcome.fault is not None else shown

    def conclude(
        self, fault: Fault | None, terminated: bool, truncated: bool
    ) -> tuple[str | None, bool, bool]:
        reason, terminated, truncated = super().conclude(fault, terminated, truncated)
        if reason is None:
            self.skip_left()
            self._count()
        return self.stop_reason, self.terminated, self.truncated

    def _count(self) -> None:
        """End the episode where it waits for a seat that has used up its turns."""
        most = self.limits.seat_turns
        if most is not None and any(self.turns[seat] >= most for seat in self.movers):
            self.stop("max_turns", truncated=True)

    def leave(self, seat: str, answer: Any = None) -> None:
        """A seat's Agent plays no more. The others go on while the Apps can do without it.

        Args:
            answer: the seat's final answer; None where it gave none.
        """
        if answer is not None and self.answers[seat] is None:
            self.answers[seat] = answer
        if seat not in self.left:
            self.left.add(seat)
            self.skip_left()

    def finish(self, answer: Any, seat: str | None = None) -> None:
        """A seat ends its own attempt with an answer. No Step, no reward."""
        if seat is None:
            raise UsageError("in a party a seat finishes; say which.")
        self.leave(seat, answer)

    def skip_left(self) -> None:
        """While it is the turn of nobody but seats that were left: forfeit them, or end the episode."""
        while self.stop_reason is None and not self.movers:
            waiting = self.host.table.turn
            if self.left >= set(self.seats):
                self.stop("agent_finished", terminated=True)
                return
            try:
                went_on = [self.host.forfeit(seat) for seat in waiting]
            except AppFault as error:
                self.fault = error.fault or Fault.of(error, "apps")
                self.stop("error", truncated=True)
                return
            turn = self.host.table.turn
            if not turn:
                self.stop("environment_terminated", terminated=True)
            elif not all(went_on) or set(turn) & set(waiting):
                self.stop("seat_left", truncated=True)

    def view(self, seat: str) -> Any:
        """What a seat sees now: its own view where the Apps give one, else what it was told last.

        Raises:
            AppFault: an App failed; the episode ends there.
        """
        try:
            seen = self.host.view(seat)
        except AppFault as error:
            self.fault = error.fault or Fault.of(error, "apps")
            self.stop("error", truncated=True)
            raise
        return seen if seen is not None else self.told.get(seat, self.opening)

    def own_rewards(self, verifier: str, seat: str | None = None) -> list[float]:
        """One Verifier's step rewards to a seat, in order."""
        if verifier not in self.hooks.rewarding:
            return []
        index = self.hooks.rewarding.index(verifier)
        given = (
            share(outcome.rewards[index][0], outcome.seat, seat) for outcome in self.trail if outcome.rewards
        )
        return [value for value in given if value is not None]

    def seat_episode(
        self, seat: str, artifacts: tuple[dict[str, Any], ...] = (), usage: Usage | None = None
    ) -> Episode:
        """The record so far as the check of one seat's score sees it."""
        usage = usage or Usage(turns=self.turns[seat], seconds=self.seconds)
        whole = self.episode(artifacts, usage)
        return Episode(
            task=whole.task,
            apps=whole.apps,
            trajectory=whole.trajectory,
            observation=self.told.get(seat, self.opening),
            answer=self.answers[seat],
            stop_reason=whole.stop_reason,
            artifacts=whole.artifacts,
            usage=whole.usage,
            seat=seat,
        )

    def save(self) -> dict[str, Any]:
        return {
            **super().save(),
            "answers": dict(self.answers),
            "turns": dict(self.turns),
            "told": dict(self.told),
            "left": set(self.left),
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        super().load(saved)
        self.answers, self.turns = dict(saved["answers"]), dict(saved["turns"])
        self.told, self.left = dict(saved["told"]), set(saved["left"])
