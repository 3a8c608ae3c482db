"""plural_gym: work that an AI agent can do, as reinforcement-learning environments.

Every public name is loaded on first use, so that importing the package costs next to nothing. Importing it
registers the shipped worlds' ids with Gymnasium, once Gymnasium itself is imported, and does nothing else.
"""

import importlib
from typing import Any

from plural_gym.announce import announce

__version__ = "0.1.0"

_HOMES = {
    "ActionRejected": "plural_gym.errors",
    "Agent": "plural_gym.agent",
    "AgentVerifier": "plural_gym.verifiers.agent",
    "App": "plural_gym.app",
    "Benchmark": "plural_gym.benchmark",
    "Board": "plural_gym.board",
    "Cell": "plural_gym.board",
    "Command": "plural_gym.command",
    "DeterministicVerifier": "plural_gym.verifiers.deterministic",
    "DefinitionError": "plural_gym.errors",
    "Environment": "plural_gym.environment",
    "Episode": "plural_gym.episode",
    "EpisodeOver": "plural_gym.errors",
    "GymEnv": "plural_gym.rl.env",
    "Harness": "plural_gym.harness",
    "HindsightTrial": "plural_gym.episode",
    "HumanVerifier": "plural_gym.verifiers.human",
    "Job": "plural_gym.job",
    "JobResult": "plural_gym.job",
    "Limits": "plural_gym.environment",
    "NumericParty": "plural_gym.rl.numeric_party",
    "Party": "plural_gym.party",
    "Project": "plural_gym.project",
    "Receipt": "plural_gym.receipt",
    "Review": "plural_gym.review",
    "Resource": "plural_gym.environment",
    "RubricCriterion": "plural_gym.verifier",
    "RuntimeChoice": "plural_gym.environment",
    "SeatEnv": "plural_gym.rl.seat_env",
    "State": "plural_gym.state",
    "Step": "plural_gym.step",
    "Task": "plural_gym.task",
    "TaskSet": "plural_gym.task",
    "Trial": "plural_gym.trial",
    "Usage": "plural_gym.episode",
    "VerifierOutput": "plural_gym.verifier",
    "VerifierRuntime": "plural_gym.verifiers.agent",
    "action": "plural_gym.app",
    "make": "plural_gym.rl.making",
    "make_aec": "plural_gym.rl.party_ids",
    "make_parallel": "plural_gym.rl.party_ids",
    "make_vec": "plural_gym.rl.making",
    "register_project": "plural_gym.rl.project_ids",
    "pending_reviews": "plural_gym.review",
    "rubric_score": "plural_gym.verifier",
    "submit_review": "plural_gym.reviewing",
    "seed_all": "plural_gym.rl.making",
    "total_reward": "plural_gym.verifier",
}

__all__ = sorted(_HOMES, key=str.casefold)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'plural_gym' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


announce()
