"""Receipt: the exact inputs of one Trial, never a secret."""

import platform

import pytest

from plural_gym.errors import DefinitionError
from plural_gym.receipt import Pin, Receipt, packages

PIN = Pin(name="a", version="0.1.0", content_hash="sha256:0")


def receipt(**fields: object) -> Receipt:
    given = {
        "trial_id": "trl_1",
        "job_id": "job_1",
        "attempt": 1,
        "mode": "eval",
        "seed": 2**59,
        "task": PIN,
        "environment": PIN,
        "verifiers": (PIN,),
        "agent": PIN,
        "started": 1.0,
    }
    return Receipt(**{**given, **fields})


def test_a_receipt_comes_back_from_its_json() -> None:
    one = receipt(credentials=("CRM_KEY",), rerunnable=False, why_not=("it is a closure",))
    assert Receipt(**one.model_dump(mode="json")) == one
    assert one.schema_version == "plural.receipt/1" and receipt().benchmark is None


def test_a_receipt_has_no_place_for_what_it_does_not_know() -> None:
    with pytest.raises(DefinitionError, match="secret is no field"):
        receipt(secret="value")


def test_the_versions_a_run_depends_on_are_named() -> None:
    found = packages()
    assert found["python"] == platform.python_version()
    assert {"plural-gym", "gymnasium", "numpy", "pydantic"} <= set(found) and packages() is found
