"""Shared by the tests of the conformance checks: which rules a module declares, and the shipped project."""

from types import ModuleType
from typing import Any

import pytest

from plural_gym import shipped
from plural_gym.project import Project
from plural_gym.testing.conformance import Rule


@pytest.fixture(scope="session")
def rules_of() -> Any:
    """`rules_of(module)`: the names of its rules."""

    def found(module: ModuleType) -> set[str]:
        return {name for name, value in vars(module).items() if isinstance(value, Rule)}

    return found


@pytest.fixture(scope="session")
def project() -> Project:
    """The shipped worlds."""
    return shipped.project()
