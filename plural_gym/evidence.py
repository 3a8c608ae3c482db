"""Evidence: a finished attempt as text that a judge can read and that cannot speak to the judge.

Whatever an Agent, an App or a file says is quoted between fences that hold a random word, so that no text can
end its own quotation. Long parts are cut in their middle, with a mark.
"""

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from plural_gym.episode import Episode
from plural_gym.records.strict_json import legible

_READ_BYTES = 4 << 20
"""Of all artifacts together; what is beyond is told by its name alone."""
_TEMPLATE_MARKS = re.compile(
    r"<(?=[|｜]|/?s>|(?:start|end)_of_turn>|[be]os>|</?SYS>>)|\[(?=/?INST\])", re.IGNORECASE
)
"""How the marks begin by which chat templates tell system, user and model apart. A tokenizer may take them
for such wherever they stand."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a judge is shown."""

    name: str
    """What it is, in a few words."""
    text: str
    left_out: int = 0
    """Characters that were cut from its middle."""


def evidence_of(episode: Episode, artifacts: Path | None = None) -> list[Part]:
    """Everything about an attempt that a judge is shown, uncut and unquoted.

    Args:
        episode: the attempt.
        artifacts: the folder of its files; None: only their names are shown.
    """
    parts = [Part("what the Agent was told", episode.task.instructions)]
    if episode.task.info:
        parts.append(Part("facts about the Task, which the Agent was not told", _json(episode.task.info)))
    if episode.expected is not None:
        parts.append(Part("the reference answer, which the Agent was not told", _text(episode.expected)))
    # One line a step: a line break inside a value is escaped, so that no value can pretend to be a step.
    steps = "\n".join(_json(_step(record)) for record in episode.trajectory)
    parts.append(Part("every action the Agent took, and what came back, one a line", steps))
    for name, app in episode.apps.items():
        parts.append(Part(f"the State of the App {_json(name)} at the end", _json(app.final)))
    parts.append(Part("the Agent's final answer", _text(episode.answer)))
    ended = {"stop_reason": episode.stop_reason, "actions": len(episode.trajectory)}
    if episode.seat is not None:
        ended["seat"] = episode.seat
    parts.append(Part("how the attempt ended", _json(ended)))
    return [*parts, *_files(episode.artifacts, artifacts)]


def fit(parts: Sequence[Part], max_chars: int) -> list[Part]:
    """The parts cut so that together they have about `max_chars` characters.

    Short parts stay whole: each may have as much as the others, and what one does not need, the others get.
    A long part keeps its beginning and its end.
    """
    left, share = max_chars, max_chars
    for place, length in enumerate(sorted(len(part.text) for part in parts)):
        share = left // (len(parts) - place)
        if length > share:
            break
        left -= length
    return [replace(part, left_out=max(len(part.text) - share, 0)) for part in parts]


def new_fence(parts: Iterable[Part]) -> str:
    """A random word that stands in none of the parts."""
    texts = [part.text for part in parts]
    while True:
        fence = secrets.token_hex(12)
        if not any(fence in text for text in texts):
            return fence


def quoted(parts: Sequence[Part], fence: str) -> str:
    """The parts between fences, as they stand in the judge's prompt."""
    return "\n\n".join(
        f"<<<begin {fence}>>> {part.name}\n{_shown(part, fence)}\n<<<end {fence}>>>" for part in parts
    )


def _shown(part: Part, fence: str) -> str:
    text = part.text
    if part.left_out:
        kept = len(text) - part.left_out
        head = kept - kept // 2
        mark = f"\n[{fence}: {part.left_out:,} characters were left out here]\n"
        text = text[:head] + mark + text[len(text) - kept // 2 :]
    return _TEMPLATE_MARKS.sub(lambda found: f"{found[0]} ", legible(text))


def _step(record: dict[str, Any]) -> dict[str, Any]:
    keys = ["turn", "seat", "app", "action", "arguments", "error" if record.get("error") else "observation"]
    return {key: record[key] for key in keys if record.get(key) is not None}


def _files(rows: Iterable[Mapping[str, Any]], folder: Path | None) -> Iterator[Part]:
    """What the Agent's files hold, as far as they are text. Their names are its words, too: quoted."""
    left = _READ_BYTES
    for row in rows:
        said = f"{_json(row['path'])} ({row.get('size')} bytes, {row.get('media_type')})"
        data, why = (b"", "not read") if folder is None or left <= 0 else _read(folder, row["path"], left)
        left -= len(data)
        text = data.decode("utf-8", "replace")
        # Of bytes that are no text much is unreadable; of a text that was cut, one letter may be.
        if "\0" in text or text.count("\ufffd") > 1 + len(text) // 50:
            text, why = "", "no text in UTF-8"
        yield Part("a file that the Agent left", f"{said}\n({why})" if why else f"{said}\n\n{text}")


def _read(folder: Path, name: str, most: int) -> tuple[bytes, str]:
    """What a file begins with, and why it is not shown; "" where it is."""
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return b"", "not read: it lies elsewhere"
        with path.open("rb") as file:
            return file.read(most), ""
    except OSError as error:
        return b"", f"cannot be read: {error.strerror}"


def _text(value: Any) -> str:
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except ValueError:  # half a surrogate pair
        return json.dumps(value, ensure_ascii=True, default=str)
