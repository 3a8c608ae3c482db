"""SeatEnv: one seat of a party as a `gymnasium.Env`; policies or Agents play the other seats."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from plural_gym import kinds
from plural_gym.agent import Agent
from plural_gym.errors import UsageError, suggest
from plural_gym.rl.rendering import RENDER_FPS, RENDER_MODES

Policy = Callable[[Any, Mapping[str, Any]], Any]
"""Takes what a seat observes and its info, returns an action of its space."""
Opponent = Policy | Agent | None
"""Who plays another seat; None: random legal actions."""


class SeatEnv(gym.Env[Any, Any]):
    """A party seen from one seat, for any single-agent learner.

    `step` takes the seat's action, lets the others play until it is this seat's turn again, and returns what
    the seat has earned meanwhile. All randomness, that of random opponents and of the choice among several
    included, comes from the seed.

    Self-play: give `opponents` a list that grows with frozen copies of the learner, or call `add_opponent`;
    each episode draws one of them for every other seat.

    Args:
        party: a PartyEnv, or a NumericParty around one; it is this environment's own from now on.
        seat: the seat that is played; None: drawn anew for each episode.
        opponents: by seat, or for all other seats; a list is drawn from. See `Opponent`.
        max_moves: most moves of the others between two of this seat's; an App that never comes back to it is
            cut off there.

    Raises:
        UsageError: no such seat, or something that cannot play.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # noqa: RUF012

    def __init__(
        self,
        party: Any,
        seat: str | None = None,
        opponents: Mapping[str, Any] | Sequence[Opponent] | Opponent = None,
        *,
        max_moves: int = 1000,
    ) -> None:
        seats = list(party.possible_agents)
        if seat is not None and seat not in seats:
            raise UsageError(f"there is no seat {seat!r}; {suggest(seat, seats)}")
        self.party = party
        self.render_mode = party.render_mode
        self.metadata = {**self.metadata, **party.metadata}
        self._seat = seat
        self.seat = seat or seats[0]
        """The seat that is played in this episode."""
        self._max_moves = max_moves
        self._opponents = _by_seat(opponents, seats)
        self._playing: dict[str, Policy] = {}
        self._over = True
        self.observation_space = party.observation_space(self.seat)
        self.action_space = party.action_space(self.seat)

    def add_opponent(self, opponent: Opponent, seat: str | None = None) -> None:
        """Let one more opponent be drawn from the next episode on; for one seat, or for all."""
        for name, known in self._opponents.items():
            if seat in (None, name):
                known.append(_checked(opponent))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, played by the others up to this seat's first turn.

        Where it never comes, `info["over"]` is 1 and any step ends the episode.
        """
        super().reset(seed=seed)
        self._leave()
        seats = self.party.possible_agents
        if self._seat is None:
            self.seat = str(seats[int(self.np_random.integers(len(seats)))])
        self.party.reset(seed=int(self.np_random.integers(2**31)), options=options)
        for name in seats:
            if name != self.seat:
                known = self._opponents[name] or [None]
                self._playing[name] = self._player(known[int(self.np_random.integers(len(known)))], name)
        self._over = False
        self._let_others_play()
        self.party._cumulative_rewards[self.seat] = 0.0
        return self.party.observe(self.seat), self._info()

    def _player(self, opponent: Opponent, seat: str) -> Policy:
        if isinstance(opponent, Agent):
            seated: Policy = kinds.load("plural.faces", "seated")(opponent, self.party.unwrapped.game, seat)
            return seated
        return opponent or self._random(seat)

    def _random(self, seat: str) -> Policy:
        space = self.party.action_space(seat)
        space.seed(int(self.np_random.integers(2**31)))

        def play(observation: Any, info: Mapping[str, Any]) -> Any:
            mask = _mask(observation, info)
            return space.sample() if mask is None or not mask.any() else space.sample(mask)

        return play

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act, and let the others play until this seat may act again or is out.

        Raises:
            gymnasium.error.ResetNeeded: the episode is over, or has not begun.
        """
        party, seat = self.party, self.seat
        if self._over:
            raise gym.error.ResetNeeded("the episode is over, or there is none yet; call reset() first.")
        if seat in party.agents and party.agent_selection == seat and not self._closed(seat):
            party.step(action)
            self._let_others_play()
        reward = float(party._cumulative_rewards.get(seat, 0.0))
        if seat in party._cumulative_rewards:
            party._cumulative_rewards[seat] = 0.0
        terminated, truncated = bool(party.terminations.get(seat)), bool(party.truncations.get(seat))
        if seat in party.agents and party.agent_selection != seat and not (terminated or truncated):
            truncated = True  # the others had all the moves there are
        self._over = terminated or truncated
        if self._over:
            self._leave()
        return party.observe(seat), reward, terminated, truncated, self._info()

    def _closed(self, seat: str) -> bool:
        return bool(self.party.terminations[seat] or self.party.truncations[seat])

    def _let_others_play(self) -> None:
        party = self.party
        for _ in range(self._max_moves):
            seat = party.agent_selection
            if seat == self.seat or not party.agents:
                return
            if self._closed(seat):
                if self.seat not in party.agents or self._closed(self.seat):
                    return
                party.step(None)
                continue
            action = self._playing[seat](party.observe(seat), party.infos[seat])
            if action is None:
                party.leave(seat)
            else:
                party.step(action)

    def _info(self) -> dict[str, Any]:
        # Values of its own: once a seat is out, the party's infos stay as they are.
        info = {key: copy.copy(value) for key, value in self.party.infos.get(self.seat, {}).items()}
        info["over"] = int(self.seat not in self.party.agents or self._closed(self.seat))
        return info

    def action_masks(self) -> Any:
        """Which actions may be taken now, as a bool array; the name that sb3-contrib looks for."""
        mask = _mask({}, self.party.infos.get(self.seat, {}))
        if mask is None:
            raise UsageError("this party has no masks; put NumericParty around it.")
        return mask.astype(bool) if mask.any() else np.ones(len(mask), dtype=bool)

    def render(self) -> Any:
        """What the party shows; see `PartyEnv.render`."""
        return self.party.render()

    def _leave(self) -> None:
        """Let the Agents in the other seats go."""
        for player in self._playing.values():
            getattr(player, "close", _nothing)()
        self._playing = {}

    def close(self) -> None:
        """Let go of the Apps and the other Agents. Safe to call twice."""
        self._leave()
        self.party.close()


def _nothing() -> None:
    """A plain policy has nothing to let go of."""


def _mask(observation: Any, info: Mapping[str, Any]) -> Any:
    """The action mask where either holds one."""
    found = observation.get("action_mask") if isinstance(observation, Mapping) else None
    return info.get("action_mask") if found is None else found


def _by_seat(opponents: Any, seats: Sequence[str]) -> dict[str, list[Opponent]]:
    if isinstance(opponents, Mapping):
        for seat in opponents:
            if seat not in seats:
                raise UsageError(f"opponents: there is no seat {seat!r}; {suggest(str(seat), seats)}")
        return {seat: _listed(opponents.get(seat)) for seat in seats}
    return {seat: _listed(opponents) for seat in seats}


def _listed(opponents: Any) -> list[Opponent]:
    items = opponents if isinstance(opponents, (list, tuple)) else [opponents]
    return [_checked(item) for item in items]


def _checked(opponent: Any) -> Opponent:
    if opponent is None or isinstance(opponent, Agent) or callable(opponent):
        checked: Opponent = opponent
        return checked
    raise UsageError(f"an opponent is a policy (observation, info), an Agent or None, got {opponent!r}.")
