"""Whether a Verifier's code reads the answer key."""

from typing import Any

import pytest

from plural_gym.answer_key import reads_expected
from plural_gym.refs import load
from plural_gym.verifier import VerifierOutput, total_reward
from plural_gym.verifiers.deterministic import DeterministicVerifier

CODE = "def check(episode):\n    {}\n"


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("return episode.expected", True),
        ("return episode.task.expected == 1", True),
        ("return getattr(episode, 'expected', None)", True),
        ("return __import__('operator').attrgetter('expected')(episode)", True),
        ("match episode:\n        case Episode(expected=wanted): return wanted", True),
        ("return 1  # not episode.expected", False),
        ("'episode.expected'", False),
        ("expected = 1", False),
    ],
)
def test_code_decides_and_not_what_is_said_about_it(tmp_path: Any, line: str, reads: bool) -> None:
    (tmp_path / "verify.py").write_text(CODE.format(line), encoding="utf-8")
    verifier = DeterministicVerifier(name="v", check=load("verify.py:check", tmp_path))
    assert reads_expected(verifier) is reads


def test_of_code_that_stands_in_no_file_nothing_is_said() -> None:
    space: dict[str, Any] = {}
    exec("def check(episode):\n    return None\n", space)
    assert reads_expected(DeterministicVerifier(name="v", check=space["check"]))


def test_the_sum_of_rewards_is_not_read_as_the_authors_code(tmp_path: Any) -> None:
    (tmp_path / "verify.py").write_text("def reward(step):\n    return 1.0\n", encoding="utf-8")
    reward = load("verify.py:reward", tmp_path)
    assert not reads_expected(DeterministicVerifier(name="v", check=total_reward, reward=reward))


def test_a_file_that_cannot_be_parsed_is_not_held_against_it(tmp_path: Any) -> None:
    def check(episode: Any) -> VerifierOutput:
        return VerifierOutput(score=1.0)

    (tmp_path / "other.py").write_text("expected = (", encoding="utf-8")
    verifier = DeterministicVerifier(name="v", check=check)
    verifier._folder = tmp_path
    assert reads_expected(verifier)
