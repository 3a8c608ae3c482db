"""The one registry: a kind's name leads to its class."""

import pytest

from plural_gym import kinds
from plural_gym.apps.python import PythonApp
from plural_gym.errors import UnknownName


def test_a_name_leads_to_its_class_and_so_does_any_importable_one() -> None:
    assert kinds.load("plural.apps", "python") is PythonApp
    assert kinds.load("plural.apps", "plural_gym.apps.python:PythonApp") is PythonApp
    assert "local" in kinds.names("plural.runtimes") and kinds.names("plural.nothing") == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lokal", "there is no runtime kind 'lokal'; did you mean 'local'?"),
        ("nowhere_at_all:Thing", "runtime kind 'nowhere_at_all:Thing' needs the module 'nowhere_at_all'"),
        ("plural_gym.runtime:Nothing", "module 'plural_gym.runtime' has no 'Nothing'"),
    ],
)
def test_a_kind_that_is_not_there_is_explained(name: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        kinds.load("plural.runtimes", name)
