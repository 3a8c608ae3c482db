"""Parties by their ids, through this package and through PettingZoo's own registry."""

from pathlib import Path

import pettingzoo
import pytest

import plural_gym
from plural_gym.errors import UnknownName, UsageError
from plural_gym.rl.parallel import PartyParallelEnv
from plural_gym.rl.party import PartyEnv
from plural_gym.rl.party_ids import SHIPPED, register_shipped


@pytest.mark.parametrize("id", SHIPPED)
def test_every_shipped_party_is_made_by_its_id(id: str) -> None:
    env = plural_gym.make_aec(id)
    env.reset(seed=0)
    assert isinstance(env, PartyEnv) and len(env.possible_agents) >= 2
    assert env.observe(env.agent_selection)["text"]
    assert isinstance(plural_gym.make_parallel(f"plural_gym:{id}"), PartyParallelEnv)


def test_pettingzoo_knows_the_same_ids() -> None:
    register_shipped()
    register_shipped()
    env = pettingzoo.make("aec", "plural/KuhnPoker-v0", task="match")
    assert isinstance(env.unwrapped, PartyEnv)
    assert isinstance(pettingzoo.make("parallel", "plural/Lanterns-v0").unwrapped, PartyParallelEnv)


def test_a_projects_parties_are_registered_with_it(tmp_path: Path) -> None:
    (tmp_path / "project.yaml").write_text("name: duels\nversion: 0.1.0\n")
    folder = tmp_path / "environments" / "duel"
    folder.mkdir(parents=True)
    (folder / "environment.yaml").write_text(
        "name: duel\nversion: 1.2.0\napps: {ring: {kind: python, class: 'app.py:Ring'}}\n"
        "party: {seats: [red, blue]}\n"
    )
    (folder / "app.py").write_text(
        "from plural import App, action\n\n\nclass Ring(App):\n    @action\n    def bow(self) -> str:\n"
        "        return 'bowed'\n\n    def turn(self):\n        return 'red'\n"
    )
    assert plural_gym.register_project(tmp_path) == ["plural/duel-v1"]
    env = plural_gym.make_aec("plural/duel-v1")
    env.reset(seed=0)
    env.step("bow")
    assert "bowed" in env.observe("red")["text"]
    assert pettingzoo.make("aec", "plural/duel-v1").unwrapped.possible_agents == ["red", "blue"]


def test_what_is_no_party_is_told_with_what_is_near() -> None:
    with pytest.raises(UnknownName, match="did you mean 'plural/KuhnPoker-v0'"):
        plural_gym.make_aec("plural/KuhnPokr-v0")
    with pytest.raises(UnknownName, match="rung"):
        plural_gym.make_aec("plural/KuhnPoker-v0", task="rung")
    with pytest.raises(UsageError, match="is a party of several seats"):
        plural_gym.make_aec("plural/KuhnPoker-v0").environment.gym()
