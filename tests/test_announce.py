"""The shipped ids reach Gymnasium when Gymnasium is imported, and no sooner."""

import subprocess
import sys

from plural_gym.announce import _Arrival, announce


def test_with_gymnasium_imported_nothing_waits_for_it() -> None:
    import gymnasium

    before = list(sys.meta_path)
    announce()
    announce()
    assert sys.meta_path == before and "plural/Wordle-v0" in gymnasium.registry


def test_other_imports_pass_by() -> None:
    assert _Arrival({"gymnasium"}).find_spec("json", None) is None


def test_the_shipped_parties_reach_pettingzoo_when_it_is_imported() -> None:
    code = (
        "import plural_gym, sys; assert 'pettingzoo' not in sys.modules; import pettingzoo; "
        "print(type(pettingzoo.make('aec', 'plural/KuhnPoker-v0')).__name__)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.stdout.strip() == "PartyEnv", said.stderr
