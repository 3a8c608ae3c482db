"""What tests of the RL face share: packages that are there on the project's machines and perhaps not here."""

import importlib.util
import os
from collections.abc import Callable, Iterator

import gymnasium
import pytest


@pytest.fixture
def needs() -> Callable[..., None]:
    """`needs("moviepy")`: skip where a package is missing, and fail where continuous integration lacks it."""

    def needs(*packages: str) -> None:
        for package in packages:
            if importlib.util.find_spec(package) is None:
                missing = f"the package {package} is not installed"
                (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)

    return needs


@pytest.fixture
def registry() -> Iterator[None]:
    """Gymnasium's registry, put back as it was: for tests that register ids."""
    before = dict(gymnasium.registry)
    yield
    gymnasium.registry.clear()
    gymnasium.registry.update(before)
