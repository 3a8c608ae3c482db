"""What a person who watches an episode is shown: the transcript as the Agent lived it, and the Apps' boards.

A `Scene` is read from a Session only when somebody asks for it, so that stepping pays nothing. It holds what
the Agent sees and did, the rewards, and what the Apps' authors put on their boards; never State. This file
says a Scene in text and HTML, `frame.py` draws it.
"""

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plural_gym import notebook
from plural_gym.board import Board, Cell
from plural_gym.errors import Fault, UsageError, suggest
from plural_gym.host.host import AppHost, Outcome
from plural_gym.host.session import Past, Session, outcome_of
from plural_gym.plain_text import called, printable
from plural_gym.records import strict_json

RENDER_MODES = ["ansi", "human", *(["rgb_array"] if importlib.util.find_spec("PIL") else [])]
"""What GymEnv can show here: pictures need Pillow."""
RENDER_FPS = 2
"""Frames a second in a film: slow enough to read along."""


def check_mode(mode: str | None) -> None:
    """Raise UsageError where a render mode is unknown, or needs what is not installed."""
    if mode is None or mode in RENDER_MODES:
        return
    if "rgb_array" not in RENDER_MODES and str(mode).removesuffix("_list") == "rgb_array":
        raise UsageError("render_mode 'rgb_array' draws with Pillow; pip install plural-gym[render]")
    raise UsageError(f"render_mode {mode!r} is unknown; {suggest(str(mode), RENDER_MODES)}")


@dataclass(frozen=True, slots=True)
class Moment:
    """One action of the transcript, or the opening before the first."""

    action: str
    """As a call, such as `guess(word='crane')`; "" for the opening."""
    text: str
    """What the Agent read."""
    wrong: bool
    """Whether the input was rejected, or the action failed."""
    rewards: Mapping[str, tuple[float | None, Fault | None]]
    """Each rewarding Verifier's part: (value, None), (None, None) or (None, fault)."""

    @property
    def reward(self) -> float | None:
        """The sum of the parts; None where none is a value."""
        values = [value for value, _ in self.rewards.values() if value is not None]
        return sum(values) if values else None

    def faults(self) -> list[str]:
        """Which Verifiers' rewards failed, and how."""
        parts = self.rewards.items()
        return [f"no reward from {name}: {fault}" for name, (_, fault) in parts if fault is not None]


@dataclass(frozen=True, slots=True)
class Scene:
    """An episode as it stands."""

    title: str
    moments: tuple[Moment, ...]
    """In order; the opening is among them unless only the last ones were asked for."""
    boards: Mapping[str, Board]
    """By App."""
    turn: int
    turns: int
    """The limit."""
    reward: float | None
    """All rewards of the episode so far; None where no Verifier gives any."""
    stop_reason: str | None
    """Why the episode is over; None while it goes on."""

    @classmethod
    def of(cls, session: Session, title: str, last: int | None = None, extra: float = 0.0) -> "Scene":
        """What a Session on an AppHost has come to.

        Args:
            session: an episode that was opened.
            title: of the Environment.
            last: leave out all but the last so many actions.
            extra: what else counted as reward, such as the score at the end.
        """
        begun = session.turn > 0 or session.stop_reason != "error"  # else an App could not be set up
        past: Sequence[Outcome | Past] = session.past
        recent = past if last is None else past[-last:] if last else []
        moments = [_moment(one, session.hooks.rewarding) for one in recent]
        if len(recent) == len(past):
            opening = _opening(session) if begun else "the episode could not be set up"
            moments.insert(0, Moment("", opening, not begun, {}))
        total = sum(map(_total, past)) + extra if session.hooks.rewarding else extra or None
        host = session.host
        boards = host.boards() if begun and isinstance(host, AppHost) else {}
        return cls(
            title,
            tuple(moments),
            {name: _board(name, board, len(boards)) for name, board in boards.items()},
            session.turn,
            session.limits.turns,
            total,
            session.stop_reason,
        )


def _moment(one: Outcome | Past, names: Sequence[str]) -> Moment:
    outcome = outcome_of(one) if isinstance(one, tuple) else one
    wrong = outcome.error is not None or outcome.fault is not None
    text = _said(outcome.observation) if not wrong else outcome.error or "the action failed"
    parts = dict(zip(names, outcome.rewards, strict=False))
    action = called(outcome.action, outcome.arguments)
    return Moment(action if outcome.seat is None else f"{outcome.seat}: {action}", text, wrong, parts)


def _total(one: Outcome | Past) -> float:
    rewards: Any = one[6] if isinstance(one, tuple) else one.rewards
    return rewards if isinstance(rewards, float) else sum(value or 0.0 for value, _ in rewards)


def _opening(session: Session) -> str:
    said = [session.task.instructions.strip(), "" if session.opening is None else _said(session.opening)]
    return "\n\n".join(filter(None, said))


def _said(value: Any) -> str:
    return value if isinstance(value, str) else strict_json.text(value)


def _board(app: str, board: Board | Fault, count: int) -> Board:
    if isinstance(board, Fault):
        return Board([[Cell(str(board), color="red")]], title=f"{app}: no board")
    if count > 1 and not board.title:
        return Board(board.rows, title=app, caption=board.caption, tiles=board.tiles)
    return board


def signed(reward: float) -> str:
    """A reward for people to read: `+0.25`, `-1`, `0`."""
    return f"{reward:+.4g}" if reward else "0"


# --- as text ---


def ansi(scene: Scene) -> str:
    """The transcript, then the boards with colours as ANSI escape codes."""
    return "\n".join(_lines(scene, colored=True))


def say(scene: Scene) -> None:
    """Print the last action and the boards; in colour where a terminal shows them."""
    colored = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print("\n".join(_lines(replace(scene, moments=scene.moments[-1:]), colored)))


def _lines(scene: Scene, colored: bool) -> Iterator[str]:
    for moment in scene.moments:
        if moment.action:
            yield f"> {moment.action}"
        if moment.text:
            yield ("rejected: " if moment.wrong else "") + printable(moment.text)
        if moment.reward:
            yield f"reward {signed(moment.reward)}"
        yield from map(printable, moment.faults())
    if scene.stop_reason is not None:
        yield f"over: {scene.stop_reason}"
    for board in scene.boards.values():
        yield f"\n{board.text(colored)}\n"


# --- as HTML ---


def html(scene: Scene) -> str:
    """The latest step, its rewards Verifier by Verifier, and the boards."""
    latest = scene.moments[-1]
    parts = [board._repr_html_() for board in scene.boards.values()]
    if latest.action:
        parts.append(f"<div><code>{notebook.escaped(latest.action)}</code></div>")
    if latest.wrong:
        parts.append(notebook.span("rejected", notebook.BAD, bold=True))
    parts.append(notebook.pre(latest.text))
    if latest.rewards:
        parts.append(notebook.table(["Verifier", "reward"], map(_reward_row, latest.rewards.items())))
    return notebook.card(scene.title, *parts, aside=_standing(scene))


def _reward_row(part: tuple[str, tuple[float | None, Fault | None]]) -> tuple[str, str]:
    name, (value, fault) = part
    if fault is not None:
        return name, f"failed: {fault}"
    return name, "no signal" if value is None else signed(value)


def _standing(scene: Scene) -> str:
    """Turn, rewards so far, and whether it is over."""
    said = [notebook.span(f"turn {scene.turn} of {scene.turns}", notebook.QUIET)]
    if scene.reward is not None:
        color = notebook.BAD if scene.reward < 0 else notebook.GOOD
        said.append(notebook.span(f"{signed(scene.reward)} in all", color, bold=True))
    if scene.stop_reason is not None:
        said.append(notebook.span(scene.stop_reason.replace("_", " "), notebook.QUIET, bold=True))
    return " · ".join(said)
