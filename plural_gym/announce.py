"""Registers the shipped ids as soon as Gymnasium is there, without importing it.

The command line and the App host import this package too, and must neither wait for Gymnasium nor need it.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Arrival(MetaPathFinder):
    """Lets the first import of Gymnasium go its way, and registers right after it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                _register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def announce() -> None:
    """Register now if Gymnasium is imported, else when it is."""
    if "gymnasium" in sys.modules:
        _register()
    elif not any(isinstance(finder, _Arrival) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Arrival())


def _register() -> None:
    importlib.import_module("plural_gym.rl.registration").register_shipped()
