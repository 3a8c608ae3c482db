"""The answer key: whether a Verifier reads a Task's `expected` at all, as its code says.

`project_tasks.py` warns of an answer key that nobody reads.
"""

import ast
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from plural_gym.refs import origin
from plural_gym.verifier import Verifier, total_reward

_KEY = "expected"
_GETTERS = frozenset({"getattr", "attrgetter"})


def reads_expected(verifier: Verifier) -> bool:
    """Whether the Verifier's code reads `.expected`; True where its code cannot be read.

    A Verifier without functions is a judge or a reviewer, who is always shown the answer key; so is a
    program, which may be written in any language.
    """
    functions = list(verifier.functions().values())
    if not functions or (verifier.scores and "check" not in verifier.functions()):
        return True
    own = [function for function in functions if function is not total_reward]
    return any(_mentions(text) for text in _sources(verifier, own))


def _sources(verifier: Verifier, functions: Sequence[Any]) -> Iterator[str | None]:
    """The code of its folder, and of its functions' files; None where some cannot be read."""
    files = set() if verifier.folder is None else set(verifier.folder.rglob("*.py"))
    for function in functions:
        file = origin(function).file
        if file is not None:
            files.add(Path(file))
        else:
            try:
                yield inspect.getsource(function)
            except (OSError, TypeError):
                yield None
    for path in sorted(files):
        try:
            yield path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            yield None


def _mentions(source: str | None) -> bool:
    if source is None:
        return True
    if _KEY not in source:
        return False
    try:
        tree = ast.parse(inspect.cleandoc(source) if source[:1].isspace() else source)
    except (SyntaxError, ValueError):
        return True
    return any(map(_reads, ast.walk(tree)))


def _reads(node: ast.AST) -> bool:
    """Whether it is `x.expected`, `getattr(x, "expected")` or the pattern `Episode(expected=...)`."""
    if isinstance(node, ast.Attribute):
        return node.attr == _KEY
    if isinstance(node, ast.MatchClass):
        return _KEY in node.kwd_attrs
    if isinstance(node, ast.Call):
        named = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        given = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        return named in _GETTERS and _KEY in given
    return False
