"""How a party's episode looks to a person who watches: every seat's moves, and the Apps' boards.

For people, not for players: it shows what every seat was told.
"""

from typing import Any

from plural_gym.rl import rendering
from plural_gym.rl.game import PartyGame
from plural_gym.rl.rendering import Scene


class PartyView:
    """Shows a game in one render mode."""

    def __init__(self, game: PartyGame, mode: str | None) -> None:
        rendering.check_mode(mode)
        self._game = game
        self._mode = mode

    def _scene(self, last: int | None = None) -> Scene:
        return Scene.of(self._game.live, self._game.environment.title or self._game.environment.name, last)

    def begin(self) -> None:
        """Show the opening, in mode "human"."""
        if self._mode == "human":
            rendering.say(self._scene())

    def acted(self, seat: str) -> None:
        """Show the last action, in mode "human"."""
        if self._mode == "human":
            rendering.say(self._scene(1))

    def render(self) -> Any:
        """What `render` returns in this mode."""
        if self._mode == "ansi":
            return rendering.ansi(self._scene())
        if self._mode == "rgb_array":
            from plural_gym.rl import frame

            return frame.draw(self._scene(frame.MOMENTS))
        return None
