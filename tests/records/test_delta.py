import copy
import json
import random
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plural_gym.errors import RecordError
from plural_gym.records.delta import apply, copied, delta, patch
from plural_gym.records.strict_json import decode, encode

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([0.0, -0.0, 1.0, 1e300, 5e-324]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.text("ab", min_size=60, max_size=90),
)
keys = st.sampled_from("abcdef") | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=40,
)


@st.composite
def edited(draw: st.DrawFn) -> tuple[Any, Any]:
    """A value and the same with some things changed, which is what the States of a Trial look like."""
    before = draw(values)
    after = copy.deepcopy(before)
    for _ in range(draw(st.integers(0, 4))):
        after = _edit(draw, after)
    return before, after


def _edit(draw: st.DrawFn, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 5)) == 0:
        return draw(values)
    where = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    doing = draw(st.sampled_from(["into", "drop", "add", "move"]))
    if doing == "into":
        value[where] = _edit(draw, value[where])
    elif isinstance(value, dict):
        item = value.pop(where)
        if doing == "add":
            value = {draw(keys): draw(scalars), **value, where: item}
        elif doing == "move":
            value[where] = item
    else:
        item = value.pop(where)
        if doing != "drop":
            value.insert(draw(st.integers(0, len(value))), item)
        if doing == "add":
            value.insert(where, draw(values))
    return value


def same(left: Any, right: Any) -> bool:
    return json.dumps(left) == json.dumps(right)


def check(before: Any, after: Any) -> None:
    texts = json.dumps(before), json.dumps(after)
    change = delta(before, after)
    assert (change is None) == (texts[0] == texts[1])
    assert same(apply(before, change), after)
    assert same(apply(before, json.loads(json.dumps(change))), after)
    assert same(apply(before, decode(encode(change))), after)
    assert change is None or len(encode(change)) <= len(encode({"value": after})) + 32
    assert (json.dumps(before), json.dumps(after)) == texts


@settings(max_examples=400, deadline=None)
@given(edited())
def test_a_delta_leads_from_the_value_before_to_the_value_after_byte_for_byte(pair: tuple[Any, Any]) -> None:
    check(*pair)
    check(*reversed(pair))


@settings(max_examples=200, deadline=None)
@given(values, values)
def test_two_values_that_have_nothing_to_do_with_each_other_have_a_delta_too(left: Any, right: Any) -> None:
    check(left, right)


@settings(max_examples=200, deadline=None)
@given(st.permutations(list("abcdefgh")), st.permutations(list("abcdefghij")), st.integers(0, 8))
def test_the_order_of_keys_is_restored_exactly(old: list[str], new: list[str], kept: int) -> None:
    check({key: 1 for key in old}, {key: 1 for key in new[kept:]})


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30))
def test_lists_that_repeat_themselves_are_restored_exactly(left: list[int], right: list[int]) -> None:
    check(left, right)
    check([{"n": n} for n in left], [{"n": n, "x": "y" * 30} for n in right])


def test_one_true_and_one_point_nought_are_three_values() -> None:
    trio: list[Any] = [1, True, 1.0]
    for before in trio:
        for after in trio:
            assert (delta(before, after) is None) == (type(before) is type(after))
            check({"deep": [before, {"x": before}]}, {"deep": [after, {"x": after}]})
    check([0.0], [-0.0])


@pytest.mark.parametrize("kind", ["set", "append", "remove", "insert", "nested", "key", "text"])
def test_a_small_change_of_a_large_state_writes_a_few_bytes(kind: str) -> None:
    rows = [{"id": n, "name": f"name {n}", "tags": ["a", "b"], "price": n / 7} for n in range(12_000)]
    before: dict[str, Any] = {"rows": rows, "log": "line\n" * 20_000, "turn": 3}
    after = copied(before)
    assert len(encode(before)) > 900_000
    if kind == "set":
        after["turn"] = 4
    elif kind == "append":
        after["rows"].append({"id": -1})
    elif kind == "remove":
        del after["rows"][6_000]
    elif kind == "insert":
        after["rows"][10] = {"id": -1}
        after["rows"].insert(9_000, {"id": -2})
    elif kind == "nested":
        after["rows"][7_777]["tags"].insert(1, "c")
        after["rows"][5]["price"] = 0.5
    elif kind == "key":
        after = {"first": 1, **after}
    else:
        after["log"] = after["log"][:50_000] + "here" + after["log"][50_010:]
    change = delta(before, after)
    assert len(encode(change)) < 100
    assert same(apply(before, change), after)


def test_many_scattered_changes_stay_small_where_items_keep_their_place() -> None:
    before = [{"n": n, "text": "x" * 50} for n in range(2_000)]
    after = [{**row, "n": -1} if row["n"] % 4 == 0 else dict(row) for row in before]
    change = delta(before, after)
    assert same(apply(before, change), after)
    assert len(encode(change)) < len(encode(after)) / 4


def test_equal_large_states_are_compared_quickly() -> None:
    before = {str(n): {"rows": [{"id": m, "v": m * 0.5} for m in range(200)]} for n in range(200)}
    after = copied(before)
    start = perf_counter()
    assert delta(before, after) is None
    assert perf_counter() - start < 0.5


def test_lists_that_differ_everywhere_do_not_take_long() -> None:
    chance = random.Random(0)
    left, right = ([chance.randrange(2) for _ in range(50_000)] for _ in range(2))
    start = perf_counter()
    change = delta(left, right)
    assert perf_counter() - start < 3
    assert same(apply(left, change), right)


def test_nothing_is_shared_between_values_and_deltas() -> None:
    inner = {"x": [1]}
    before: dict[str, Any] = {"kept": {"list": [1, 2, 3]}, "old": [[0]] * 3}
    after: dict[str, Any] = {
        "kept": {"list": [1, 2, 3]},
        "old": [[0]] * 3 + [[9]],
        "one": inner,
        "two": inner,
    }
    change = delta(before, after)
    result = apply(before, change)
    wanted = json.dumps(after)
    inner["x"].append(2)
    before["kept"]["list"].clear()
    before["old"][0].append(7)
    assert json.dumps(result) == wanted
    again = json.dumps(change)
    result["one"]["x"].append(3)
    result["old"][-1].append(3)
    assert json.dumps(change) == again
    assert result["two"] == {"x": [1]}


def test_patch_changes_a_value_that_its_caller_owns() -> None:
    owned = {"log": ["a"], "n": 1}
    log = owned["log"]
    assert patch(owned, delta(owned, {"log": ["a", "b"], "n": 1})) is owned
    assert log == ["a", "b"]


def test_a_state_that_holds_half_a_surrogate_pair_is_kept() -> None:
    check({"said": "\ud800", "n": [1] * 30}, {"said": "\ud800!", "n": [1] * 30})


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ({}, {"remove": ["a"]}),
        ({}, {"at": {"a": {"append": [1]}}}),
        ([1], {"at": [[4, {"value": 1}]]}),
        ([1], {"splice": [[0, 5, []]]}),
        ([1], {"splice": [[-1, 1, []]]}),
        ("text", {"text": [2, 9, ""]}),
        (3, {"append": [1]}),
        ([], {"set": {"a": 1}}),
        ([], {"stretch": 1}),
        ([], 7),
    ],
)
def test_a_delta_taken_from_another_value_is_refused(value: Any, change: Any) -> None:
    with pytest.raises(RecordError, match="does not fit the State before it"):
        apply(value, change)
