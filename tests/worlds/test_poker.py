"""Kuhn and Leduc poker: the rules by hand, the known values, and the Agent that plays by one of them."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plural_gym import shipped
from plural_gym.job import Job

ROOT = Path(__file__).parents[2]
PROJECT = shipped.project()


def _script(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def equilibrium() -> Any:
    import sys

    spec = importlib.util.spec_from_file_location("equilibrium", ROOT / "docs/parties/equilibrium.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["equilibrium"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["equilibrium"]


def table(environment: str, deal: list[str], hands: int = 1) -> Any:
    env = PROJECT.environments[environment].aec(tasks=PROJECT.tasks_of(environment), task="match")
    env.reset(seed=0, options={"setup": {"table": {"deal": deal, "hands": hands}}})
    return env


@pytest.mark.parametrize(
    ("deal", "line", "won"),
    [
        (["K", "J"], ["check", "check"], 1),
        (["J", "Q"], ["check", "check"], -1),
        (["J", "K"], ["bet", "fold"], 1),
        (["J", "K"], ["bet", "call"], -2),
        (["Q", "J"], ["check", "bet", "call"], 2),
        (["Q", "J"], ["check", "bet", "fold"], -1),
    ],
)
def test_a_hand_of_kuhn_poker_pays_as_the_rules_say(deal: list[str], line: list[str], won: int) -> None:
    env = table("kuhn-poker", deal)
    for move in line:
        env.step(move)
    assert (env.game.score("first"), env.game.score("second")) == (won, -won)
    assert env.terminations == {"first": True, "second": True}


@pytest.mark.parametrize(
    ("deal", "line", "won"),
    [
        (["K", "Q", "J"], ["check", "check", "check", "check"], 1),
        (["J", "Q", "J"], ["check", "check", "bet", "call"], 5),
        (["J", "Q", "Q"], ["bet", "bet", "call", "bet", "bet", "call"], -13),
        (["Q", "Q", "K"], ["bet", "call", "check", "check"], 0),
        (["K", "J", "Q"], ["bet", "fold"], 1),
        (["J", "K", "Q"], ["check", "bet", "call", "check", "bet", "fold"], -3),
    ],
)
def test_a_hand_of_leduc_poker_pays_as_the_rules_say(deal: list[str], line: list[str], won: int) -> None:
    env = table("leduc-poker", deal)
    for move in line:
        env.step(move)
        assert env.infos[env.agent_selection]["error"] == ""
    assert (env.game.score("first"), env.game.score("second")) == (won, -won)


@pytest.mark.parametrize("environment", ["kuhn-poker", "leduc-poker"])
def test_moves_that_the_rules_forbid_are_masked_and_rejected(environment: str) -> None:
    env = table(environment, ["J", "K", "Q"][: 2 if environment == "kuhn-poker" else 3])
    legal = dict(zip(env.game.codec.names, env.infos["first"]["action_mask"], strict=True))
    assert legal == {"check": 1, "bet": 1, "call": 0, "fold": 0}
    env.step("call")
    assert "you cannot call now; check or bet" in env.infos["first"]["error"]
    env.step("bet")
    legal = dict(zip(env.game.codec.names, env.infos["second"]["action_mask"], strict=True))
    assert legal == {"check": 0, "bet": int(environment == "leduc-poker"), "call": 1, "fold": 1}


@pytest.mark.parametrize("environment", ["kuhn-poker", "leduc-poker"])
def test_no_seat_ever_receives_the_others_card(environment: str) -> None:
    deal = ["J", "K"] if environment == "kuhn-poker" else ["J", "K", "Q"]
    env = table(environment, deal)
    for move in ("bet",):
        for seat, hidden in (("first", "K"), ("second", "J")):
            seen = json.loads(env.observe(seat)["text"].split("\n\n")[-1])
            assert hidden not in json.dumps([seen, env.infos[seat]["error"], env.infos[seat]["action"]])
        env.step(move)


def test_kuhn_poker_is_worth_minus_an_eighteenth_to_the_first_seat(equilibrium: Any) -> None:
    solver = equilibrium.Solver(equilibrium.read_tree("kuhn-poker"))
    solver.run(400)
    assert solver.value() == pytest.approx(-1 / 18, abs=0.002)
    assert solver.exploitability() < 0.01


def test_leduc_poker_is_worth_what_is_known_of_it_to_the_first_seat(equilibrium: Any) -> None:
    """Its value is -0.0856, as CFR finds it elsewhere (Lanctot et al. 2009 and later)."""
    solver = equilibrium.Solver(equilibrium.read_tree("leduc-poker"))
    solver.run(150)
    assert solver.value() == pytest.approx(-0.0856, abs=0.01)
    assert solver.exploitability() < 0.1


@pytest.mark.parametrize("bluff", [0.0, 0.2, 1 / 3])
def test_the_equilibrium_agents_strategy_is_exact(equilibrium: Any, bluff: float) -> None:
    chance = _script("harnesses/kuhn-equilibrium/play.py").chance
    game = equilibrium.read_tree("kuhn-poker")

    def strategy(known: str) -> dict[str, float]:
        view = json.loads(known.split(" ", 1)[1])
        bold = chance(view["card"], view["line"], bluff)
        names = ("call", "fold") if "bet" in view["line"] else ("bet", "check")
        return dict(zip(names, (bold, 1 - bold), strict=True))

    assert equilibrium.best_response(game, strategy, 0) == pytest.approx(-1 / 18, abs=1e-12)
    assert equilibrium.best_response(game, strategy, 1) == pytest.approx(1 / 18, abs=1e-12)


def test_the_equilibrium_agent_measures_within_its_interval_of_the_known_value(tmp_path: Path) -> None:
    agent = PROJECT.agents["kuhn-equilibrium"]
    task = PROJECT.tasks["kuhn-poker/match"]
    result = Job(tasks=[task], agents=[agent], attempts=16, directory=tmp_path).run()
    a_hand = np.array([trial.result["seats"][0]["score"] / 100 for trial in result.trials])
    assert len(a_hand) == 16 and [trial.status for trial in result.trials] == ["succeeded"] * 16
    # A hand of equilibrium play has a standard deviation of about 1.3 chips: 1,600 hands, four sigmas.
    assert abs(a_hand.mean() + 1 / 18) < 4 * 1.3 / 1600**0.5
