"""Pictures of an episode: of one size whatever happens, and what Gymnasium's wrappers do with them."""

import os
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import AddRenderObservation, HumanRendering, RecordVideo

from plural_gym import App, Board, Cell, Environment, State, action
from plural_gym.rl.frame import HEIGHT, WIDTH

SIZE = (HEIGHT, WIDTH, 3)
WORDLE = "plural_gym:plural/Wordle-v0"
GREEN, YELLOW, ABSENT = (0x53, 0x8D, 0x4E), (0xB5, 0x9F, 0x3B), (0x3A, 0x3A, 0x3C)
AWKWARD = [
    "",
    "日本語 한국어 עברית Ελληνικά кириллица é",
    "🎉👩‍👩‍👧 \u0301 \u202e ‮",
    "\x1b[2J \x00 \ud83d \t tab",
    "word " * 3000,
    "x" * 20_000,
    "\n" * 500,
    " " * 400,
]


class Talk(State):
    said: str = ""


class Talker(App):
    """Says again what it is told, on its board too."""

    state: Talk
    tiles = False

    @action
    def say(self, text: str) -> str:
        """Say something."""
        self.state.said = text
        return text

    def board(self) -> Board | None:
        text = self.state.said
        rows = [[text, Cell(text, "blue")], [Cell(text, bold=True)], [text] * 7]
        return Board(rows, title=text, caption=text, tiles=self.tiles)


class Tiler(Talker):
    """The same as tiles."""

    tiles = True


class Mute(Talker):
    """Without a board."""

    def board(self) -> Board | None:
        return None


class Huge(Talker):
    """More than there is room for."""

    def board(self) -> Board | None:
        return Board([["cell", "another cell"]] * 200)


def begun(*apps: type[App]) -> Any:
    environment = Environment(name="talk", apps={f"app{at}": app for at, app in enumerate(apps)})
    env = environment.gym(render_mode="rgb_array")
    env.reset(seed=0)
    return env


def wordle(secret: str, *words: str) -> Any:
    env = gym.make(WORDLE, task=secret, render_mode="rgb_array")
    env.reset(seed=0)
    for word in words:
        env.step({"action": "guess", "arguments": {"word": word}})
    return env


def share(frame: Any, color: tuple[int, int, int]) -> int:
    """How many pixels have a colour."""
    return int((frame == np.array(color, np.uint8)).all(axis=2).sum())


@pytest.mark.parametrize("app", [Talker, Tiler, Mute, Huge])
def test_every_picture_has_the_same_size(app: type[App]) -> None:
    env = begun(app)
    for text in AWKWARD:
        env.step("say", text=text)
        frame = env.render()
        assert frame.shape == SIZE and frame.dtype == np.uint8 and frame.flags.writeable
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 3


def test_boards_of_several_apps_share_the_side() -> None:
    env = begun(Talker, Tiler, Huge)
    env.step("app0.say", text="hello")
    assert env.render().shape == SIZE


def test_a_picture_is_the_callers_own_and_comes_again_the_same() -> None:
    env = wordle("crane", "slate")
    first = env.render()
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(env.render(), kept)


def test_wordle_looks_like_wordle() -> None:
    frame = wordle("crane", "slate", "brace").render()
    counts = [share(frame, color) for color in (GREEN, YELLOW, ABSENT)]
    tile = 62 * 62
    # slate: 2 green, 3 absent; brace: 3 green, 1 yellow, 1 absent; letters and corners take their part.
    for count, tiles in zip(counts, (5, 1, 4), strict=True):
        assert 0.7 * tile * tiles < count < tile * tiles
    assert share(wordle("crane").render(), GREEN) == 0


def test_the_secret_is_in_no_picture_before_the_end() -> None:
    words = ["jolly", "bobby", "fluff", "moody", "vivid"]  # of letters that neither secret has
    one, other = (wordle(secret, *words) for secret in ("crane", "grape"))
    assert np.array_equal(one.render(), other.render())
    for env in (one, other):
        env.step({"action": "guess", "arguments": {"word": "silly"}})
    assert not np.array_equal(one.render(), other.render())
    assert "the word was CRANE" in one.unwrapped._repr_html_()


def test_make_gives_lists_of_pictures() -> None:
    env = gym.make(WORDLE, task="crane", render_mode="rgb_array_list")
    env.reset(seed=0)
    env.step({"action": "guess", "arguments": {"word": "slate"}})
    frames: Any = env.render()
    assert [frame.shape for frame in frames] == [SIZE] * 2 and not np.array_equal(*frames)


def test_a_film_is_written(tmp_path: Path, needs: Any) -> None:
    needs("moviepy")
    env = RecordVideo(
        wordle("crane"),
        str(tmp_path / "films"),
        name_prefix="game",
        episode_trigger=lambda _: True,
        disable_logger=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moviepy's own
        env.reset(seed=0)
        for word in ("slate", "brace", "crane"):
            env.step({"action": "guess", "arguments": {"word": word}})
        env.close()
        from moviepy import VideoFileClip

        with VideoFileClip(str(tmp_path / "films" / "game-episode-0.mp4")) as film:
            assert film.size == [WIDTH, HEIGHT] and film.fps == 2 and film.n_frames == 4
            last = film.get_frame(film.duration - 0.1)
    green = (np.abs(last.astype(int) - np.array(GREEN)).max(axis=2) < 24).sum()
    assert green > 9 * 62 * 62 * 0.7, "the last picture shows the word that was found"


def test_pictures_are_observations() -> None:
    only = AddRenderObservation(wordle("crane"), render_only=True)
    assert only.observation_space.shape == SIZE
    seen, _ = only.reset(seed=0)
    assert seen in only.observation_space
    both: Any = AddRenderObservation(wordle("crane"), render_only=False)
    seen, _ = both.reset(seed=0)
    assert seen["pixels"].shape == SIZE and "six guesses" in seen["text"] and seen in both.observation_space


def test_a_window_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame", reason="the window of HumanRendering is pygame's")
    monkeypatch.setitem(os.environ, "SDL_VIDEODRIVER", "dummy")
    env = HumanRendering(wordle("crane"))
    env.metadata = {**env.metadata, "render_fps": 1000}
    env.reset(seed=0)
    assert env.window is not None and env.window.get_size() == (WIDTH, HEIGHT)
    env.close()
