"""Environments of a project of one's own, as Gymnasium ids."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import plural_gym
from plural_gym.app import LiveApp
from plural_gym.apps.python import PythonApp
from plural_gym.environment import Environment
from plural_gym.errors import ProjectError, UsageError
from plural_gym.rl.registration import gym_id, repeatable

pytestmark = pytest.mark.usefixtures("registry")


def add_environment(workshop: Any, name: str, extra: str = "") -> None:
    workshop.write(f"environments/{name}/app.py", (workshop.root / "environments/counter/app.py").read_text())
    apps = '{counter: {kind: python, class: "app.py:Counter"}}'
    workshop.write(
        f"environments/{name}/environment.yaml", f"name: {name}\nversion: 0.1.0\napps: {apps}\n{extra}"
    )


def test_every_environment_gets_an_id_with_its_limit_and_json_kwargs(workshop: Any) -> None:
    add_environment(workshop, "depot", "limits: {turns: 7}\n")
    workshop.edit("environments/depot/environment.yaml", "0.1.0", "2.3.0")
    ids = plural_gym.register_project(workshop.root / "environments")
    assert ids == ["plural/counter-v0", "plural/depot-v2"]
    spec = gym.spec("plural/depot-v2")
    assert json.loads(json.dumps(spec.kwargs)) == {"project": str(workshop.root), "environment": "depot"}
    assert (spec.max_episode_steps, spec.nondeterministic) == (7, False)
    assert EnvSpec.from_json(spec.to_json()) == spec


def test_what_an_id_makes_plays_the_projects_tasks(workshop: Any) -> None:
    plural_gym.register_project(workshop.root)
    env = plural_gym.make("plural/counter-v0", task="b")
    observation, info = env.reset(seed=0)
    assert (observation["text"], info["rewards"]) == ("Count.", {"full": 0.0})
    assert env.step("add", by=5)[1:3] == (5.0, True)
    assert env.spec is not None
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.reset(seed=0)[0]["text"] == "Count."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("plural/counter-v0").unwrapped, skip_render_check=True)


def test_an_environment_without_tasks_plays_an_unnamed_one(workshop: Any) -> None:
    add_environment(workshop, "depot")
    plural_gym.register_project(workshop.root)
    assert gym.make("plural/depot-v0").reset(seed=0)[0]["text"] == ""
    assert gym.make_vec("plural/depot-v0", 2).reset(seed=0)[0]["text"] == ("", "")


def test_registering_again_warns_of_nothing_and_reads_anew(workshop: Any) -> None:
    add_environment(workshop, "depot")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plural_gym.register_project(workshop.root) == plural_gym.register_project(workshop.root)
        gym.make("plural/counter-v0").reset(seed=0)
        workshop.edit("environments/counter/environment.yaml", "turns: 10", "turns: 4")
        workshop.edit("environments/counter/app.py", "return self.state.n\n", 'return f"{self.state.n}!"\n')
        workshop.edit("environments/depot/environment.yaml", "0.1.0", "1.0.0")
        assert plural_gym.register_project(workshop.root) == ["plural/counter-v0", "plural/depot-v1"]
    assert gym.spec("plural/counter-v0").max_episode_steps == 4
    assert "plural/depot-v0" not in gym.registry
    env = plural_gym.make("plural/counter-v0")
    env.reset(seed=0)
    assert env.step("add", by=1)[0]["text"] == "1!"


def test_two_projects_cannot_share_a_name(workshop: Any, tmp_path: Path) -> None:
    other = tmp_path / "copy"
    shutil.copytree(workshop.root, other)
    plural_gym.register_project(workshop.root)
    with pytest.raises(UsageError) as refused:
        plural_gym.register_project(other)
    assert str(workshop.root) in str(refused.value) and str(other) in str(refused.value)
    assert "the id 'plural/counter-v0' is taken" in str(refused.value)
    assert gym.spec("plural/counter-v0").kwargs["project"] == str(workshop.root)


def test_an_id_that_is_somebodys_stays_theirs(workshop: Any) -> None:
    gym.register("plural/counter-v0", entry_point="mine:Env")
    with pytest.raises(UsageError, match="is taken: it is made by mine:Env"):
        plural_gym.register_project(workshop.root)


def test_a_party_is_registered_among_the_others_and_keeps_its_id(workshop: Any, tmp_path: Path) -> None:
    add_environment(workshop, "brawl", "party: {seats: [red, blue]}\n")
    try:
        assert plural_gym.register_project(workshop.root) == ["plural/brawl-v0", "plural/counter-v0"]
        assert plural_gym.make_aec("plural/brawl-v0").possible_agents == ["red", "blue"]
        assert "plural/brawl-v0" not in gym.registry
        other = tmp_path / "copy"
        shutil.copytree(workshop.root, other)
        shutil.rmtree(other / "environments/counter")
        shutil.rmtree(other / "tasks")
        with pytest.raises(UsageError, match="the id 'plural/brawl-v0' is taken"):
            plural_gym.register_project(other)
        workshop.edit("environments/brawl/environment.yaml", "party: {seats: [red, blue]}\n", "")
        plural_gym.register_project(workshop.root)
        assert "plural/brawl-v0" in gym.registry
        with pytest.raises(UsageError):
            plural_gym.make_aec("plural/brawl-v0")
    finally:
        shutil.rmtree(workshop.root / "environments/brawl")
        plural_gym.register_project(workshop.root)


def test_a_link_to_a_project_is_the_project(workshop: Any, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workshop.root)
    assert plural_gym.register_project(tmp_path / "link") == plural_gym.register_project(workshop.root)


def test_a_name_that_reads_as_a_version_is_refused_with_the_remedy(workshop: Any) -> None:
    add_environment(workshop, "depot-v2")
    with pytest.raises(ProjectError, match=r"end in '-v2', which reads as a version.*write 'depot'"):
        plural_gym.register_project(workshop.root)
    assert "plural/counter-v0" not in gym.registry


def test_every_problem_is_told_and_nothing_registered(workshop: Any) -> None:
    add_environment(workshop, "depot", "limits: {turns: none}\n")
    add_environment(workshop, "shed")
    workshop.edit("environments/shed/app.py", "class Counter(App)", "class Counted(App)")
    with pytest.raises(ProjectError) as wrong:
        plural_gym.register_project(workshop.root)
    told = str(wrong.value)
    assert "environments/depot/environment.yaml:4" in told and "app.py:Counter" in told
    assert "plural/counter-v0" not in gym.registry


def test_a_folder_without_a_project_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"no project\.yaml here or in a folder above"):
        plural_gym.register_project(tmp_path)


class Live(PythonApp):
    """A system that is not ours."""

    repeatable = False


def test_an_app_kind_may_say_that_seeds_repeat_nothing(
    workshop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LiveApp.repeatable
    environment = workshop.project.environments["counter"]
    assert repeatable(environment) and environment.gym().spec.nondeterministic is False
    monkeypatch.setattr("plural_gym.kinds.load", lambda group, name: Live)
    assert not repeatable(environment)
    plural_gym.register_project(workshop.root)
    assert gym.spec("plural/counter-v0").nondeterministic


@pytest.mark.parametrize(
    ("name", "version", "id"),
    [
        ("depot", "0.1.0", "plural/depot-v0"),
        ("My depot / two", "1.2.0", "plural/My-depot-two-v1"),
        ("naïve.2", "3", "plural/naïve.2-v3"),
    ],
)
def test_any_name_has_an_id(name: str, version: str, id: str) -> None:
    environment = Environment(name=name, version=version)
    assert gym_id(environment) == id
    assert environment.gym().spec.id == id


def test_an_environment_of_ones_own_is_made_again_by_its_spec(workshop: Any) -> None:
    project = workshop.project
    env = project.environments["counter"].gym(tasks=project.tasks, task="b", render_mode="ansi")
    again = gym.make(env.spec)
    assert again.render_mode == "ansi"
    assert again.reset(seed=1)[0]["text"] == env.reset(seed=1)[0]["text"]
    with pytest.raises(TypeError, match="not JSON serializable"):
        env.spec.to_json()
