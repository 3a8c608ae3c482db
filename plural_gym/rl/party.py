"""PartyEnv: a party as a PettingZoo AEC environment, where the Apps say whose turn it is."""

from typing import Any

from pettingzoo import AECEnv

from plural_gym.rl.party_face import PartyFace
from plural_gym.rl.rendering import RENDER_FPS, RENDER_MODES


class PartyEnv(PartyFace, AECEnv[str, dict[str, Any], Any]):  # type: ignore[misc]
    """Several Agents in one world, one action at a time; what it takes and shows, `PartyFace` says."""

    metadata = {  # noqa: RUF012  PettingZoo's own form
        "name": "plural_party_v0",
        "render_modes": RENDER_MODES,
        "render_fps": RENDER_FPS,
        "is_parallelizable": False,
    }

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode; see `PartyGame.reset`."""
        self.game.reset(seed, options)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection = None
        self._close_seats()
        self.agent_selection = (self.game.movers or self.agents)[0]
        self._view.begin()

    def step(self, action: Any) -> None:
        """Take the action of `agent_selection`; None from a seat that plays no more."""
        seat = self.agent_selection
        if self.terminations[seat] or self.truncations[seat]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[seat] = 0.0
        self._earned(self.game.act(seat, action))
        self._view.acted(seat)

    def leave(self, seat: str) -> None:
        """A seat plays no more: its Agent has left. The Apps settle what that means, or the episode ends."""
        self._cumulative_rewards[seat] = 0.0
        self._earned(self.game.leave(seat))

    def _earned(self, earned: dict[str, float]) -> None:
        """Settle who earned what, who is out and who moves next."""
        self.rewards = {agent: earned[agent] for agent in self.agents}
        self._close_seats()
        if self.game.movers:
            self.agent_selection = self.game.movers[0]
        self._accumulate_rewards()
        self._deads_step_first()

    def _close_seats(self) -> None:
        closed = self.game.closed
        for seat in self.agents:
            self.terminations[seat] = closed[seat] == "terminated"
            self.truncations[seat] = closed[seat] == "truncated"
        self.infos = {seat: self.game.info(seat) for seat in self.agents}

    def observe(self, agent: str) -> dict[str, Any]:
        return self.game.observe(agent)
