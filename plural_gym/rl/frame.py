"""A picture of a Scene: the Apps' boards on the left, the last lines of the transcript beside them.

GymEnv draws one when `render` is asked for "rgb_array". Every picture has the same size.
"""

import re
from typing import Any, NamedTuple

from plural_gym.plain_text import printable, wrapped
from plural_gym.rl.board_picture import draw_board
from plural_gym.rl.canvas import BAD, CALL, GOOD, QUIET, TEXT, Box, Canvas, fitted, measure, mono, sans
from plural_gym.rl.rendering import Moment, Scene, signed

WIDTH, HEIGHT = 960, 540
"""Of a picture, in pixels; both even, as films want it."""
MOMENTS = 12
"""More actions than a picture has room for."""
_EDGE = 32
_HEAD, _TOP = 54, 76
"""Where the line below the title is, and where everything else begins."""
_SIDE = 372
"""How wide the boards are."""
_TITLE, _ASIDE = 20, 16
_SIZE, _LEADING = 15, 21
"""Of the transcript: its letters, and from line to line."""
_HARD_BREAK = re.compile(r"(?<=\S{1}[^\n]{69})\n[ ]{0,4}(?![-*\d\s])")
"""Where an author broke a line of prose to keep it short."""
_READ = 8192
"""Characters of one text that are looked at; there is room for far fewer."""
_MOST = 7
"""Lines of what was read that any but the newest action gets."""


def draw(scene: Scene) -> Any:
    """The picture as a uint8 array (HEIGHT, WIDTH, 3), which is the caller's own."""
    canvas = Canvas(WIDTH, HEIGHT)
    _head(canvas, scene)
    left, bottom = _EDGE, HEIGHT - _EDGE
    if scene.boards:
        each = (bottom - _TOP + _EDGE) / len(scene.boards)
        for index, board in enumerate(scene.boards.values()):
            top = _TOP + index * each
            draw_board(canvas, board, Box(left, top, left + _SIDE, top + each - _EDGE))
        left += _SIDE + _EDGE
    _transcript(canvas, scene, Box(left, _TOP, WIDTH - _EDGE, bottom))
    return canvas.pixels()


def _head(canvas: Canvas, scene: Scene) -> None:
    """Title, turn, how it ended, and the rewards so far."""
    right, middle = float(WIDTH - _EDGE), _HEAD / 2

    def aside(text: str, size: int, color: str, bold: bool = False) -> float:
        canvas.write((right, middle), text, sans(text, size), color, "rm", bold)
        return right - measure(text, size) - 24

    if scene.reward is not None:
        right = aside(signed(scene.reward), _TITLE, _tone(scene.reward), bold=True) + 16
        right = aside("reward", _ASIDE, QUIET)
    right = aside(f"turn {scene.turn} of {scene.turns}", _ASIDE, QUIET)
    if scene.stop_reason is not None:
        right = aside(scene.stop_reason.replace("_", " "), _ASIDE, TEXT)
    title = fitted(printable(scene.title), right - _EDGE, lambda text: measure(text, _TITLE))
    canvas.write((_EDGE, middle), title, sans(title, _TITLE), TEXT, "lm", bold=True)
    canvas.rule(_HEAD)


def _tone(reward: float) -> str:
    return BAD if reward < 0 else GOOD if reward else QUIET


class _Line(NamedTuple):
    text: str
    color: str
    aside: str = ""
    """What stands at the right edge."""
    aside_color: str = QUIET


def _transcript(canvas: Canvas, scene: Scene, box: Box) -> None:
    """The last moments that fit as a whole; of the newest as much as fits."""
    font = mono(_SIZE)
    columns, room = int(box.width / font.getlength("m")), int(box.height / _LEADING)
    lines: list[_Line] = []
    for moment in reversed(scene.moments):
        newest = not lines
        found = _lines_of(moment, columns, room - 1 if newest else _MOST, newest)
        if newest:
            lines = found
        elif len(found) + 1 + len(lines) <= room:
            lines = [*found, _Line("", QUIET), *lines]
        else:
            break
    for index, line in enumerate(lines):
        y = box.top + index * _LEADING
        canvas.write((box.left, y), line.text, font, line.color)
        if line.aside:
            canvas.write((box.right, y), line.aside, font, line.aside_color, "ra")


def _lines_of(moment: Moment, columns: int, most: int, newest: bool) -> list[_Line]:
    """One moment: the call with its reward at the right, then at most so many lines of what was read."""
    lines = []
    if moment.action:
        aside, color = "", QUIET
        if moment.faults():
            aside, color = "reward failed", BAD
        elif moment.reward is not None:
            aside, color = signed(moment.reward), _tone(moment.reward)
        call = fitted(f"› {moment.action}", columns - len(aside) - 1)
        lines.append(_Line(call, CALL, aside, color))
    color = BAD if moment.wrong else TEXT if newest and moment.action else QUIET
    text = moment.text[:_READ] if moment.action else _HARD_BREAK.sub(" ", moment.text[:_READ])
    said = list(wrapped(printable(text), columns)) if text else []
    if len(said) > most:
        rest = f"{len(said) - most + 1} more lines" if len(moment.text) <= _READ else "and more"
        said = [*said[: most - 1], f"… {rest}"]
    return lines + [_Line(line, color) for line in said]
