"""Rules: what they say, and that a broken one is an AssertionError."""

import pickle
import subprocess
import sys
from typing import Any

import pytest

import plural_gym.testing
from plural_gym.testing.conformance import ConformanceError, Rule, shown

RULE = Rule("a die has six sides", "Buy another die.")


def test_a_broken_rule_says_the_rule_what_was_seen_and_what_mends_it() -> None:
    RULE.require(True, "nothing")
    with pytest.raises(AssertionError) as raised:
        RULE.require(False, "it fell on 7")
    assert str(raised.value) == "a die has six sides.\n  seen: it fell on 7.\n  mend: Buy another die."


def test_what_is_raised_breaks_the_rule_unless_another_rule_broke_before() -> None:
    said = r"throwing raised KeyError: 'side' \(at test_conformance.py:"
    with pytest.raises(ConformanceError, match=said), RULE.never_raises("throwing"):
        raise KeyError("side")
    other = Rule("a cup has no hole", "Buy another cup.")
    with pytest.raises(ConformanceError) as raised, RULE.never_raises("throwing"):
        other.require(False, "a hole")
    assert raised.value.rule is other


def test_an_error_crosses_processes() -> None:
    error = pickle.loads(pickle.dumps(ConformanceError(RULE, "it fell on 7")))
    assert (error.rule, error.seen) == (RULE, "it fell on 7")


def test_long_values_and_values_that_cannot_be_shown() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise ValueError

    assert shown("x" * 1000).endswith("xxx...") and len(shown("x" * 1000)) == 160
    assert shown(Shy()) == "<Shy>"


def test_every_name_is_there_and_none_is_loaded_before_it_is_used() -> None:
    for name in plural_gym.testing.__all__:
        assert getattr(plural_gym.testing, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'check_weather'"):
        _: Any = plural_gym.testing.check_weather
    code = "import sys, plural_gym.testing; sys.exit('gymnasium' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert {"check_app", "check_verifier"} <= set(dir(plural_gym.testing))
