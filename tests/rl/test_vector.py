"""VectorGymEnv answers as SyncVectorEnv over GymEnvs does, and keeps one member's trouble to that member."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import plural_gym
from plural_gym import Environment, Task
from plural_gym.errors import AppFault, UsageError
from plural_gym.rl.vector import VectorGymEnv
from plural_gym.rl.vector_inputs import at_least_one

from .vector_worlds import EATEN, THRIFT, Careful, Kitchen, same, tasks, world

MODES = list(AutoresetMode)
EAT = {"action": "eat", "arguments": {"kind": "sweet", "much": 1}}
LOOK = {"action": "look", "arguments": {}}
BURN = {"action": "burn", "arguments": {}}


def pair(environment: Environment, number: int, mode: AutoresetMode, **options: Any) -> tuple[Any, Any]:
    """The native environment, and Gymnasium's over as many GymEnvs."""
    options = {"on_fault": "truncate", **options}
    sync = SyncVectorEnv([lambda: environment.gym(**options)] * number, autoreset_mode=mode)
    return VectorGymEnv(environment, number, autoreset_mode=mode, **options), sync


def calls(envs: VectorGymEnv, rnd: random.Random) -> list[Any]:
    """One action a member, of every form and kind."""
    found: list[Any] = []
    for element in envs.action_space.sample():
        call = envs.envs[0].decode(element)
        if rnd.random() < 0.7:
            kind = rnd.choice(["sweet", "sour"])
            call = {"action": "eat", "arguments": {"kind": kind, "much": rnd.choice([0, 1, 2, 3])}}
        alone = rnd.choice(
            ["draw", "look", "burn", "nothing", "eat", 1, 99, None, 3.5, "{", {"name": "draw"}]
        )
        found.append(rnd.choice([element, call, call, call, json.dumps(call), alone]))
    return found


def compare(ours: VectorGymEnv, sync: SyncVectorEnv, steps: int = 60) -> None:
    """Step both with the same actions; with DISABLED, reset what is over."""
    rnd = random.Random(3)
    ours.action_space.seed(4)
    same(ours.reset(seed=5), sync.reset(seed=5))
    over = np.zeros(ours.num_envs, np.bool_)
    for _ in range(steps):
        if ours.autoreset_mode is AutoresetMode.DISABLED and over.any():
            options = {"reset_mask": over.copy()}
            same(ours.reset(options=options), sync.reset(options=dict(options)))
            assert "reset_mask" in options, "what the caller gave stays as it was"
        actions = calls(ours, rnd)
        answer = ours.step(actions)
        same(answer, sync.step(actions))
        over = answer[2] | answer[3]
    ours.close()
    sync.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", [1, 7])
@pytest.mark.parametrize(
    "verifiers",
    [((EATEN,),), ((EATEN,), (THRIFT,)), ((EATEN, THRIFT), (THRIFT,), (EATEN,))],
    ids=["one", "one each", "some two"],
)
def test_it_answers_as_gymnasiums_own_does(mode: AutoresetMode, number: int, verifiers: Any) -> None:
    environment = world()
    compare(*pair(environment, number, mode, tasks=tasks(environment, *verifiers)))


@pytest.mark.parametrize("mode", MODES)
def test_masks_of_legal_actions_are_answered_alike(mode: AutoresetMode) -> None:
    environment = world(Careful)
    compare(*pair(environment, 5, mode, tasks=tasks(environment, (EATEN,), (EATEN, THRIFT))))


@pytest.mark.parametrize(
    "options",
    [
        {"reveal_state": True},
        {"score_as_reward": True},
        {"render_mode": "ansi"},
        {"verifiers": []},
        {"max_chars": 30},
    ],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("mode", MODES)
def test_options_are_answered_alike(mode: AutoresetMode, options: dict[str, Any]) -> None:
    environment = world()
    compare(*pair(environment, 3, mode, tasks=tasks(environment), **options))


@pytest.mark.parametrize("number", [1, 7, 64])
def test_the_shipped_worlds_are_answered_alike(number: int) -> None:
    for name in ("Wordle", "SupportDesk"):
        ours = gym.make_vec(f"plural_gym:plural/{name}-v0", num_envs=number)
        assert isinstance(ours, VectorGymEnv)
        sync = SyncVectorEnv([lambda name=name: gym.make(f"plural/{name}-v0").unwrapped] * number)
        compare(ours, sync, steps=30)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", [11, [3, 3, None, 99], None, np.int64(11)], ids=str)
def test_seeds_are_taken_as_gymnasium_takes_them(mode: AutoresetMode, seed: Any) -> None:
    environment = world()
    ours, sync = pair(environment, 4, mode, tasks=tasks(environment))
    ours.reset(seed=1)
    sync.reset(seed=1)
    theirs = int(seed) if isinstance(seed, np.int64) else seed
    same(ours.reset(seed=seed), sync.reset(seed=theirs))
    same(ours.step([EAT] * 4), sync.step([EAT] * 4))
    same(ours.reset(), sync.reset())
    assert ours.np_random_seed == sync.np_random_seed


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_after_an_end_is_the_reset_and_the_next_step_a_step(mode: AutoresetMode) -> None:
    environment = world()
    ours, sync = pair(environment, 3, mode, tasks=tasks(environment), task="meal-2")
    for envs in (ours, sync):
        envs.reset(seed=0)
        last = envs.step([{"action": "eat", "arguments": {"kind": "sweet", "much": 2}}] * 3)
        assert last[2].all()
        envs.reset(seed=1)
    answer = ours.step([EAT] * 3)
    same(answer, sync.step([EAT] * 3))
    assert answer[0]["turn"].ravel().tolist() == [1, 1, 1]


def test_options_go_to_every_member() -> None:
    environment = world()
    ours, sync = pair(environment, 2, AutoresetMode.NEXT_STEP, tasks=tasks(environment))

    def praise(step: Any) -> float:
        return 2.0

    options = {"task": "meal-5", "setup": {"kitchen": {"stock": 12}}, "verifiers": [praise]}
    same(ours.reset(seed=0, options=options), sync.reset(seed=0, options=options))
    assert ours.step([EAT, EAT])[1].tolist() == [2.0, 2.0]


def test_a_batch_may_be_a_list_a_tuple_or_an_array() -> None:
    environment = world()
    texts = set()
    for batch in ([1, 1], (1, 1), np.array([1, 1]), np.array([EAT, EAT], dtype=object)):
        envs = VectorGymEnv(environment, 2, tasks=tasks(environment))
        envs.reset(seed=0)
        texts.add(envs.step(batch)[4]["error"][0])
    assert texts == {""}


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ([EAT], "step takes 2 actions, one a member, got 1."),
        ([EAT] * 3, "step takes 2 actions, one a member, got 3."),
        (EAT, "step takes a sequence of 2 actions, one a member, not {'action': 'eat'"),
        (json.dumps(EAT), "step takes a sequence of 2 actions, one a member, not"),
        (iter([EAT, EAT]), "step takes a sequence of 2 actions, one a member, not"),
        (None, "step takes a sequence of 2 actions, one a member, not None."),
    ],
)
def test_a_wrong_batch_is_refused_before_anybody_is_stepped(batch: Any, said: str) -> None:
    envs = VectorGymEnv(world(), 2)
    envs.reset(seed=0)
    with pytest.raises(UsageError) as raised:
        envs.step(batch)
    assert said in str(raised.value)
    assert envs.step([EAT, EAT])[0]["turn"].ravel().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"seed": "x"}, "seed is a whole number, a list with one a member, or None, not 'x'."),
        ({"seed": True}, "seed is a whole number, a list with one a member, or None, not True."),
        ({"seed": [1]}, "seed lists one for each of 2 members, got 1."),
        ({"seed": [1, 2.5]}, "seed lists whole numbers or None, not 2.5."),
        ({"options": {"reset_mask": [True, False]}}, "is a bool array of shape (2,), not [True, False]."),
        (
            {"options": {"reset_mask": np.array([1, 0])}},
            "is a bool array of shape (2,), not int64 of shape (2,).",
        ),
        ({"options": {"reset_mask": np.zeros(2, np.bool_)}}, "has True for no member; name at least one."),
        ({"options": {"tusk": "x"}}, "reset has no option 'tusk'"),
    ],
)
def test_a_wrong_reset_is_refused(arguments: dict[str, Any], said: str) -> None:
    envs = VectorGymEnv(world(), 2)
    envs.reset(seed=0)
    with pytest.raises(UsageError) as raised:
        envs.reset(**arguments)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_envs": 0}, "num_envs is a whole number of at least 1, not 0."),
        ({"num_envs": True}, "num_envs is a whole number of at least 1, not True."),
        ({"workers": 0}, "workers is a whole number of at least 1, not 0."),
        ({"max_episode_steps": 0}, "max_episode_steps is a whole number of at least 1, not 0."),
        ({"infos": "reward"}, "infos='reward' is unknown; did you mean 'rewards'?"),
        ({"autoreset_mode": "NextSteps"}, "autoreset_mode='NextSteps' is unknown; did you mean 'NextStep'?"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        VectorGymEnv(world(), **options)
    assert said in str(raised.value)
    assert at_least_one("n", np.int64(3)) == 3


def test_disabled_refuses_a_step_after_an_end_and_steps_nobody() -> None:
    environment = world()
    envs = VectorGymEnv(environment, 3, autoreset_mode="Disabled", tasks=tasks(environment), task="meal-2")
    envs.reset(seed=0)
    full = {"action": "eat", "arguments": {"kind": "sweet", "much": 2}}
    envs.step([EAT, full, EAT])
    with pytest.raises(gym.error.ResetNeeded, match=r"members \[1\] are over; reset them by"):
        envs.step([EAT] * 3)
    observations, infos = envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert observations["turn"].ravel().tolist() == [1, 0, 1]
    assert infos["_rewards"].tolist() == [False, True, False]
    assert envs.step([EAT] * 3)[0]["turn"].ravel().tolist() == [2, 1, 2]


def test_a_step_before_the_first_reset_says_so() -> None:
    envs = VectorGymEnv(world(), 2)
    with pytest.raises(gym.error.ResetNeeded, match="call reset\\(\\) before step"):
        envs.step([EAT, EAT])
    with pytest.raises(gym.error.ResetNeeded, match="call reset\\(\\) without a mask"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset(options={"reset_mask": np.array([True, True])})
    envs.step([EAT, EAT])


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_costs_its_own_member_alone(mode: AutoresetMode) -> None:
    environment = world()
    envs = VectorGymEnv(environment, 3, autoreset_mode=mode, tasks=tasks(environment), task="meal-5")
    envs.reset(seed=0)
    observations, rewards, terminated, truncated, infos = envs.step([EAT, BURN, EAT])
    assert (terminated.tolist(), truncated.tolist()) == ([False] * 3, [False, True, False])
    assert rewards.tolist() == [0.25, 0.0, 0.25]
    told = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert "KeyError" in told["error"][1]
    assert envs.envs[0].session.stop_reason is None
    if mode is AutoresetMode.DISABLED:
        assert envs.envs[1].session.stop_reason == "error"
        envs.reset(options={"reset_mask": truncated})
    for _ in range(2):
        observations, *_ = envs.step([EAT] * 3)
    assert observations["text"] == ("2 left", observations["text"][1], "2 left")
    assert observations["turn"][1, 0] == {"NextStep": 1, "SameStep": 2, "Disabled": 2}[mode.value]


def test_a_fault_is_raised_where_that_is_asked_for() -> None:
    envs = VectorGymEnv(world(), 2, on_fault="raise")
    envs.reset(seed=0)
    with pytest.raises(AppFault, match="KeyError"):
        envs.step([EAT, BURN])
    with pytest.raises(AppFault, match="the oven is broken"):
        envs.reset(options={"setup": {"kitchen": {"broken": True}}})


def broken_tasks(environment: Environment) -> list[Task]:
    """One Task of two can begin."""
    whole, broken = tasks(environment)[:2]
    setup = {"kitchen": {"stock": 2, "broken": True}}
    return [whole, Task(**{**dict(broken), "setup": setup})]


@pytest.mark.parametrize("mode", MODES)
def test_an_episode_that_cannot_begin_is_one_of_no_steps(mode: AutoresetMode) -> None:
    environment = world()
    envs = VectorGymEnv(environment, 8, autoreset_mode=mode, tasks=broken_tasks(environment))
    observations, infos = envs.reset(seed=0)
    broken = np.array(["broken" in error for error in infos["error"]])
    assert 0 < broken.sum() < 8
    assert set(np.array(observations["text"])[broken]) == {'{"error":"the episode could not begin"}'}
    observations, rewards, terminated, truncated, infos = envs.step([EAT] * 8)
    assert (truncated == broken).all()
    assert not terminated[broken].any()
    assert (rewards[broken] == 0.0).all()
    told = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert all("the oven is broken" in error for error in told["error"][broken])
    for _ in range(20):  # the others go on, and the broken draw Tasks until one begins
        if mode is AutoresetMode.DISABLED and (terminated | truncated).any():
            envs.reset(options={"reset_mask": terminated | truncated})
        _, _, terminated, truncated, _ = envs.step([EAT] * 8)


@pytest.mark.parametrize("infos", ["rewards", "none"])
@pytest.mark.parametrize("mode", MODES)
def test_fewer_infos_are_a_part_of_all_infos(mode: AutoresetMode, infos: Any) -> None:
    environment = world(Careful)
    options = {"tasks": tasks(environment, (EATEN,), (THRIFT, EATEN)), "autoreset_mode": mode}
    full, less = VectorGymEnv(environment, 4, **options), VectorGymEnv(environment, 4, infos=infos, **options)
    kept = {"rewards", "_rewards", "reward_status", "_reward_status"} if infos == "rewards" else set()
    final = {"final_obs", "_final_obs"} | ({"final_info", "_final_info"} if kept else set())
    same(*(envs.reset(seed=1)[0] for envs in (full, less)))
    rnd = random.Random(0)
    for _ in range(30):
        actions = [rnd.choice([EAT, LOOK, BURN, "draw", "nothing"]) for _ in range(4)]
        theirs, ours = full.step(actions), less.step(actions)
        same(ours[:4], theirs[:4])
        told = {key: value for key, value in theirs[4].items() if key in kept | final}
        if "final_info" in told:
            told["final_info"] = {key: told["final_info"][key] for key in kept}
        same(ours[4], told)
        over = ours[2] | ours[3]
        if mode is AutoresetMode.DISABLED and over.any():
            for envs in (full, less):
                envs.reset(options={"reset_mask": over.copy()})


def test_what_it_returns_is_the_callers() -> None:
    envs = VectorGymEnv(world(Careful), 2, verifiers=[EATEN])
    first = envs.reset(seed=0)
    answers = [envs.step([EAT, EAT]) for _ in range(2)]
    arrays = [
        array
        for observations, *rest in [first, *answers]
        for array in (observations["turn"], *rest[:-1], *flat(rest[-1]))
    ]
    for index, array in enumerate(arrays):
        for other in arrays[index + 1 :]:
            assert not np.shares_memory(array, other)


def flat(infos: dict[str, Any]) -> list[Any]:
    """Every array in an info."""
    return [
        array
        for value in infos.values()
        for array in (flat(value) if isinstance(value, dict) else [value])
        if array.dtype != object
    ]


def test_the_members_draw_tasks_by_their_own_seeds() -> None:
    environment = world()
    envs = VectorGymEnv(environment, 32, tasks=tasks(environment))
    observations, _ = envs.reset(seed=[7] * 16 + list(range(16)))
    assert len(set(observations["text"][:16])) == 1
    assert len(set(observations["text"][16:])) > 5
    again, _ = envs.reset(seed=[7] * 16 + list(range(16)))
    assert again["text"] == observations["text"]


def test_the_spaces_are_gymnasiums_batches() -> None:
    environment = world()
    ours, sync = pair(environment, 3, AutoresetMode.NEXT_STEP)
    assert ours.single_action_space == sync.single_action_space
    assert ours.action_space == sync.action_space
    assert ours.observation_space == sync.observation_space
    assert ours.metadata == sync.metadata
    observations, _ = ours.reset(seed=0)
    assert observations in ours.observation_space
    for envs in (ours, sync):
        envs.action_space.seed(3)
    assert ours.action_space.sample() == sync.action_space.sample()


def test_members_are_reached_as_in_gymnasiums_own() -> None:
    environment = world()
    ours, sync = pair(environment, 2, AutoresetMode.NEXT_STEP, render_mode="ansi")
    for envs in (ours, sync):
        envs.reset(seed=0)
    assert ours.render() == sync.render()
    assert ours.render_mode == "ansi"
    assert ours.call("encode", "draw") == sync.call("encode", "draw")
    assert ours.get_attr("render_mode") == ("ansi", "ansi")
    ours.set_attr("mark", 1)
    assert ours.get_attr("mark") == (1, 1)
    ours.set_attr("mark", [1, 2])
    assert ours.get_attr("mark") == (1, 2)
    with pytest.raises(UsageError, match="set_attr takes one value or 2 of them, got 3"):
        ours.set_attr("mark", [1, 2, 3])
    assert ours.unwrapped is ours


def test_it_closes_twice_and_is_closed_then() -> None:
    envs = VectorGymEnv(world(), 2)
    envs.reset(seed=0)
    envs.close()
    envs.close()
    for refused in (lambda: envs.step([EAT, EAT]), envs.reset):
        with pytest.raises(gym.error.ClosedEnvironmentError):
            refused()


def test_what_could_not_be_made_is_collected_silently() -> None:
    with pytest.raises(UsageError):
        VectorGymEnv(world(), 2, infos="all")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        VectorGymEnv(world(), 2, nonsense=1)


@pytest.mark.parametrize(
    "wrap",
    [
        gym.wrappers.vector.RecordEpisodeStatistics,
        gym.wrappers.vector.NormalizeReward,
        gym.wrappers.vector.DictInfoToList,
        lambda envs: gym.wrappers.vector.ClipReward(envs, -0.1, 0.1),
        lambda envs: gym.wrappers.vector.TransformReward(envs, lambda rewards: rewards * 2),
    ],
)
@pytest.mark.parametrize("mode", MODES[:2])
def test_gymnasiums_vector_wrappers_see_no_difference(wrap: Callable[..., Any], mode: AutoresetMode) -> None:
    environment = world()
    ours, sync = pair(environment, 3, mode, tasks=tasks(environment))
    wrapped = [wrap(envs) for envs in (ours, sync)]
    rnd = random.Random(1)
    first, second = [envs.reset(seed=2) for envs in wrapped]
    same(first[0], second[0])
    for _ in range(25):
        actions = calls(ours, rnd)
        answers = [list(envs.step(actions)) for envs in wrapped]
        for answer in answers:
            if "episode" in answer[4]:
                answer[4]["episode"].pop("t")  # times differ
        same(tuple(answers[0]), tuple(answers[1]))


def test_a_video_is_recorded_of_the_members(tmp_path: Any, needs: Callable[..., None]) -> None:
    needs("moviepy")
    import warnings

    environment = world()
    envs = VectorGymEnv(environment, 2, tasks=tasks(environment), render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moviepy's own
        recorded = gym.wrappers.vector.RecordVideo(envs, str(tmp_path), episode_trigger=lambda number: True)
        recorded.reset(seed=0)
        for _ in range(9):
            recorded.step([EAT, LOOK])
        recorded.close()
    assert list(tmp_path.glob("*.mp4"))


def test_make_vec_makes_it_and_its_spec_makes_it_again() -> None:
    envs = gym.make_vec("plural_gym:plural/Wordle-v0", num_envs=2, split="train", infos="rewards")
    assert isinstance(envs.unwrapped, VectorGymEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert repr(envs).startswith("VectorGymEnv(plural/Wordle-v0, num_envs=2)")
    again = gym.make_vec(gym.envs.registration.EnvSpec.from_json(envs.spec.to_json()))
    assert again.num_envs == 2
    same(envs.reset(seed=4), again.reset(seed=4))
    modes: Sequence[Any] = [gym.make_vec(envs.spec.id, 1, autoreset_mode=mode).metadata for mode in MODES]
    assert [metadata["autoreset_mode"] for metadata in modes] == MODES


def test_a_shorter_limit_ends_episodes_sooner() -> None:
    envs = gym.make_vec("plural_gym:plural/Wordle-v0", num_envs=2, max_episode_steps=2)
    envs.reset(seed=0)
    guess = {"action": "guess", "arguments": {"word": "fuzzy"}}
    assert not envs.step([guess] * 2)[3].any()
    _, _, terminated, truncated, _ = envs.step([guess] * 2)
    assert truncated.all()
    assert not terminated.any()
    longer = gym.make_vec("plural_gym:plural/Wordle-v0", num_envs=1, max_episode_steps=99)
    longer.reset(seed=0)
    ends = [longer.step([guess])[2:4] for _ in range(6)]
    assert ends[-1][0].all(), "the world's own end comes first"


def test_hundreds_of_members_share_what_their_tasks_hold() -> None:
    environment = world()
    envs = VectorGymEnv(environment, 256, tasks=tasks(environment))
    envs.reset(seed=0)
    plans = {id(env.plans) for env in envs.envs}
    assert len(plans) == 1
    assert len(envs.envs[0].plans.drawn) == 12
    answers = envs.step([EAT] * 256)
    assert answers[1].shape == (256,)
    assert isinstance(plural_gym.App, type) and issubclass(Kitchen, plural_gym.App)
