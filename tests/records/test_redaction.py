"""Secrets are taken out of texts however they are written."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plural_gym.records.redaction import MARK, Redactor

SECRET = 'sk-aB3+/=&%"\\key'


@pytest.mark.parametrize(
    "written",
    [SECRET, quote(SECRET, safe=""), quote(SECRET), json.dumps(SECRET)[1:-1], SECRET.replace("%", "%25")],
)
def test_a_secret_is_replaced_as_it_is_quoted_and_escaped(written: str) -> None:
    redactor = Redactor([SECRET, SECRET.replace("%", "%25"), quote(SECRET)])
    assert redactor.text(f"before {written} after") == f"before {MARK} after"


@given(
    st.binary(max_size=9),
    st.binary(max_size=9),
    st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]),
)
def test_a_secret_inside_something_that_was_encoded_is_found(
    before: bytes, after: bytes, encode: object
) -> None:
    assert callable(encode)
    encoded = encode(before + SECRET.encode() + after).decode()
    shown = Redactor([SECRET]).text(encoded)
    assert MARK in shown
    # At most the letters that the secret shares with its neighbours are left of it.
    assert len(shown) - len(MARK) <= len(encoded) - (len(SECRET) * 8 // 6 - 2)


def test_a_value_is_cleaned_in_depth_keys_too() -> None:
    dirty = {SECRET: [SECRET, 1, None, {"a": f"x{SECRET}y"}], "ok": True}
    assert Redactor([SECRET]).value(dirty) == {MARK: [MARK, 1, None, {"a": f"x{MARK}y"}], "ok": True}


def test_of_two_secrets_the_longer_one_goes_whole() -> None:
    assert Redactor(["abcdef", "abcdefghi"]).text("abcdefghi abcdef") == f"{MARK} {MARK}"


def test_what_is_too_short_to_be_a_secret_stays() -> None:
    assert Redactor(["", "abcde"]).text("abcde abcde") == "abcde abcde"
    assert Redactor([]).value(["x"]) == ["x"]
