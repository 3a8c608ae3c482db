"""Ratings: how strong Agents are that met at one table, from who scored more than whom.

Bradley-Terry by maximum likelihood (Bradley and Terry 1952; Hunter 2004), from the library `choix`, which the
extra `ratings` installs. `job.py` asks for them where Agents met.
"""

import importlib.util
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from plural_gym.statistics import Interval

MEAN = 1500.0
"""What the ratings of a table's Agents average, as in chess."""
POINTS = 400 / math.log(10)
"""Elo points of one unit of strength: 400 points are ten to one."""
PENALTY = 0.05
"""Regularisation: keeps a rating finite where somebody has won every game."""
RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Rating:
    """One Agent's strength against the others that it met."""

    agent: str
    elo: float
    """1500 is the mean of all; 400 more means ten to one to score more."""
    interval: Interval | None
    """95 % bootstrap over Trials; None below five Trials."""
    wins: int
    """Pairs of seats at one table in which it scored more."""
    ties: int
    losses: int

    def to_json(self) -> dict[str, Any]:
        """The rating as JSON values."""
        return {**asdict(self), "interval": self.interval and list(self.interval)}


Game = Sequence[tuple[str, float]]
"""One Trial: every seat's Agent and score."""
Outcomes = Sequence[Sequence[tuple[int, int, int]]]
"""By Trial, every pair of seats: two Agents' numbers, and +1, 0 or -1 for the first."""


def games(results: Iterable[Mapping[str, Any]]) -> list[Game]:
    """The Trials in which different Agents met and every seat is decided; a failed Agent scored least."""
    found: list[Game] = []
    for result in results:
        seats = [seat for seat in result["seats"] if seat is not None]
        if result["failure"] != "none" or len({seat["agent"] for seat in seats}) < 2:
            continue
        scored = [
            (seat["agent"], -math.inf if seat["failure"] == "agent" else seat["score"]) for seat in seats
        ]
        if all(score is not None for _, score in scored):
            found.append(scored)
    return found


def missing() -> str | None:
    """What to install before ratings can be fitted; None where it is there."""
    return None if importlib.util.find_spec("choix") else "pip install plural-gym[ratings]"


def rate(played: Sequence[Game], seed: int = 0) -> list[Rating]:
    """The ratings of all Agents that met, the strongest first.

    A tie counts as half a win of each. Seats of one Agent at the same table are not compared.
    """
    agents = sorted({agent for game in played for agent, _ in game})
    if len(agents) < 2:
        return []
    number = {agent: place for place, agent in enumerate(agents)}
    pairs = [[_met(number, one, two) for one, two in itertools.combinations(game, 2)] for game in played]
    outcomes = [[pair for pair in game if pair is not None] for game in pairs]
    strength = _fitted(outcomes, len(agents))
    intervals = _intervals(outcomes, len(agents), seed)
    counts = np.zeros((len(agents), 3), dtype=int)
    for one, two, sign in itertools.chain.from_iterable(outcomes):
        counts[one][1 - sign] += 1
        counts[two][1 + sign] += 1
    ratings = [
        Rating(agent, round(float(strength[place]), 1), intervals[place], *map(int, counts[place]))
        for agent, place in number.items()
    ]
    return sorted(ratings, key=lambda rating: (-rating.elo, rating.agent))


def _met(
    number: Mapping[str, int], one: tuple[str, float], two: tuple[str, float]
) -> tuple[int, int, int] | None:
    """Two seats as (Agent, Agent, +1, 0 or -1 for the first); None where one Agent has both."""
    if one[0] == two[0]:
        return None
    sign = (one[1] > two[1]) - (one[1] < two[1])
    return number[one[0]], number[two[0]], sign


def _fitted(outcomes: Outcomes, count: int, weights: Any = None) -> Any:
    """The Agents' ratings in Elo points, an array; each Trial counted by its weight, or once."""
    import choix

    won = np.zeros((count, count))
    for game, met in enumerate(outcomes):
        weight = 1.0 if weights is None else weights[game]
        for one, two, sign in met:
            won[one, two] += weight * (1 + sign) / 2
            won[two, one] += weight * (1 - sign) / 2
    strength = choix.ilsr_pairwise_dense(won, alpha=PENALTY)
    return MEAN + POINTS * (strength - strength.mean())


def _intervals(outcomes: Outcomes, count: int, seed: int) -> list[Interval | None]:
    if len(outcomes) < 5:
        return [None] * count
    draw = np.random.default_rng(seed)
    even = np.full(len(outcomes), 1 / len(outcomes))
    fits = [_fitted(outcomes, count, draw.multinomial(len(outcomes), even)) for _ in range(RESAMPLES)]
    bounds = np.percentile(np.array(fits), [2.5, 97.5], axis=0)
    return [Interval(round(float(low), 1), round(float(high), 1)) for low, high in bounds.T]


def as_text(ratings: Sequence[Rating]) -> str:
    """A table of ratings."""
    head = ["agent", "Elo", "95 %", "wins", "ties", "losses"]
    rows = [
        [
            rating.agent,
            f"{rating.elo:.0f}",
            "" if rating.interval is None else f"{rating.interval[0]:.0f}..{rating.interval[1]:.0f}",
            *(str(count) for count in (rating.wins, rating.ties, rating.losses)),
        ]
        for rating in ratings
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
