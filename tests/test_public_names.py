"""The names people import, from either module."""

import importlib
import inspect
import pkgutil

import pytest

import plural
import plural_gym


@pytest.mark.parametrize("name", plural_gym.__all__)
def test_a_public_name_is_the_same_object_everywhere(name: str) -> None:
    value = getattr(plural_gym, name)
    assert getattr(plural, name) is value
    home = importlib.import_module(plural_gym._HOMES[name])
    assert getattr(home, name) is value and value.__doc__


def test_the_list_is_what_a_star_imports() -> None:
    scope: dict[str, object] = {}
    exec("from plural import *", scope)
    scope.pop("__builtins__")
    assert set(scope) == set(plural_gym.__all__) == set(plural.__all__)
    assert len(set(plural_gym.__all__)) == len(plural_gym.__all__)
    assert plural.__version__ == plural_gym.__version__


def test_the_specifications_words_are_there() -> None:
    spoken = """
        Agent App Benchmark DeterministicVerifier Environment Episode HindsightTrial Job Limits
        RubricCriterion State Step Task VerifierOutput action total_reward
    """
    assert set(spoken.split()) <= set(plural_gym.__all__)


def test_no_public_function_shares_a_name_with_a_submodule() -> None:
    modules = {module.name for module in pkgutil.iter_modules(plural_gym.__path__)}
    clashing = {
        name for name in plural_gym.__all__ if inspect.isfunction(getattr(plural_gym, name))
    } & modules
    assert not clashing
