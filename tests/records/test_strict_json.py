import math

import pytest

from plural_gym.errors import RecordError
from plural_gym.records.strict_json import decode, encode, text


def test_json_is_compact_and_keeps_order() -> None:
    assert encode({"b": [1, 1.0, True, None], "a": "é"}) == '{"b":[1,1.0,true,null],"a":"é"}'.encode()
    assert text([1]) == "[1]" and encode({"a": 1}, indent=2) == b'{\n  "a": 1\n}'


@pytest.mark.parametrize(
    "bad", [b"NaN", b'{"a":Infinity}', b"", b"{", b"\xff", b'{"a":1}\x00', b"[" * 100_000]
)
def test_anything_but_strict_json_is_refused(bad: bytes) -> None:
    with pytest.raises(ValueError):
        decode(bad)


def test_the_slow_path_writes_what_the_fast_one_writes() -> None:
    value = {"t": (1, 2), "n": [math.nan, math.inf, -math.inf], "deep": [{"x": 1.5}]}
    slow = decode(encode({**value, "said": "\ud800"}))
    assert slow.pop("said") == "\ud800"
    assert slow == decode(encode(value))


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(RecordError, match="must be JSON"):
        encode(loop)
