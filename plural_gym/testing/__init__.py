"""What a contract's kinds must keep, as functions: hold your own App, Runtime, Harness, … to it.

One file a contract. Each `check_...` returns when every rule holds, and else raises ConformanceError, an
AssertionError that says the rule, what was seen and what would mend it. They need no test framework. The
rules are constants of those files. Loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plural_gym.testing.apps import check_app
    from plural_gym.testing.conformance import ConformanceError, Rule
    from plural_gym.testing.environments import check_environment
    from plural_gym.testing.executors import check_executor
    from plural_gym.testing.harnesses import check_harness
    from plural_gym.testing.runtimes import check_runtime
    from plural_gym.testing.stub_model import StubAnswer, StubModel, StubRequest
    from plural_gym.testing.verifiers import Played, check_verifier, play_at_random

__all__ = [
    "ConformanceError",
    "Played",
    "Rule",
    "StubAnswer",
    "StubModel",
    "StubRequest",
    "check_app",
    "check_environment",
    "check_executor",
    "check_harness",
    "check_runtime",
    "check_verifier",
    "play_at_random",
]

_HOMES = {
    "ConformanceError": "conformance",
    "Played": "verifiers",
    "Rule": "conformance",
    "StubAnswer": "stub_model",
    "StubModel": "stub_model",
    "StubRequest": "stub_model",
    "check_app": "apps",
    "check_environment": "environments",
    "check_executor": "executors",
    "check_harness": "harnesses",
    "check_runtime": "runtimes",
    "check_verifier": "verifiers",
    "play_at_random": "verifiers",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'plural_gym.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"plural_gym.testing.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
