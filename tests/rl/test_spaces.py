"""The spaces of tool calls: membership, sampling, seeding, JSON, copies, vector environments."""

import copy
import json
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Space, Tuple, flatten, flatten_space, unflatten
from gymnasium.spaces.utils import flatdim, is_space_dtype_shape_equiv
from gymnasium.vector.utils import (
    batch_differing_spaces,
    batch_space,
    concatenate,
    create_empty_array,
    create_shared_memory,
    iterate,
    read_from_shared_memory,
    write_to_shared_memory,
)

from plural_gym.errors import UsageError
from plural_gym.rl import wrappers
from plural_gym.rl.codec import observation_space
from plural_gym.rl.container_codecs import hashable
from plural_gym.rl.spaces import SAMPLED_CHARS, ActionSpace, BoundedSequence, Choice, Utf8Text
from plural_gym.rl.text_samplers import PickText, RegexText


def actions(seed: int | None = None) -> ActionSpace:
    guess = Dict({"word": Utf8Text(5, min_length=5), "sure": Choice((Discrete(1), Discrete(2)))})
    move = Dict({"at": Tuple((Discrete(3), Discrete(3))), "by": Box(-1.0, 1.0, (1,), np.float64)})
    return ActionSpace(("guess", "move", "hint"), (guess, move, Discrete(1)), seed=seed)


SPACES: list[Space[Any]] = [
    Utf8Text(8),
    Utf8Text(300, min_length=290),
    Utf8Text(9, pattern="^[a-c]+$", generate=RegexText("^[a-c]+$")),
    Choice((Dict({"a": Discrete(2)}), Tuple((Discrete(2), Utf8Text(3))), Box(-1, 1, (1,), np.float64))),
    actions(),
    BoundedSequence(Discrete(4), 1, 3),
    BoundedSequence(Dict({"a": Utf8Text(3)}), 0, 2),
    BoundedSequence(Discrete(4), 4, 4, distinct_by=hashable),
    BoundedSequence(BoundedSequence(Utf8Text(2), 0, 2), 0, 2),
    Dict({"list": BoundedSequence(Choice((Discrete(1), MultiBinary(2))), 0, 4), "text": Utf8Text(4)}),
]
each_space = pytest.mark.parametrize("space", SPACES, ids=lambda space: str(space)[:40])


def same(one: Any, other: Any) -> bool:
    return hashable(one) == hashable(other)


@each_space
def test_samples_belong_to_the_space_and_repeat_under_a_seed(space: Space[Any]) -> None:
    space.seed(7)
    first = [space.sample() for _ in range(50)]
    assert all(sample in space for sample in first)
    space.seed(7)
    assert same(tuple(first), tuple(space.sample() for _ in range(50)))
    space.seed(8)
    assert not same(tuple(first), tuple(space.sample() for _ in range(50)))


@each_space
def test_elements_survive_json(space: Space[Any]) -> None:
    space.seed(1)
    samples = [space.sample() for _ in range(30)]
    again = space.from_jsonable(json.loads(json.dumps(space.to_jsonable(samples))))
    assert same(tuple(samples), tuple(again))
    assert all(sample in space for sample in again)


@each_space
def test_copies_are_equal_and_go_on_alike_but_apart(space: Space[Any]) -> None:
    space.seed(3)
    for copied in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert copied == space
        twin = copy.deepcopy(copied)
        assert same(
            tuple(copied.sample() for _ in range(10)),
            tuple(twin.sample() for _ in range(10)),
        )


@each_space
def test_batches_iterate_back_to_their_elements(space: Space[Any]) -> None:
    space.seed(2)
    batch = batch_space(space, 3)
    assert len({str(item) for item in iterate(batch, batch.sample())}) >= 1
    items = [space.sample() for _ in range(3)]
    joined = concatenate(space, items, create_empty_array(space, 3))
    assert len(list(iterate(batch, joined))) == 3
    assert batch_differing_spaces([space, copy.deepcopy(space)]).sample() is not None


@each_space
def test_flattening_gives_back_ascii_elements(space: Space[Any]) -> None:
    space.seed(4)
    if isinstance(space, Choice) and not space.is_np_flattenable:
        return
    flat = flatten_space(space)
    for _ in range(5):
        element = space.sample()
        if space.is_np_flattenable:
            assert flatten(space, element) in flat
        assert str(unflatten(space, flatten(space, element))) == str(element)


def test_a_sequence_has_no_flat_length() -> None:
    with pytest.raises(ValueError, match="cannot be flattened"):
        flatdim(BoundedSequence(Discrete(2), 0, 2))
    assert create_empty_array(BoundedSequence(Discrete(2), 0, 2), 3) == ((), (), ())


@pytest.mark.parametrize("text", ["", "é", "日本語", "🦊🦊", "a\nb\x00", "A" * 8])
def test_text_holds_every_script(text: str) -> None:
    assert text in Utf8Text(8)
    assert Utf8Text(8).from_jsonable(json.loads(json.dumps(Utf8Text(8).to_jsonable([text])))) == [text]


@pytest.mark.parametrize("thing", ["too long for it", 3, None, b"bytes", "\ud800", np.array(["a"])])
def test_text_holds_nothing_else(thing: Any) -> None:
    assert thing not in Utf8Text(8)


def test_text_must_match_its_pattern_somewhere() -> None:
    space = Utf8Text(8, pattern="b+")
    assert "abc" in space
    assert "ac" not in space
    assert space != Utf8Text(8)
    assert "b+" in str(space)


def test_sampled_text_is_short_while_the_space_is_wide() -> None:
    space = Utf8Text(4096, min_length=2, seed=0)
    assert max(len(space.sample()) for _ in range(300)) <= 2 + SAMPLED_CHARS
    assert "x" * 4096 in space


def test_text_is_masked_as_gymnasium_does() -> None:
    space = Utf8Text(5, charset="abc", seed=0)
    assert space.sample(mask=(3, np.array([0, 1, 0], np.int8))) == "bbb"
    assert space.sample(probability=(2, np.array([0.0, 0.0, 1.0]))) == "cc"
    assert space.characters == "abc"


def test_characters_outside_the_charset_are_lost_by_flattening_without_an_error() -> None:
    space = Utf8Text(4)
    assert unflatten(space, flatten(space, "aéb")) == "ab"


def test_a_copy_of_text_shares_its_tables_but_not_its_generator() -> None:
    space = Utf8Text(4, seed=1)
    copied = copy.deepcopy(space)
    assert copied.character_list is space.character_list
    assert copied.np_random is not space.np_random
    assert copy.deepcopy(space).sample() == space.sample()


def test_an_action_space_is_equal_only_with_the_same_names() -> None:
    assert actions() == actions()
    renamed = ActionSpace(("guess", "move", "tip"), actions().spaces)
    assert renamed != actions()
    assert renamed.names == ("guess", "move", "tip")
    assert actions() != Choice(actions().spaces)
    assert "tip=Discrete(1)" in str(renamed)


@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.int64])
def test_a_mask_over_actions_leaves_the_rest(dtype: Any) -> None:
    space = actions(seed=0)
    mask = np.array([0, 1, 1], dtype)
    assert {int(space.sample(mask=mask)[0]) for _ in range(60)} == {1, 2}
    assert all(space.sample(mask=mask) in space for _ in range(20))


def test_an_empty_mask_samples_the_first_action_as_discrete_does() -> None:
    assert actions(seed=0).sample(mask=np.zeros(3, np.int8))[0] == 0


def test_a_probability_over_actions_is_followed() -> None:
    space = actions(seed=0)
    assert {int(space.sample(probability=np.array([0.0, 0.0, 1.0]))[0]) for _ in range(20)} == {2}


def test_gymnasiums_tuple_of_masks_still_works() -> None:
    space = ActionSpace(("a", "b"), (Discrete(3), Discrete(3)), seed=0)
    only = np.array([0, 0, 1], np.int8)
    assert {int(space.sample(mask=(only, only))[1]) for _ in range(20)} == {2}
    chance = np.array([0.0, 1.0, 0.0])
    assert {int(space.sample(probability=(chance, chance))[1]) for _ in range(20)} == {1}


def test_samples_of_nested_sequences_stay_small() -> None:
    space: Space[Any] = Discrete(2)
    for _ in range(12):
        space = Dict({"list": BoundedSequence(Tuple((space,)), 1, 256)})
    space.seed(0)
    assert max(str(space.sample()).count("np.int64") for _ in range(20)) <= 8 * 4 * 2


def test_a_sequence_passes_masks_to_its_elements() -> None:
    space = BoundedSequence(Discrete(3), 2, 4, seed=0)
    assert set(space.sample(mask=np.array([0, 1, 0], np.int8))) == {1}
    assert set(space.sample(probability=np.array([0.0, 0.0, 1.0]))) == {2}


def test_a_distinct_sequence_refuses_repeats() -> None:
    space = BoundedSequence(Discrete(3), 0, 3, distinct_by=hashable)
    assert (0, 1) in space
    assert (1, 1) not in space
    assert [0, 1] not in space
    assert str(space) == "BoundedSequence(Discrete(3), 0, 3)"


def test_a_sequence_is_seeded_by_an_int_or_by_two() -> None:
    space = BoundedSequence(Discrete(1000), 3, 3)
    own, inner = space.seed(5)
    first = space.sample()
    assert space.seed((own, inner)) == (own, inner)
    assert space.sample() == first
    space.seed(None)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Utf8Text(3, min_length=4), "Utf8Text needs 0 <= min_length <= max_length, not 4 and 3"),
        (lambda: Utf8Text(3, charset=""), "at least one character"),
        (
            lambda: Utf8Text(3, generate=PickText(("a",))).sample(mask=(None, None)),
            "cannot be sampled with a mask",
        ),
        (lambda: ActionSpace(("a",), (Discrete(1), Discrete(1))), "got 1 names, 2 spaces"),
        (lambda: ActionSpace(("a", "a"), (Discrete(1), Discrete(1))), "a, a do not"),
        (lambda: actions().sample(np.ones(3, np.int8), np.ones(3)), "not both"),
        (lambda: actions().sample(np.ones(2, np.int8)), r"one entry each for guess, move, hint; got int8"),
        (lambda: actions().sample(np.ones(3, np.float32)), "got float32 of shape"),
        (lambda: actions().sample(probability=np.ones(3)), "sums to 1; got shape"),
        (lambda: BoundedSequence(Discrete(1), 2, 1), "BoundedSequence needs 0 <= min_length"),
        (lambda: BoundedSequence(Discrete(1), 0, 1).seed((1, 2, 3)), "None, an int or two ints, not by 3"),
    ],
)
def test_wrong_use_says_what_would_work(wrong: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wrong()


@pytest.mark.parametrize(
    "space",
    [Utf8Text(3), actions(), Choice((Discrete(2),)), BoundedSequence(Discrete(2), 0, 1)],
    ids=lambda space: type(space).__name__,
)
def test_shared_memory_is_refused_aloud(space: Space[Any]) -> None:
    for refused in (
        lambda: create_shared_memory(space, 2),
        lambda: create_shared_memory(Dict({"inside": space}), 2),
        lambda: read_from_shared_memory(space, {}, 2),
        lambda: write_to_shared_memory(space, 0, space.sample(), {}),
    ):
        with pytest.raises(CustomSpaceError, match=r"does not fit in shared memory.*shared_memory=False"):
            refused()


def test_what_an_environment_declares_names_the_wrappers_that_help() -> None:
    refused = "The algorithm only supports (Discrete,) as action spaces but {} was provided"  # as SB3 has it
    said = refused.format(actions())
    assert said.endswith(
        "hint=Discrete(1)) [learners that need Discrete: plural_gym.rl.wrappers.DiscreteActions; or text: "
        "JsonAction] was provided"
    )
    observed = str(observation_space(40))
    assert "Utf8Text(0, 40) [learners that need arrays: plural_gym.rl.wrappers.HashedTextObs" in observed
    for name in ("DiscreteActions", "JsonAction", "HashedTextObservation", "BytesObservation"):
        assert hasattr(wrappers, name) and name in said + observed
    varying = ActionSpace(("a",), (Dict({"list": BoundedSequence(Discrete(2), 0, 2)}),))
    for flattened in (flatdim, flatten_space):
        with pytest.raises(ValueError, match=r"cannot be flattened.*DiscreteActions\(env, catalog\)"):
            flattened(varying)
        assert flattened(actions())
    with pytest.raises(CustomSpaceError, match=r"plural_gym\.rl\.wrappers\.BytesObservation"):
        create_shared_memory(observation_space(40), 2)


def test_a_hint_is_no_part_of_a_space() -> None:
    space = Utf8Text(4, hint="help")
    assert space == Utf8Text(4) and str(space) == "Utf8Text(0, 4) [help]"
    assert str(pickle.loads(pickle.dumps(copy.deepcopy(space)))) == str(space)
    assert str(Utf8Text(4)) == "Utf8Text(0, 4)"


class Echo(gym.Env[Any, Any]):
    """Says the last action back; ends after three turns."""

    metadata = {"render_modes": []}

    def __init__(self) -> None:
        self.action_space = actions()
        self.observation_space = Dict(
            {"text": Utf8Text(500), "turn": Box(0, 2**31 - 1, (1,), np.int32), "seen": actions()}
        )
        self.turn = 0

    def observe(self, action: Any) -> dict[str, Any]:
        text = f"é{action}"[:500]
        return {"text": text, "turn": np.array([self.turn], np.int32), "seen": copy.deepcopy(action)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return self.observe((np.int64(2), np.int64(0))), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        return self.observe(action), 1.0, self.turn == 3, False, {}


def test_an_environment_of_these_spaces_passes_gymnasiums_checker() -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(Echo(), skip_render_check=True)


def test_a_sync_vector_environment_plays_sampled_actions() -> None:
    envs = gym.vector.SyncVectorEnv([Echo, Echo])
    first, _ = envs.reset(seed=0)
    assert first["text"] == ("é(np.int64(2), np.int64(0))",) * 2
    envs.action_space.seed(0)
    batch = envs.action_space.sample()
    observation, *_ = envs.step(batch)
    assert observation["text"] == tuple(f"é{action}"[:500] for action in batch)
    assert observation["seen"] == batch or same(tuple(observation["seen"]), tuple(batch))
    envs.close()


def test_an_async_vector_environment_works_without_shared_memory_and_refuses_it() -> None:
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.vector.AsyncVectorEnv([Echo])
    envs = gym.vector.AsyncVectorEnv([Echo, Echo], shared_memory=False)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    texts = []
    for _ in range(2):
        batch = envs.action_space.sample()
        observation, *_ = envs.step(batch)
        assert observation["text"] == tuple(f"é{action}"[:500] for action in batch)
        texts.append(observation["text"])
    assert texts[0] != texts[1]
    envs.close()


def test_environments_with_different_texts_are_batched_in_different_mode() -> None:
    class Short(Echo):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = Dict(
                {"text": Utf8Text(600), "turn": Box(0, 2**31 - 1, (1,), np.int32), "seen": actions()}
            )

    assert is_space_dtype_shape_equiv(BoundedSequence(Utf8Text(2), 0, 1), BoundedSequence(Utf8Text(3), 0, 2))
    assert not is_space_dtype_shape_equiv(BoundedSequence(Utf8Text(2), 0, 1), Utf8Text(3))
    envs = gym.vector.SyncVectorEnv([Echo, Short], observation_mode="different")
    observation, _ = envs.reset(seed=0)
    assert len(observation["text"]) == 2
    envs.close()
