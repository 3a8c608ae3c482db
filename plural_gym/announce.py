"""Registers the shipped ids as soon as Gymnasium or PettingZoo is there, without importing either.

The command line and the App host import this package too, and must neither wait for them nor need them.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

REGISTRIES = {
    "gymnasium": "plural_gym.rl.registration",
    "pettingzoo": "plural_gym.rl.party_ids",
}
"""Library -> the module whose `register_shipped` tells it of our ids."""


class _Arrival(MetaPathFinder):
    """Lets the first import of each library go its way, and registers right after it."""

    def __init__(self, awaited: set[str]) -> None:
        self.awaited = awaited

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.awaited:
            return None
        self.awaited.discard(fullname)
        if not self.awaited:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                _register(fullname)

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def announce() -> None:
    """Register now with what is imported, and with the rest when it is."""
    for library in REGISTRIES:
        if library in sys.modules:
            _register(library)
    awaited = {library for library in REGISTRIES if library not in sys.modules}
    if awaited and not any(isinstance(finder, _Arrival) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Arrival(awaited))


def _register(library: str) -> None:
    importlib.import_module(REGISTRIES[library]).register_shipped()
