"""The tree of errors, and the record of an author's failure."""

import json
import pickle

import pytest

from plural_gym import errors
from plural_gym.errors import (
    Fault,
    PluralError,
    Problem,
    ProjectError,
    UnknownName,
    begins_at,
    raised_at,
    suggest,
)

BASES = {
    "DefinitionError": ValueError,
    "ProjectError": ValueError,
    "UsageError": ValueError,
    "UnknownName": KeyError,
    "QueryRefused": PermissionError,
    "AppFault": RuntimeError,
    "GradingFault": RuntimeError,
}


def test_every_error_is_of_one_tree_and_drawn_on_top_of_the_module() -> None:
    classes = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    for name, found in classes.items():
        assert issubclass(found, PluralError) and name in (errors.__doc__ or "")
        assert 1 <= found.exit_code <= 5
    for name, base in BASES.items():
        assert issubclass(classes[name], base)


def test_an_unknown_name_reads_as_a_sentence() -> None:
    assert (
        str(UnknownName("there is no Task 'x'; there are none.")) == "there is no Task 'x'; there are none."
    )
    assert str(UnknownName()) == ""


def test_a_project_error_tells_every_problem_and_travels() -> None:
    problems = [Problem("a.yaml", 3, "wrong."), Problem("b.yaml", None, "missing.")]
    error = pickle.loads(pickle.dumps(ProjectError(problems)))
    assert str(error) == "a.yaml:3: wrong.\nb.yaml: missing." and error.problems == tuple(problems)


def test_what_is_near_is_suggested() -> None:
    assert suggest("gues", ["guess", "finish"]) == "did you mean 'guess'?"
    assert suggest("x", ["b", "a"]) == "it has: a, b."
    assert suggest("x", []) == "there are none."
    assert suggest("?", map(str, range(20))).endswith("… (20 in all).")


def author() -> None:
    json.loads("{")  # the line that raised


def test_a_fault_names_the_innermost_line_of_author_code() -> None:
    with pytest.raises(ValueError) as raised:
        author()
    fault = Fault.of(raised.value, "app desk")
    assert (fault.where, fault.type) == ("app desk", "JSONDecodeError")
    assert fault.at == f"test_errors.py:{author.__code__.co_firstlineno + 1}"
    assert "json/decoder.py" in fault.trace and str(fault).endswith(f"(at {fault.at})")


def test_a_fault_without_a_line_of_the_author_names_where_the_function_begins() -> None:
    begin = f"test_errors.py:{author.__code__.co_firstlineno}"
    assert begins_at(author) == begin and begins_at(7) is None
    assert Fault.of(ValueError("x"), "verifier v", author=author).at == begin
    assert raised_at(ValueError("x")) == "unknown"
    assert raised_at(SyntaxError("bad", ("lib/play.py", 4, 1, "x"))) == "play.py:4"


def test_a_fault_can_always_be_written_down() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert Fault.of(Unspeakable(), "app desk").message == "its message cannot be shown"
    assert Fault.of(ValueError("\ud800"), "app desk").message == "\\ud800"
