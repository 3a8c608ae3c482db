"""`plural_gym.make`, `make_vec` and `seed_all`, with shipped ids and with those of a project."""

import copy
import functools
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import RecordEpisodeStatistics, TimeAwareObservation

import plural_gym
from plural_gym import shipped
from plural_gym.errors import UnknownName, UsageError
from plural_gym.rl.vector import VectorGymEnv
from plural_gym.rl.wrappers import CallStyle

WORDLE = "plural/Wordle-v0"
SLATE = {"action": "guess", "arguments": {"word": "slate"}}


@pytest.mark.parametrize("make", [plural_gym.make, plural_gym.make_vec])
def test_a_wrapper_that_is_none_is_refused_before_anything_is_made(make: Any) -> None:
    with pytest.raises(UsageError, match=r"^wrappers\[1\] is 5; give a wrapper's class, or a function"):
        make(WORDLE, wrappers=[RecordEpisodeStatistics, 5])


def test_a_number_too_long_to_be_written_is_a_rejected_action() -> None:
    env = plural_gym.make(WORDLE, task="crane")
    env.reset(seed=0)
    info = env.step(-(10**6000))[4]
    assert info["error"].startswith("there is no action number <int>; they are 0 to 0")


def test_what_make_gives_takes_both_call_styles_through_the_whole_stack() -> None:
    env = plural_gym.make(WORDLE, task="crane", max_episode_steps=2, wrappers=[RecordEpisodeStatistics])
    assert str(env).startswith("<CallStyle<RecordEpisodeStatistics<TimeLimit<OrderEnforcing<")
    env.reset(seed=0, verifiers=[lambda step: 1.0])
    assert env.step("guess", word="slate")[0]["text"] == "s=- l=- a=g t=- e=g"
    observation, _, terminated, truncated, info = env.step(SLATE)
    assert (terminated, truncated) == (False, True)
    assert (info["episode"]["r"], info["episode"]["l"]) == (2.0, 2)
    assert observation in env.observation_space


def test_a_spec_makes_it_again_and_once() -> None:
    env = plural_gym.make(WORDLE, task="crane", wrappers=[RecordEpisodeStatistics])
    assert env.spec is not None
    spec = EnvSpec.from_json(env.spec.to_json())
    for again in (plural_gym.make(spec), gym.make(spec)):
        assert str(again) == str(env) and again.spec == env.spec


def test_copies_know_the_id_they_were_made_by() -> None:
    env = plural_gym.make(WORDLE, split="train")
    for again in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        assert again.spec == env.spec and again.unwrapped.spec == env.unwrapped.spec
        assert plural_gym.seed_all(again, 3)[0]["text"] == plural_gym.seed_all(env, 3)[0]["text"]


@pytest.mark.parametrize(
    ("id", "says"),
    [
        ("Wordle", "no environment 'Wordle'; did you mean 'plural/Wordle-v0'?"),
        ("plural/Wrdle-v0", "did you mean 'plural/Wordle-v0'?"),
        ("plural/wordle", "did you mean 'plural/Wordle-v0'?"),
        ("plural_gym:plural/support-desk-v0", "did you mean 'plural/SupportDesk-v0'?"),
        ("plural_gym:plural/KuhnPoker-v0", "is a party; make it with plural_gym.make_aec"),
        ("mine/Depot-v0", r"it has: .*plural/Wordle-v0.*plural_gym\.register_project\(path\) registers"),
    ],
)
@pytest.mark.parametrize("make", [plural_gym.make, plural_gym.make_vec], ids=["make", "make_vec"])
def test_an_unknown_id_is_answered_with_the_nearest(make: Any, id: str, says: str) -> None:
    with pytest.raises(UnknownName, match=says.replace("?", r"\?")):
        make(id)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"splt": "train"}, "unexpected keyword argument 'splt': did you mean 'split'?"),
        ({"split": "trian"}, "no Task is in the split 'trian'; did you mean 'train'?"),
        ({"task": "crne"}, "there is no Task 'crne'; did you mean 'crane'?"),
        ({"verifiers": ["progres"]}, "there is no Verifier 'progres'; did you mean 'progress'?"),
        (
            {"verifiers": "progress"},
            r"a list of names, such as \['progress'\], not the text 'progress'",
        ),
        ({"environment": "wrdle"}, "has no Environment 'wrdle'; did you mean 'wordle'?"),
    ],
)
@pytest.mark.parametrize("make", [gym.make, plural_gym.make, gym.make_vec, plural_gym.make_vec])
def test_an_unknown_name_is_answered_with_the_nearest(make: Any, options: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("?", r"\?")):
        make(WORDLE, **options)


def test_verifiers_are_names_of_the_project_or_functions() -> None:
    def paid(step: Any) -> float:
        return 0.5

    env = plural_gym.make(WORDLE, verifiers=["progress", paid])
    assert list(env.reset(seed=0)[1]["rewards"]) == ["progress", "paid"]


def test_errors_of_gymnasium_itself_stay_its_own() -> None:
    with pytest.raises(gym.error.VersionNotFound, match="v0"):
        plural_gym.make("plural/Wordle-v7")
    with pytest.raises(ValueError, match="Invalid vectorization mode: 'asinc'"):
        plural_gym.make_vec(WORDLE, 2, "asinc")


def test_a_wrapper_that_reads_the_limit_finds_it() -> None:
    env = plural_gym.make(WORDLE, wrappers=[functools.partial(TimeAwareObservation, flatten=False)])
    observation, _ = env.reset(seed=0)
    assert observation["time"] == 0
    assert env.spec is not None and env.spec.max_episode_steps == 12


def test_a_vector_is_native_unless_something_asks_for_gymnasiums() -> None:
    native = plural_gym.make_vec(WORDLE, 2, split="train")
    assert isinstance(native, VectorGymEnv)
    for asked in (
        {"vectorization_mode": "sync"},
        {"wrappers": [RecordEpisodeStatistics]},
        {"vector_kwargs": {"copy": False}},
    ):
        envs = plural_gym.make_vec(WORDLE, 2, split="train", **asked)
        assert isinstance(envs, gym.vector.SyncVectorEnv)
        assert plural_gym.seed_all(envs, 1)[0]["text"] == plural_gym.seed_all(native, 1)[0]["text"]
        envs.close()
    spec = plural_gym.make(WORDLE).spec
    assert spec is not None
    assert isinstance(plural_gym.make_vec(spec, 2).envs[0], CallStyle)
    native.close()


def test_a_native_vector_is_what_gymnasium_makes_of_the_id_too() -> None:
    envs = gym.make_vec("plural_gym:plural/SupportDesk-v0", num_envs=2)
    assert isinstance(envs, VectorGymEnv)
    assert envs.spec is not None
    assert EnvSpec.from_json(envs.spec.to_json()).kwargs["environment"] == "support-desk"
    envs.close()


def texts_of(envs: Any) -> list[Any]:
    """Two steps of a vector environment, seeded."""
    try:
        first, _ = plural_gym.seed_all(envs, 5)
        second, rewards, *_ = envs.step([SLATE] * envs.num_envs)
        return [first["text"], second["text"], rewards.tolist()]
    finally:
        envs.close()


@pytest.fixture
def project_id(registry: None) -> str:
    """Wordle again, as the id of a project."""
    plural_gym.register_project(shipped.root())
    return "plural/wordle-v0"


def test_fresh_processes_play_what_this_one_does(project_id: str) -> None:
    options = {"split": "train", "wrappers": [RecordEpisodeStatistics]}
    spawned = plural_gym.make_vec(project_id, 2, "async", {"context": "spawn"}, **options)
    assert texts_of(spawned) == texts_of(plural_gym.make_vec(WORDLE, 2, split="train"))


def test_a_fresh_process_knows_shipped_ids_and_is_given_the_spec_of_others(project_id: str) -> None:
    makers = [
        functools.partial(gym.make, f"plural_gym:{WORDLE}"),
        functools.partial(plural_gym.make, WORDLE),
        functools.partial(plural_gym.make, gym.spec(project_id)),
    ]
    envs = gym.vector.AsyncVectorEnv(makers, shared_memory=False, context="spawn")
    assert texts_of(envs) == texts_of(plural_gym.make_vec(WORDLE, 3))


def test_shared_memory_is_refused_where_it_is_asked_for() -> None:
    with pytest.raises(ValueError, match="shared_memory=False"):
        plural_gym.make_vec(WORDLE, 2, "async", {"shared_memory": True})


def played(env: Any, seed: Any) -> list[Any]:
    observation, _ = plural_gym.seed_all(env, seed)
    seen = [observation["text"]]
    for _ in range(5):
        action = env.action_space.sample()
        seen += [repr(action), repr(env.observation_space.sample())]
        if env.step(action)[2] is True:
            break
    return seen


@pytest.mark.parametrize(
    "make",
    [
        lambda: plural_gym.make("plural/SupportDesk-v0"),
        lambda: plural_gym.make_vec("plural/SupportDesk-v0", 3),
        lambda: plural_gym.make_vec("plural/SupportDesk-v0", 3, "sync"),
    ],
    ids=["one", "native", "sync"],
)
def test_a_seed_for_all_repeats_random_play(make: Any) -> None:
    one, other = make(), make()
    assert played(one, 7) == played(other, np.int64(7)) == played(one, 7)
    assert played(one, 8) != played(other, 7)
    one.close()
    other.close()


@pytest.mark.parametrize("seed", [1.5, "1", None])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(TypeError):
        plural_gym.seed_all(plural_gym.make(WORDLE), seed)
