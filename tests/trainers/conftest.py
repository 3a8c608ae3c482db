"""What tests of the training scripts share: the scripts, and how warnings of the libraries are taken."""

import gc
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "docs/trainers"
LIBRARIES = ("sb3_contrib", "stable_baselines3", "torch", "tensordict", "torchrl", "minari", "jax", "ray")
"""Whose warnings are their own business; one of ours stays an error."""
FILTERS = (
    *(rf"ignore:::{library}(\.|$)" for library in LIBRARIES),
    "ignore:Creating \\w*WeightUpdater:DeprecationWarning",  # TorchRL, on import
    "ignore:Implicitly cleaning up:ResourceWarning",  # Minari, of the folder that it has removed
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            for line in FILTERS:
                item.add_marker(pytest.mark.filterwarnings(line))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """`script("sb3_ppo", "stable_baselines3")`: a script of docs/trainers, and the packages it needs.

    Without them the test is skipped; it fails where PLURAL_REQUIRE_TRAINERS says that they are installed.
    """

    def script(name: str, *packages: str) -> ModuleType:
        missing = [package for package in packages if importlib.util.find_spec(package) is None]
        if missing:
            required = os.environ.get("PLURAL_REQUIRE_TRAINERS")
            (pytest.fail if required else pytest.skip)(
                f"not installed: {', '.join(missing)}; `make trainers` runs these tests"
            )
        monkeypatch.syspath_prepend(str(SCRIPTS))
        return importlib.import_module(name)

    yield script
    gc.collect()  # so that what libraries leave behind is found here, under the filters above
