"""HTML for notebooks: what `_repr_html_` of words and records is made of.

Everything that is passed in as text is escaped. Styles stand inline and leave text and page colours to the
notebook, so that it can be read in a light and in a dark theme.
"""

import html
from collections.abc import Iterable, Sequence

from plural_gym.plain_text import printable

MAX_CHARS = 20_000
"""Of one text; a notebook keeps what it shows, and a longer one makes it slow."""
LINE = "rgba(127,127,127,.35)"
"""Thin lines, on any page."""
GOOD, BAD, QUIET = "#3f9142", "#d1493f", "#7f868f"
"""Colours of text that can be read on white and on black."""


def escaped(text: object) -> str:
    """One text, cut where it is very long."""
    shown = printable(str(text))
    if len(shown) > MAX_CHARS:
        shown = f"{shown[:MAX_CHARS]}… [{len(shown):,} characters in all]"
    return html.escape(shown)


def span(text: object, color: str, bold: bool = False) -> str:
    """A text in a colour."""
    return f"<span style='color:{color}{';font-weight:600' if bold else ''}'>{escaped(text)}</span>"


def pre(text: object) -> str:
    """A text with its lines and spaces as they are."""
    style = "white-space:pre-wrap;overflow-wrap:anywhere;margin:4px 0;font-family:monospace;font-size:92%"
    return f"<div style='{style};text-align:left'>{escaped(text)}</div>"


def fold(title: object, inside: str) -> str:
    """HTML that opens at a click."""
    return f"<details style='margin:4px 0'><summary>{escaped(title)}</summary>{inside}</details>"


def card(title: object, *parts: str, aside: str = "") -> str:
    """A frame with a title around parts that are HTML already, and `aside` on the title's right."""
    frame = f"border:1px solid {LINE};border-radius:6px;padding:8px 12px;margin:4px 0;max-width:60em"
    head = (
        f"<div style='display:flex;justify-content:space-between;gap:1em;border-bottom:1px solid {LINE};"
        f"padding-bottom:4px;margin-bottom:6px'><b>{escaped(title)}</b><span>{aside}</span></div>"
    )
    return f"<div style='{frame}'>{head}{''.join(parts)}</div>"


def table(
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: object = "",
    notes: Iterable[object] = (),
) -> str:
    """A table of texts, with notes below it. Numbers come as texts, in the form that is wanted."""
    cell = (
        f"text-align:left;padding:2px 10px 2px 0;border:0;border-bottom:1px solid {LINE};vertical-align:top"
    )

    def row(tag: str, cells: Sequence[object]) -> str:
        inside = (f"<{tag} style='{cell};white-space:pre-wrap'>{escaped(one)}</{tag}>" for one in cells)
        return f"<tr style='background:transparent'>{''.join(inside)}</tr>"

    above = f"<caption style='text-align:left'>{escaped(caption)}</caption>" if caption else ""
    style = "border-collapse:collapse;margin:4px 0"
    body = "".join(row("td", cells) for cells in rows)
    below = "".join(f"<div style='opacity:.7'>{escaped(note)}</div>" for note in notes)
    return f"<table style='{style}'>{above}{row('th', header)}{body}</table>{below}"
