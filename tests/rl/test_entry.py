"""What a registered id makes, asked for directly."""

from typing import Any

import pytest

from plural_gym.errors import UsageError
from plural_gym.rl.entry import make_env, make_vector


def test_an_environment_and_a_vector_of_a_project(workshop: Any) -> None:
    env = make_env("counter", project=str(workshop.root), task="c")
    env.reset(seed=0)
    assert env.step("add", by=7)[2]
    envs = make_vector("counter", 3, project=str(workshop.root), infos="none")
    assert envs.reset(seed=0)[0]["text"] == ("Count.",) * 3


def test_own_verifiers_take_the_place_of_the_tasks(workshop: Any) -> None:
    env = make_env("counter", project=str(workshop.root), verifiers=[])
    assert env.reset(seed=0)[1]["rewards"] == {}


@pytest.mark.parametrize("option", ["tasks", "num_envs", "autoreset_mod"])
def test_an_option_that_is_none_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match=f"unexpected keyword argument '{option}'"):
        make_env("wordle", **{option: 1})
    if option != "num_envs":
        with pytest.raises(UsageError, match=f"unexpected keyword argument '{option}'"):
            make_vector("wordle", **{option: 1})


def test_render_modes_are_told_before_anything_is_made() -> None:
    assert "ansi" in make_env.metadata["render_modes"]  # type: ignore[attr-defined]
