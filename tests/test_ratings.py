"""Ratings from who scored more than whom at one table."""

import math
from typing import Any

import numpy as np
import pytest

from plural_gym.ratings import POINTS, as_text, games, rate


def played(wins: int, losses: int, ties: int = 0) -> list[Any]:
    one = [[("a", 1.0), ("b", 0.0)]] * wins + [[("a", 0.0), ("b", 1.0)]] * losses
    return one + [[("a", 0.5), ("b", 0.5)]] * ties


def test_three_wins_to_one_are_three_to_one_in_strength() -> None:
    first, second = rate(played(300, 100))
    assert first.agent == "a" and (first.wins, first.ties, first.losses) == (300, 0, 100)
    assert first.elo - second.elo == pytest.approx(POINTS * math.log(3), abs=3)
    assert first.elo + second.elo == pytest.approx(3000, abs=0.2)
    assert first.interval is not None and first.interval[0] > 1500 > second.interval[1]  # type: ignore[index]


def test_ties_are_half_a_win_of_each() -> None:
    first, second = rate(played(10, 10, 20))
    assert first.elo == pytest.approx(1500, abs=0.2) and (first.ties, second.ties) == (20, 20)


def test_who_won_every_game_still_has_a_rating() -> None:
    first, second = rate(played(6, 0))
    assert 1500 < first.elo < 4000 and second.losses == 6


def test_strengths_of_many_agents_are_found_again() -> None:
    draw = np.random.default_rng(1)
    true = {"a": 1.0, "b": 0.3, "c": -0.5, "d": -0.8}
    games_played = []
    for _ in range(1500):
        one, two = draw.choice(list(true), 2, replace=False)
        chance = 1 / (1 + math.exp(true[two] - true[one]))
        won = draw.random() < chance
        games_played.append([(str(one), float(won)), (str(two), float(not won))])
    found = {rating.agent: rating for rating in rate(games_played)}
    for agent, strength in true.items():
        low, high = found[agent].interval or (0, 0)
        assert low - 15 < 1500 + POINTS * strength < high + 15
    assert [rating.agent for rating in rate(games_played)] == ["a", "b", "c", "d"]


def test_few_games_give_no_interval_and_one_agent_no_rating() -> None:
    assert rate(played(2, 1))[0].interval is None
    assert rate([[("a", 1.0), ("a", 0.0)]]) == []
    assert rate([]) == []


def test_only_decided_meetings_of_different_agents_count() -> None:
    def seat(agent: str, score: float | None, failure: str = "none") -> dict[str, Any]:
        return {"agent": agent, "score": score, "failure": failure}

    results = [
        {"failure": "none", "seats": [seat("a", 1.0), seat("b", 0.0)]},
        {"failure": "none", "seats": [seat("a", None, "agent"), seat("b", 0.0)]},
        {"failure": "none", "seats": [seat("a", None), seat("b", 0.0)]},
        {"failure": "grader", "seats": [seat("a", 1.0), seat("b", 0.0)]},
        {"failure": "none", "seats": [seat("a", 1.0), seat("a", 0.0)]},
        {"failure": "none", "seats": [None]},
    ]
    assert games(results) == [[("a", 1.0), ("b", 0.0)], [("a", -math.inf), ("b", 0.0)]]


def test_ratings_read_as_a_table() -> None:
    lines = as_text(rate(played(8, 2))).splitlines()
    assert lines[0].split() == ["agent", "Elo", "95", "%", "wins", "ties", "losses"]
    assert lines[1].startswith("a") and lines[1].split()[-3:] == ["8", "0", "2"]
