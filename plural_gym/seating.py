"""Seating: who plays a Job's Trials; one Agent, or in a party one Agent a seat.

A line-up names an Agent for every seat. An Agent entered by itself has all seats of a party: self-play.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from plural_gym.agent import Agent
from plural_gym.errors import DefinitionError, suggest
from plural_gym.party import Party

LineUp = Mapping[str, Agent]
"""Seat -> the Agent that has it."""
Seats = Sequence[LineUp] | Literal["round-robin"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Who plays one attempt at a Task."""

    name: str
    """As results name it: the Agent's name, or the line-up's."""
    agent: Agent
    """Who plays; of a line-up, who has its first seat."""
    line_up: LineUp | None = None
    """None: the Agent has every seat there is."""

    def seats(self, party: Party | None) -> dict[str, Agent]:
        """Who has which seat, in the order of the seats; {} where a single Agent plays.

        Raises:
            DefinitionError: the line-up lacks a seat, has one too many, or there is no party.
        """
        if party is None:
            if self.line_up is not None:
                raise DefinitionError(f"line-up {self.name!r} needs a party, and the Environment has none.")
            return {}
        if self.line_up is None:
            return dict.fromkeys(party.names, self.agent)
        for seat in self.line_up:
            if seat not in party.names:
                raise DefinitionError(
                    f"line-up {self.name!r}: there is no seat {seat!r}; {suggest(seat, party.names)}"
                )
        missing = [seat for seat in party.names if seat not in self.line_up]
        if missing:
            raise DefinitionError(f"line-up {self.name!r} has no Agent for seat {missing[0]!r}.")
        return {seat: self.line_up[seat] for seat in party.names}


def line_up_name(names: Mapping[str, str]) -> str:
    """What a line-up is called: `north=solver,south=novice`."""
    return ",".join(f"{seat}={agent}" for seat, agent in names.items())


def line_up_entry(line_up: LineUp) -> Entry:
    """The entry of a line-up.

    Raises:
        DefinitionError: it names no seat, or something that is no Agent.
    """
    if not isinstance(line_up, Mapping) or not line_up:
        raise DefinitionError(f"a line-up maps every seat to an Agent, got {line_up!r}.")
    for seat, agent in line_up.items():
        if not isinstance(agent, Agent):
            raise DefinitionError(f"seat {seat!r} is given {agent!r}, which is no Agent.")
    name = line_up_name({seat: agent.name for seat, agent in line_up.items()})
    return Entry(name, next(iter(line_up.values())), dict(line_up))


def round_robin(agents: Sequence[Agent], seats: Sequence[str]) -> list[LineUp]:
    """Every way to seat different Agents, so that each meets each in every seat.

    With fewer Agents than seats some have several; a table of one Agent alone is left out.

    Raises:
        DefinitionError: fewer than two Agents.
    """
    if len(agents) < 2:
        raise DefinitionError("a round-robin needs at least two Agents.")
    if len(agents) >= len(seats):
        tables = list(itertools.permutations(agents, len(seats)))
    else:
        every = itertools.product(agents, repeat=len(seats))
        tables = [table for table in every if len({agent.name for agent in table}) > 1]
    return [dict(zip(seats, table, strict=True)) for table in tables]
