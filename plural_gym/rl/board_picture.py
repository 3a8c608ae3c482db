"""Draws a Board into a part of a picture: tiles as squares, anything else as a card with columns."""

from collections.abc import Sequence
from typing import NamedTuple

from plural_gym.board import Board, Cell, Row, shared
from plural_gym.plain_text import wrapped
from plural_gym.rl.canvas import LINE, QUIET, RAISED, TEXT, Box, Canvas, fitted, measure, sans

_TILE, _TILE_GAP = 62, 6
_CAPTION = 16
_READ = 2000
"""Characters of one cell that are looked at; a card has room for fewer."""
_SIZES = range(17, 8, -2)
"""Of the letters on a card, in pixels; the first with which all fits is taken."""


def draw_board(canvas: Canvas, board: Board, box: Box) -> None:
    """Draw a Board at the top of a box; what does not fit in the smallest letters is cut off."""
    if board.tiles:
        _tiles(canvas, board, box)
    else:
        _card(canvas, board, box)


# --- tiles ---


def _tiles(canvas: Canvas, board: Board, box: Box) -> None:
    top = box.top
    if board.title:
        top += _line(canvas, board.title, box, top, TEXT)
    below = 1.5 * _CAPTION if board.caption else 0
    across, down = max(map(len, board.rows), default=1) or 1, len(board.rows) or 1
    room = min(
        (box.width - _TILE_GAP * (across - 1)) / across,
        (box.bottom - below - top - _TILE_GAP * (down - 1)) / down,
    )
    side = max(4, min(_TILE, int(room)))
    for row in board.rows:
        left = box.left + (box.width - len(row) * (side + _TILE_GAP) + _TILE_GAP) / 2
        for cell in row:
            _tile(canvas, cell, Box(left, top, left + side, top + side))
            left += side + _TILE_GAP
        top += side + _TILE_GAP
    if board.caption:
        _line(canvas, board.caption, box, top + 4, QUIET)


def _tile(canvas: Canvas, cell: Cell, box: Box) -> None:
    if cell.background is None:
        canvas.frame(box, LINE)
    else:
        canvas.fill(box, cell.background, 3)
    size, text = int(box.height * 0.56), cell.text[:100]
    while size > 8 and measure(text, size) > box.width - 6:
        size -= 1
    middle = (box.left + box.width / 2, box.top + box.height / 2 + 1)
    text = fitted(text, box.width - 2, lambda text: measure(text, size))
    canvas.write(middle, text, sans(text, size), cell.color or TEXT, "mm", bold=True)


def _line(canvas: Canvas, text: str, box: Box, top: float, color: str) -> float:
    """Write a title or caption in the middle; returns how high it is."""
    text = fitted(text, box.width, lambda text: measure(text, _CAPTION))
    canvas.write((box.left + box.width / 2, top), text, sans(text, _CAPTION), color, "ma")
    return 1.6 * _CAPTION


# --- cards ---


class _Piece(NamedTuple):
    """One cell of a card: where it is, in pixels from the card's corner, and its lines."""

    box: Box
    cell: Cell
    lines: list[str]


def _card(canvas: Canvas, board: Board, box: Box) -> None:
    for size in _SIZES:
        pieces, height = _laid_out(board, box.width, size)
        if height <= box.height:
            break
    height = min(height, box.height)
    canvas.fill(Box(box.left - 1, box.top - 1, box.right + 1, box.top + height + 1), LINE, 9)
    canvas.fill(Box(box.left, box.top, box.right, box.top + height), RAISED, 8)
    for place, cell, lines in pieces:
        if place.bottom > height:
            break
        left, top = box.left + place.left, box.top + place.top
        if cell.background is not None:
            canvas.fill(Box(left, top, box.left + place.right, box.top + place.bottom), cell.background)
        centre = cell.background is not None
        x = left + place.width / 2 if centre else left
        for index, line in enumerate(lines):
            y = top + size / 3 + index * 1.35 * size
            canvas.write(
                (x, y), line, sans(line, size), cell.color or TEXT, "ma" if centre else "la", cell.bold
            )


def _laid_out(board: Board, width: float, size: int) -> tuple[list[_Piece], float]:
    """Every cell's place on a card of this width and letters of this size, and how high that is."""
    inset, gap = 1.1 * size, 0.6 * size
    top, pieces = inset * 0.7, list[_Piece]()
    blocks: list[Sequence[Row]] = list(board.blocks())
    if board.title:
        blocks.insert(0, [(Cell(board.title, bold=True),)])
    if board.caption:
        blocks.append([(Cell(board.caption, color="grey"),)])
    for block in blocks:
        natural = [max(_natural(cell, size) for cell in column) for column in zip(*block, strict=True)]
        room = int(width - 2 * inset - gap * (len(natural) - 1))
        widths = shared(natural, room)
        if all(cell.background is not None for row in block for cell in row):
            widths = [one + (room - sum(widths)) // len(widths) for one in widths]  # up to the edge
        for row in block:
            left, high = inset, 0.0
            cells = []
            for cell, wide in zip(row, widths, strict=True):
                lines = list(wrapped(cell.text[:_READ], wide + 1, lambda text: measure(text, size)))
                cells.append((left, wide, cell, lines))
                high = max(high, (len(lines) - 1) * 1.35 * size + 1.75 * size)
                left += wide + gap
            pieces += [
                _Piece(Box(left, top, left + wide, top + high), cell, lines)
                for left, wide, cell, lines in cells
            ]
            top += high + 0.15 * size
        top += 0.3 * size
    return pieces, top + inset * 0.4


def _natural(cell: Cell, size: int) -> int:
    widest = max(measure(line, size) for line in cell.text[:_READ].split("\n"))
    return int(widest + (size if cell.background is not None else 1)) + 1
