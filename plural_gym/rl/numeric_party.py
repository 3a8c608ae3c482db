"""NumericParty: a party in numbers, for learners that take vectors, Discrete actions and masks."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

from plural_gym.errors import UsageError
from plural_gym.rl.catalogue import all_calls, checked_calls
from plural_gym.rl.party import PartyEnv
from plural_gym.rl.text_features import hashed

Features = Callable[[Mapping[str, Any]], Any]
"""Takes a seat's observation, `{"text": ..., "turn": ...}`, returns a vector of fixed length."""


class HashedText:
    """The words of what a seat sees, hashed with a sign into `size` numbers between -1 and 1."""

    def __init__(self, size: int = 256, ngrams: tuple[int, ...] = (1, 2), places: int = 16) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise UsageError(f"size is a whole number from 1, got {size!r}.")
        self.size = size
        self._ngrams, self._places = tuple(ngrams), places

    def __call__(self, observation: Mapping[str, Any]) -> Any:
        numbers, signs = hashed(observation["text"], self._ngrams, self._places)
        vector = np.zeros(self.size, np.float32)
        np.add.at(vector, numbers % self.size, signs)
        return np.clip(vector, -1.0, 1.0)


class NumericParty(AECEnv[str, dict[str, Any], Any]):  # type: ignore[misc]
    """A PartyEnv with `{"observation": float32 vector, "action_mask": int8 vector}` and Discrete actions.

    For RLlib's and TorchRL's PettingZoo wrappers, Tianshou, SuperSuit, and Stable-Baselines3 through
    `SeatEnv`; all of them look for the mask beside `observation`. Out of its turn a seat's mask is all 0.

    Args:
        env: a PartyEnv; it is this environment's own from now on.
        catalog: the calls that the numbers stand for, as `DiscreteActions` takes them; None: every call there
            is, where each argument has finitely many values.
        features: makes the vector of a seat's observation; None: `HashedText()`.
        size: how long the vectors of own `features` are.
        limit: most calls that are listed without a catalogue.

    Raises:
        UsageError: no PartyEnv, or a catalogue that cannot be listed or does not fit.
    """

    def __init__(
        self,
        env: PartyEnv,
        catalog: Iterable[Any] | None = None,
        *,
        features: Features | None = None,
        size: int | None = None,
        limit: int = 10_000,
    ) -> None:
        super().__init__()
        if not isinstance(env, PartyEnv):
            raise UsageError(f"NumericParty wraps a PartyEnv, such as environment.aec(), got {env!r}.")
        if features is not None and size is None:
            raise UsageError("say how long the vectors of features= are: size=.")
        self.env = env
        self.metadata = env.metadata
        self.render_mode = env.render_mode
        self._features = features or HashedText(size or 256)
        length = size or 256
        first = env.possible_agents[0]
        if catalog is None:
            self._calls = all_calls(env.game, env.action_space(first), limit, "NumericParty")
        else:
            self._calls = checked_calls(env.game, list(catalog))
        self._asked = tuple((call["action"], call["arguments"]) for call in self._calls)
        count, bound = len(self._calls), np.inf if features else 1.0
        self._observation_spaces = {
            seat: spaces.Dict(
                {
                    "observation": spaces.Box(-bound, bound, (length,)),
                    "action_mask": spaces.Box(0, 1, (count,), np.int8),
                }
            )
            for seat in env.possible_agents
        }
        self._action_spaces = {seat: spaces.Discrete(count) for seat in env.possible_agents}
        self.possible_agents = env.possible_agents

    @property
    def unwrapped(self) -> Any:
        """The PartyEnv."""
        return self.env

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._action_spaces[agent]

    def call(self, index: Any) -> dict[str, Any]:
        """The call that a number stands for; a copy."""
        place = int(index)
        if not 0 <= place < len(self._calls):
            raise UsageError(f"the catalogue has calls 0 to {len(self._calls) - 1}, and no {index!r}.")
        call = self._calls[place]
        return {"action": call["action"], "arguments": dict(call["arguments"])}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode; see `PartyEnv.reset`."""
        self.env.reset(seed, options)
        self._follow()

    def step(self, action: Any) -> None:
        """Take the call of this number; None from a seat that plays no more."""
        self.env.step(None if action is None else self.call(action))
        self._follow()

    def leave(self, seat: str) -> None:
        """See `PartyEnv.leave`."""
        self.env.leave(seat)
        self._follow()

    def _follow(self) -> None:
        """Show what the PartyEnv shows, its masks over the catalogue."""
        env = self.env
        self.agents, self.agent_selection = env.agents, env.agent_selection
        self.rewards, self._cumulative_rewards = env.rewards, env._cumulative_rewards
        self.terminations, self.truncations = env.terminations, env.truncations
        self._masks = {seat: self._mask(seat) for seat in env.agents}
        self.infos = {
            seat: {**info, "action_mask": self._masks[seat].copy()}
            for seat, info in env.infos.items()
            if seat in self._masks
        }

    def _mask(self, seat: str) -> Any:
        return np.array(self.env.game.is_legal(seat, self._asked), np.int8)

    def observe(self, agent: str) -> dict[str, Any]:
        """A seat's vector and mask."""
        mask = self._masks.get(agent)
        vector = np.asarray(self._features(self.env.observe(agent)), np.float32)
        shown = np.zeros(len(self._calls), np.int8) if mask is None else mask.copy()
        return {"observation": vector, "action_mask": shown}

    def render(self) -> Any:
        """See `PartyEnv.render`."""
        return self.env.render()

    def close(self) -> None:
        """Let go of the Apps. Safe to call twice."""
        self.env.close()
