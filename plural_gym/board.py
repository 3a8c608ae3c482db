"""Board: what a person is shown of an App, as rows of cells with colours.

An App's `board()` returns one; render modes and notebooks show it. The Agent never sees it, so an author puts
on it whatever a person may know. This file knows text and HTML; pictures are drawn in `rl/frame.py`.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from plural_gym.errors import DefinitionError, suggest
from plural_gym.plain_text import printable, width, wrapped

COLORS = {
    "black": "#121213",
    "blue": "#3b82c4",
    "green": "#538d4e",
    "grey": "#787c7e",
    "orange": "#c9762e",
    "purple": "#8a63b8",
    "red": "#c4483f",
    "white": "#ffffff",
    "yellow": "#b59f3b",
}
"""Names for colours that can be told apart on a light and on a dark page."""
TEXT_WIDTH = 72
"""Characters in the longest line of a board as text."""
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_GAP = 2

Row = tuple["Cell", ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a Board: a text and how it looks.

    Colours are "#rrggbb" or a name: black, blue, green, grey, orange, purple, red, white, yellow.

    Raises:
        DefinitionError: no such colour.
    """

    text: str = ""
    background: str | None = None
    """None: the page's."""
    color: str | None = None
    """Of the text. None: one that can be read on the background."""
    bold: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(str(self.text)))
        object.__setattr__(self, "background", _color(self.background))
        object.__setattr__(self, "color", _color(self.color) or _readable_on(self.background))


def _color(value: Any) -> str | None:
    if value is None:
        return None
    text = str(value)
    found = text if _HEX.fullmatch(text) else COLORS.get(text)
    if found is None:
        raise DefinitionError(
            f"a Cell has no color {value!r}; give '#rrggbb', or a name: {suggest(text, COLORS)}"
        )
    return found


def _readable_on(background: str | None) -> str | None:
    """White or near black, whichever stands out; None on the page."""
    if background is None:
        return None
    red, green, blue = rgb(background)
    return COLORS["black" if 0.299 * red + 0.587 * green + 0.114 * blue > 165 else "white"]


def rgb(color: str) -> tuple[int, int, int]:
    """A "#rrggbb" as three numbers from 0 to 255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


@dataclass(frozen=True, slots=True, init=False)
class Board:
    """What a person is shown of an App now: `Board([["X", "", Cell("O", "green")]], tiles=True)`.

    Args:
        rows: rows of Cells; anything else in a row becomes a Cell with its text.
        title: a line above.
        caption: a line below.
        tiles: equal squares with the text in their middle, as of a game. Otherwise columns as wide as their
            texts; neighbouring rows with equally many cells share their columns.

    Raises:
        DefinitionError: `rows` is no sequence of rows.
    """

    rows: tuple[Row, ...]
    title: str
    caption: str
    tiles: bool

    def __init__(
        self, rows: Iterable[Iterable[Any]], *, title: str = "", caption: str = "", tiles: bool = False
    ) -> None:
        object.__setattr__(self, "rows", _rows(rows))
        object.__setattr__(self, "title", printable(str(title)))
        object.__setattr__(self, "caption", printable(str(caption)))
        object.__setattr__(self, "tiles", bool(tiles))

    def blocks(self) -> Iterator[list[Row]]:
        """Neighbouring rows with equally many cells, of which there is at least one."""
        block: list[Row] = []
        for row in self.rows:
            if block and len(row) != len(block[0]):
                yield block
                block = []
            if row:
                block.append(row)
        if block:
            yield block

    def text(self, colored: bool = False) -> str:
        """The board as lines of text, with colours as ANSI escape codes where `colored`."""
        draw = _tile_lines if self.tiles else _table_lines
        lines = [line for block in self.blocks() for line in draw(block, colored)]
        return "\n".join(
            [*wrapped(self.title, TEXT_WIDTH), *lines, *wrapped(self.caption, TEXT_WIDTH)]
        ).strip("\n")

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        blocks = "".join(_html_block(block, self.tiles) for block in self.blocks())
        title = f"<div style='font-weight:600'>{html.escape(self.title)}</div>" if self.title else ""
        caption = f"<div style='opacity:.7'>{html.escape(self.caption)}</div>" if self.caption else ""
        return f"<div style='max-width:36em;text-align:left'>{title}{blocks}{caption}</div>"


def _rows(given: Any) -> tuple[Row, ...]:
    if isinstance(given, (str, Cell)) or not isinstance(given, Iterable):
        raise DefinitionError(f"a Board's rows are rows of cells, got {given!r}; write [[...], [...]].")
    rows = []
    for row in given:
        if isinstance(row, (str, Cell)) or not isinstance(row, Iterable):
            raise DefinitionError(f"a row of a Board is a sequence of cells, got {row!r}; write [{row!r}].")
        rows.append(tuple(cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row))
    return tuple(rows)


def shared(natural: Sequence[int], room: int) -> list[int]:
    """How wide each column is: as wide as it likes, the widest cut to one size where all do not fit."""
    given = [0] * len(natural)
    for rank, index in enumerate(sorted(range(len(natural)), key=natural.__getitem__)):
        given[index] = max(1, min(natural[index], room // (len(natural) - rank)))
        room -= given[index]
    return given


# --- as text ---


def _tile_lines(block: Sequence[Row], colored: bool) -> Iterator[str]:
    room = 2 + max(width(cell.text or "·") for row in block for cell in row)
    for row in block:
        yield " ".join(_painted(_centred(cell.text or "·", room), cell, colored) for cell in row)


def _table_lines(block: Sequence[Row], colored: bool) -> Iterator[str]:
    natural = [max(_natural(cell) for cell in column) for column in zip(*block, strict=True)]
    rooms = shared(natural, TEXT_WIDTH - _GAP * (len(natural) - 1))
    for row in block:
        texts = [
            list(wrapped(cell.text, room - 2 * _filled(cell))) for cell, room in zip(row, rooms, strict=True)
        ]
        for index in range(max(map(len, texts))):
            parts = []
            for cell, text, room in zip(row, texts, rooms, strict=True):
                part = text[index] if index < len(text) else ""
                even = _centred(part, room) if _filled(cell) else part + " " * (room - width(part))
                parts.append(_painted(even, cell, colored))
            yield (" " * _GAP).join(parts).rstrip(" ")


def _filled(cell: Cell) -> bool:
    return cell.background is not None


def _natural(cell: Cell) -> int:
    return max(map(width, cell.text.split("\n"))) + 2 * _filled(cell)


def _centred(text: str, room: int) -> str:
    left = (room - width(text)) // 2
    return " " * left + text + " " * (room - width(text) - left)


def _painted(text: str, cell: Cell, colored: bool) -> str:
    codes = []
    if cell.bold:
        codes.append("1")
    for kind, color in (("38", cell.color), ("48", cell.background)):
        if color is not None:
            codes.append(";".join((kind, "2", *map(str, rgb(color)))))
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and colored else text


# --- as HTML ---


def _html_block(block: Sequence[Row], tiles: bool) -> str:
    rows = "".join("<tr>" + "".join(_html_cell(cell, tiles) for cell in row) + "</tr>" for row in block)
    table = "border-collapse:separate;border-spacing:3px;margin:2px 0"
    return f"<table style='{table}'>{rows}</table>"


def _html_cell(cell: Cell, tiles: bool) -> str:
    style = [f"background:{cell.background or 'transparent'}", f"color:{cell.color or 'inherit'}"]
    style.append("text-align:center" if tiles or cell.background else "text-align:left")
    if tiles:
        edge = cell.background or "rgba(127,127,127,.45)"
        style.append(f"border:2px solid {edge};width:2em;height:2em;padding:0 .3em;font-size:115%")
    else:
        style.append("border:0;padding:.2em .6em;vertical-align:top;border-radius:4px;white-space:pre-wrap")
    if cell.bold or tiles:
        style.append("font-weight:700")
    return f"<td style='{';'.join(style)}'>{html.escape(cell.text)}</td>"
