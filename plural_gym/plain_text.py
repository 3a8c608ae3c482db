"""Text for people's eyes: nothing in it that moves a cursor, and lines that fit.

Boards, transcripts and pictures show what Apps and Agents said, which may hold anything.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and newline, what turns the direction of writing, half surrogate pairs."""


def printable(text: str) -> str:
    """`text` with tabs spread out, and what would do something to a terminal written as its escape."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").expandtabs(4)
    return _UNSHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def called(action: str, arguments: Mapping[str, Any]) -> str:
    """An action as a call: `guess(word='crane')`; `?(...)` where no action was named."""
    return printable(f"{action or '?'}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})")


def width(text: str) -> int:
    """How many columns of a terminal a line takes: characters of East Asia two, accents on their own none."""
    if text.isascii():
        return len(text)
    return sum(
        2 if unicodedata.east_asian_width(one) in "WF" else 0 if unicodedata.combining(one) else 1
        for one in text
    )


def wrapped(text: str, room: float, measure: Callable[[str], float] = width) -> Iterator[str]:
    """The lines of a text, broken between words where one is wider than `room`, else within a word.

    Args:
        text: may hold newlines; spaces within a line stay as they are.
        room: in the unit of `measure`; a single character always fits.
        measure: how wide a text is.
    """
    for line in text.split("\n"):
        start = 0
        while True:
            piece = line[start : start + int(room) + 2]  # more than fits: no character is narrower than 1
            end = _fitting(piece, room, measure)
            if start + end >= len(line):
                yield line[start:]
                break
            space = piece.rfind(" ", 1, end + 1)
            if space > 0 and piece[:space].strip():
                yield piece[:space]
                start += space + 1
            else:
                yield piece[:end]
                start += end


def _fitting(piece: str, room: float, measure: Callable[[str], float]) -> int:
    """How many of the first characters fit; at least one."""
    if measure(piece) <= room:
        return len(piece)
    low, high = 1, len(piece)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if measure(piece[:middle]) <= room else (low, middle)
    return low
