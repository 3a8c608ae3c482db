"""The shipped ids reach Gymnasium when Gymnasium is imported, and no sooner."""

import sys

from plural_gym.announce import _Arrival, announce


def test_with_gymnasium_imported_nothing_waits_for_it() -> None:
    import gymnasium

    before = list(sys.meta_path)
    announce()
    announce()
    assert sys.meta_path == before and "plural/Wordle-v0" in gymnasium.registry


def test_other_imports_pass_by() -> None:
    assert _Arrival().find_spec("json", None) is None
