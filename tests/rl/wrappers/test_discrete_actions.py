"""DiscreteActions: numbers that stand for calls, and masks over them."""

import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from plural_gym import App, Environment, action
from plural_gym.errors import UsageError
from plural_gym.rl.wrappers import DiscreteActions

CATALOG: list[Any] = [
    {"action": "switch", "arguments": {"color": "red", "bright": True}},
    ("switch", {"color": "blue", "bright": False}),
    ["house.off", {}],
    "off",
]


def test_every_call_is_listed_where_arguments_are_finite(world: Callable[..., Any]) -> None:
    env = DiscreteActions(world())
    assert env.action_space == gym.spaces.Discrete(5)
    assert [env.call(index) for index in range(5)] == [
        *(
            {"action": "switch", "arguments": {"color": color, "bright": bright}}
            for bright in (False, True)
            for color in ("red", "blue")
        ),
        {"action": "off", "arguments": {}},
    ]


def test_finish_is_listed_without_an_answer(world: Callable[..., Any]) -> None:
    env = DiscreteActions(world("mute"))
    assert [env.call(index) for index in range(4)] == [
        *({"action": "knock", "arguments": {"times": times}} for times in (1, 2, 3)),
        {"action": "finish", "arguments": {}},
    ]
    env.reset(seed=0)
    assert env.step(0)[0]["text"] == "knock " and env.step(3)[2] is True


def test_a_catalogue_takes_every_form_of_a_call(world: Callable[..., Any]) -> None:
    env = DiscreteActions(world(), CATALOG[:3])
    assert [env.call(index)["action"] for index in range(3)] == ["switch", "switch", "off"]
    env.reset(seed=0)
    texts = [env.step(number)[0]["text"] for number in (np.int64(0), np.array(1), np.array([2]))]
    assert texts == ["the lamp is red and bright", "the lamp is blue", "it is dark — Ünïcödé ✓"]


def test_a_generator_is_a_catalogue_too(world: Callable[..., Any]) -> None:
    env = DiscreteActions(world(), (("switch", {"color": c, "bright": True}) for c in ("red", "blue")))
    assert env.action_space.n == 2
    assert env.spec.additional_wrappers[-1].kwargs["catalog"][1] == (
        "switch",
        {"color": "blue", "bright": True},
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            ("swich", {}),
            r"catalog\[1\], \('swich', \{\}\), fits no action: there is no action 'swich'; did you",
        ),
        ("switch", r"catalog\[1\], 'switch', fits no action: switch: color: is missing"),
        (("switch", {"color": "green", "bright": True}), r"fits no action: switch: color: expected one of"),
        (("off", {"now": 1}), r"fits no action: off: expected one of \{\}"),
        (("off", [1]), r"catalog\[1\], \('off', \[1\]\), is no call; an entry is"),
        ({"action": "off", "argumnets": {}}, "is no call"),
        (("off", {1: 2}), "is no call"),
        (3, r"catalog\[1\], 3, is no call"),
        (None, "is no call"),
        ("off", r"catalog\[1\], 'off', stands in the catalogue before"),
    ],
)
def test_an_entry_that_does_not_fit_is_named(world: Callable[..., Any], entry: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        DiscreteActions(world(), [("house.off", {}), entry])


def test_a_catalogue_holds_at_least_one_call(world: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="catalog is empty"):
        DiscreteActions(world(), [])


def test_arguments_without_end_are_named(world: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=r"no end of values: write has note \(Utf8Text.*Give catalog="):
        DiscreteActions(world("writing"))


def test_more_calls_than_the_limit_are_counted(world: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=r"more than 4 calls \(switch: 4, off: 1\).*or a higher limit="):
        DiscreteActions(world(), limit=4)
    assert DiscreteActions(world(), limit=5).action_space.n == 5

    class Wide(App):
        @action
        def choose(self, numbers: list[bool], level: int | None = None) -> str:
            """Choose."""
            return ""

        def terminated(self) -> bool:
            return False

    with pytest.raises(UsageError, match=r"more than 10,000 calls \(choose: 10\^12 or more\)"):
        DiscreteActions(Environment(name="wide", apps={"wide": Wide}).gym())


@pytest.mark.parametrize("number", [-1, 3, 10**9, 1.5, "0", None, np.array([0, 1])])
def test_a_number_outside_the_catalogue_is_refused(world: Callable[..., Any], number: Any) -> None:
    env = DiscreteActions(world(), CATALOG[:3])
    env.reset(seed=0)
    with pytest.raises(UsageError, match="the catalogue has calls 0 to 2, and no"):
        env.step(number)


def test_calls_are_copies(world: Callable[..., Any]) -> None:
    class Lists(App):
        @action
        def take(self, numbers: list[int]) -> str:
            """Take numbers."""
            numbers.append(0)
            return str(numbers)

    env = DiscreteActions(Environment(name="lists", apps={"app": Lists}).gym(), [("take", {"numbers": [1]})])
    env.reset(seed=0)
    assert [env.step(0)[0]["text"] for _ in range(2)] == ["[1, 0]", "[1, 0]"]
    env.call(0)["arguments"]["numbers"].append(5)
    assert env.call(0)["arguments"] == {"numbers": [1]}


def test_calls_are_found_by_what_they_are(world: Callable[..., Any]) -> None:
    env = DiscreteActions(world(), CATALOG[:3])
    assert env.index("off") == 2 and env.index({"action": "house.off"}) == 2
    assert env.index(("switch", {"bright": False, "color": "blue"})) == 1
    with pytest.raises(UsageError, match=r"is none of the 3 calls"):
        env.index(("switch", {"color": "blue", "bright": True}))
    with pytest.raises(UsageError, match="fits no action"):
        env.index("fly")


def test_masks_say_what_the_app_says_of_each_call(world: Callable[..., Any]) -> None:
    env = DiscreteActions(world(), CATALOG[:3])
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 1, 0] and info["action_mask"].dtype == np.int8
    *_, info = env.step(0)
    assert info["action_mask"].tolist() == [0, 1, 1]
    assert env.action_masks().tolist() == [False, True, True] and env.action_masks().dtype == np.bool_
    env.action_masks()[:] = False
    assert env.action_masks().any()
    env.close()
    env.reset(seed=0)
    assert env.action_masks().tolist() == [True, True, False], "a world that was closed is asked anew"


def test_masks_follow_a_checkpoint(world: Callable[..., Any]) -> None:
    env = DiscreteActions(world(), CATALOG[:3])
    env.reset(seed=0)
    here = env.unwrapped.checkpoint()
    env.step(0)
    env.unwrapped.restore(here)
    assert env.action_masks().tolist() == [True, True, False]


def test_everything_is_legal_where_no_app_says_it(world: Callable[..., Any]) -> None:
    env = DiscreteActions(world("mute"))
    _, info = env.reset(seed=0)
    assert "action_mask" not in info and env.action_masks().tolist() == [True] * 4


def test_masks_are_found_through_wrappers(world: Callable[..., Any]) -> None:
    env: Any = RecordEpisodeStatistics(TimeLimit(DiscreteActions(world(), CATALOG[:3]), 3))
    env.reset(seed=0)
    assert env.get_wrapper_attr("action_masks")().shape == (3,)
    again = pickle.loads(pickle.dumps(env))
    again.reset(seed=0)
    assert again.get_wrapper_attr("action_masks")().shape == (3,)


def test_a_masked_sample_is_never_rejected(world: Callable[..., Any]) -> None:
    env = DiscreteActions(world())
    env.action_space.seed(0)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            *_, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))
            assert info["error"] == ""
            over = terminated or truncated
