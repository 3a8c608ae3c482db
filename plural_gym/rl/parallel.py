"""PartyParallelEnv: a party as a PettingZoo ParallelEnv; every seat whose turn it is acts in one step."""

from collections.abc import Mapping, Sequence
from typing import Any

from pettingzoo import ParallelEnv

from plural_gym.errors import UsageError, suggest
from plural_gym.rl.party_face import PartyFace
from plural_gym.rl.rendering import RENDER_FPS, RENDER_MODES


class PartyParallelEnv(PartyFace, ParallelEnv[str, dict[str, Any], Any]):  # type: ignore[misc]
    """Several Agents in one world, all who may act at a time.

    Made for simultaneous moves. Where the Apps name one seat at a time, only its action is taken and those of
    the others are ignored. What it takes and shows, `PartyFace` says.
    """

    metadata = {  # noqa: RUF012  PettingZoo's own form
        "name": "plural_party_v0",
        "render_modes": RENDER_MODES,
        "render_fps": RENDER_FPS,
    }

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode; see `PartyGame.reset`."""
        self.game.reset(seed, options)
        self.agents = [seat for seat in self.possible_agents if not self.game.closed[seat]]
        self._view.begin()
        return self._seen(self.agents)

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Take the actions of all seats whose turn it is, in the order of the seats.

        Raises:
            UsageError: no mapping from seat to action, an unknown seat, or no action for one that moves.
        """
        seats = self.agents
        if not isinstance(actions, Mapping):
            raise UsageError(f"actions is a mapping from seat to action, got {ascii(actions)[:80]}.")
        for seat in actions:
            if seat not in self.possible_agents:
                raise UsageError(f"there is no seat {seat!r}; {suggest(str(seat), self.possible_agents)}")
        for seat in self.game.movers:
            if seat not in actions:
                raise UsageError(f"it is the turn of seat {seat!r}, and actions has none for it.")
        earned = dict.fromkeys(seats, 0.0)
        for seat in self.game.movers:
            # A move of a seat before may have ended the turn, or the episode.
            if seat in self.game.movers:
                for earner, reward in self.game.act(seat, actions[seat]).items():
                    if earner in earned:
                        earned[earner] += reward
                self._view.acted(seat)
        closed = self.game.closed
        terminations = {seat: closed[seat] == "terminated" for seat in seats}
        truncations = {seat: closed[seat] == "truncated" for seat in seats}
        observations, infos = self._seen(seats)
        self.agents = [seat for seat in seats if not closed[seat]]
        return observations, earned, terminations, truncations, infos

    def _seen(self, seats: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        return (
            {seat: self.game.observe(seat) for seat in seats},
            {seat: self.game.info(seat) for seat in seats},
        )
