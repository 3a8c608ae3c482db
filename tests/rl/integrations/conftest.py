"""Tests with the real packages of trainers: skipped where they are missing, unless they are asked for."""

import importlib.util
import os
from collections.abc import Callable

import pytest


@pytest.fixture
def trainers() -> Callable[..., None]:
    """`trainers("torchrl")`: skip where a package is missing; fail with PLURAL_REQUIRE_TRAINERS set."""

    def trainers(*packages: str) -> None:
        for package in packages:
            if importlib.util.find_spec(package) is None:
                missing = f"the package {package} is not installed"
                (pytest.fail if os.environ.get("PLURAL_REQUIRE_TRAINERS") else pytest.skip)(missing)

    return trainers
