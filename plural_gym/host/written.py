"""Functions written out from a text, as `dataclasses` and `namedtuple` write theirs: what `direct` compiles.

A line that ends in `#? word` is left out unless the word holds; so is one in `#? not word` where it does, and
`#? a and not b` asks for both. See `docs/decisions/0005-steps-are-compiled.md`.
"""

from collections.abc import Callable, Mapping
from typing import Any


def binder(
    text: str,
    constants: Mapping[str, Any],
    holding: frozenset[str],
    blocks: Mapping[str, str],
    holes: Mapping[str, str],
    file: str,
) -> Callable[..., Any]:
    """The function `bind` of a text.

    Args:
        text: defines `bind`.
        constants: what the text names and `bind` is not given.
        holding: the words that hold.
        blocks: what takes the place of lines that are nothing but a name such as `$reward`.
        holes: what takes the place of such names within lines.
        file: the file's name in tracebacks: one of ours, so that no line of it is taken for an author's.
    """
    lines: list[str] = []
    for line in text.splitlines():
        block = blocks.get(line.strip())
        indent = line[: len(line) - len(line.lstrip())]
        lines += [line] if block is None else [indent + part for part in block.strip().splitlines()]
    written = "\n".join(line.partition("#?")[0] for line in lines if _belongs(line, holding))
    for hole, filling in holes.items():
        written = written.replace(hole, filling)
    scope = dict(constants)
    exec(compile(written, file, "exec"), scope)
    bind: Callable[..., Any] = scope["bind"]
    return bind


def _belongs(line: str, holding: frozenset[str]) -> bool:
    _, _, condition = line.partition("#?")
    words = [word.strip() for word in condition.split(" and ")] if condition else []
    return all(word[4:] not in holding if word.startswith("not ") else word in holding for word in words)
