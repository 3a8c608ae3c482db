"""What pictures are drawn with: a page, its colours, two typefaces and rounded boxes.

`frame.py` and `board_picture.py` draw on it. Pillow is imported here alone, and nobody imports this file who
does not draw.
"""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from plural_gym.plain_text import wrapped

PAGE, RAISED, LINE = "#0d1117", "#161b22", "#30363d"
TEXT, QUIET = "#e6edf3", "#8b949e"
CALL, GOOD, BAD = "#79c0ff", "#56d364", "#ff7b72"
_MONO = Path(__file__).parent / "fonts" / "DejaVuSansMono.ttf"

_LARGE = 20
"""From this size on letters are made bold by a stroke, which would close the small ones."""

Font = Any


class Box(NamedTuple):
    """A part of a page, in pixels from its left upper corner."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top


@functools.cache
def mono(size: int) -> Font:
    """The typeface of transcripts, the same on every machine."""
    return ImageFont.truetype(str(_MONO), size, layout_engine=ImageFont.Layout.BASIC)


@functools.cache
def _latin(size: int) -> Font:
    return ImageFont.load_default(size)


def sans(text: str, size: int) -> Font:
    """The typeface of boards and titles for this text: Pillow's own has few letters beyond ASCII."""
    return _latin(size) if text.isascii() else mono(size)


@functools.lru_cache(4096)
def measure(text: str, size: int) -> float:
    """How wide a line of a board or title is."""
    return float(sans(text, size).getlength(text))


def fitted(text: str, room: float, measure: Callable[[str], float] = len) -> str:
    """The beginning of a text that fits into one line, with a mark where it goes on."""
    first = next(wrapped(text, room, measure))
    return text if first == text else next(wrapped(text, room - measure("…"), measure)) + "…"


class Canvas:
    """One picture in the making."""

    def __init__(self, width: int, height: int) -> None:
        self._image = Image.new("RGB", (width, height), PAGE)
        self._pen = ImageDraw.Draw(self._image)

    def write(
        self,
        at: tuple[float, float],
        text: str,
        font: Font,
        color: str,
        anchor: str = "la",
        bold: bool = False,
    ) -> None:
        """Write one line; `anchor` is Pillow's: left, middle or right, then ascender, middle or descender."""
        mask, left, top = _line(text, font, anchor, bold)
        self._image.paste(color, (round(at[0] + left), round(at[1] + top)), mask)

    def rule(self, y: float) -> None:
        """Draw a thin line across the page."""
        self._pen.line([(0, y), (self._image.width, y)], fill=LINE)

    def fill(self, box: Box, color: str, radius: int = 5) -> None:
        """Fill a box with round corners."""
        width, height = round(box.width), round(box.height)
        if width > 0 and height > 0:
            self._image.paste(color, (round(box.left), round(box.top)), _rounded(width, height, radius))

    def frame(self, box: Box, color: str, line: int = 2) -> None:
        """Draw the edge of a box."""
        self._pen.rectangle((box.left, box.top, box.right - 1, box.bottom - 1), outline=color, width=line)

    def pixels(self) -> Any:
        """The picture as a uint8 array (height, width, 3), which is the caller's own."""
        return np.array(self._image)


@functools.lru_cache(1024)
def _line(text: str, font: Font, anchor: str, bold: bool) -> tuple[Image.Image, float, float]:
    """A line as a mask, and where its corner is from the anchor.

    Kept, since most lines of a picture come again in the next one.
    """
    stroke, twice = (font.size / 60, 0) if bold and font.size >= _LARGE else (0, int(bold))
    left, top, right, bottom = font.getbbox(text, anchor=anchor, stroke_width=stroke)
    left, top = math.floor(left), math.floor(top)
    mask = Image.new("L", (max(math.ceil(right) - left, 1) + twice, max(math.ceil(bottom) - top, 1)))
    pen = ImageDraw.Draw(mask)
    for shift in range(twice + 1):
        at = (shift - left, -top)
        pen.text(at, text, font=font, fill=255, anchor=anchor, stroke_width=stroke)
    return mask, left, top


@functools.lru_cache(256)
def _rounded(width: int, height: int, radius: int) -> Image.Image:
    """A mask with smooth corners."""
    mask = Image.new("L", (width * 4, height * 4))
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, width * 4 - 1, height * 4 - 1), radius * 4, fill=255)
    return mask.resize((width, height), Image.Resampling.LANCZOS)
