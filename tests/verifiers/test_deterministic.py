"""The Verifier that grades with code."""

from typing import Any

import pytest

from plural_gym.errors import DefinitionError
from plural_gym.verifier import VerifierOutput, total_reward
from plural_gym.verifiers.deterministic import DeterministicVerifier


def check(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=1.0)


def reward(step: Any) -> float:
    return 0.5


def late(trial: Any) -> list[Any]:
    return []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Verifier 'v' needs at least one of check, reward and hindsight"),
        (
            {"check": total_reward},
            "total_reward needs a reward function; without one the score would always be 0",
        ),
        ({"check": total_reward, "hindsight": late}, "total_reward needs a reward function"),
        ({"check": "verify.py:check"}, "check 'verify.py:check' is no function; pass the function itself"),
        ({"reward": 0.5}, "reward 0.5 is no function"),
        ({"check": check, "weight": 0}, "weight"),
        ({"check": check, "weight": float("inf")}, "weight"),
        ({"check": check, "timeout_s": 0}, "timeout_s"),
        ({"check": check, "rewards": reward}, "rewards is no field; did you mean 'reward'?"),
    ],
)
def test_a_verifier_that_cannot_grade_is_refused_when_it_is_built(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        DeterministicVerifier(name="v", **fields)


def test_only_a_check_scores() -> None:
    assert DeterministicVerifier(name="v", check=check).scores
    assert DeterministicVerifier(name="v", check=total_reward, reward=reward).scores
    assert not DeterministicVerifier(name="v", reward=reward).scores
    assert not DeterministicVerifier(name="v", hindsight=late).scores


def test_its_functions_and_their_time() -> None:
    made = DeterministicVerifier(name="v", check=check, hindsight=late, timeout_s=3, reward_timeout_s=1)
    assert made.functions() == {"check": check, "hindsight": late}
    assert made.timeouts_s() == {"check": 3.0, "reward": 1.0, "hindsight": 3.0}


def test_its_identity_is_its_code_and_weight() -> None:
    made = DeterministicVerifier(name="v", check=check)
    same = DeterministicVerifier(name="other", check=check, version="9.0.0", title="T", description="D")
    assert made.content_hash == same.content_hash
    for changed in ({"weight": 2}, {"reward": reward}, {"check": total_reward, "reward": reward}):
        assert (
            DeterministicVerifier(**{"name": "v", "check": check, **changed}).content_hash
            != made.content_hash
        )
