"""Every test that the page of conformance names exists, and every sentence on it has one."""

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")
SHOWN, _, NOT_SHOWN = PAGE.partition("\n## Not shown by a test\n")


def rows(text: str) -> list[tuple[str, str]]:
    """Both cells of each row of its tables, their headings left out."""
    found = re.findall(r"^\| (.+) \| (.+) \|$", text, re.MULTILINE)
    return [row for row in found if row[0] not in ("Statement", "---")]


@functools.cache
def collected_from(file: str) -> frozenset[str]:
    """The tests of a file that pytest would collect."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(one.name for one in tree.body if isinstance(one, kinds) and one.name.startswith("test_"))


def test_every_sentence_is_shown_by_tests_that_exist() -> None:
    told = rows(SHOWN)
    assert len(told) > 80
    for statement, tests in told:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
        assert named, statement
        assert re.sub(r"`[^`]+`|[, ]", "", tests) == "", f"more than tests: {tests}"
        for file, test in named:
            assert (ROOT / file).is_file(), f"{statement}: {file}"
            assert test in collected_from(file), f"{statement}: {file}::{test}"


def test_no_sentence_stands_twice() -> None:
    statements = [statement for statement, _ in rows(PAGE)]
    assert len(statements) == len(set(statements))


def test_what_no_test_shows_says_why() -> None:
    assert all(len(why) > 10 for _, why in rows(NOT_SHOWN)) and len(rows(NOT_SHOWN)) < 10
