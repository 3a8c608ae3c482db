"""CallStyle: `env.step("categorize", category="billing")` through any stack of wrappers."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from plural_gym.errors import UsageError
from plural_gym.rl.wrappers.needs import one_env


class CallStyle(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Takes both call styles, the specification's and Gymnasium's; the outermost wrapper.

    Gymnasium's wrappers pass on one action and no keywords. This one writes `step(name, **arguments)` as the
    action `{"action": name, "arguments": {...}}`, and `reset(verifiers=[...])` as an option, before they see
    them; all other calls pass as they are. `plural_gym.make` puts it around what `gymnasium.make` gives.

    Args:
        env: a GymEnv, or wrappers around one.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        one_env(env, "CallStyle")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        verifiers: Sequence[Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; see `GymEnv.reset`."""
        if verifiers is not None:
            options = {**(options or {}), "verifiers": verifiers}
        return self.env.reset(seed=seed, options=options)

    def step(  # type: ignore[override]  # an argument may be called `action` too
        self, action: Any, /, **arguments: Any
    ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one action: a name with keywords, or anything that the environment inside takes."""
        if arguments:
            if type(action) is not str:
                raise UsageError(f"keywords go with an action's name, got {action!r}.")
            action = {"action": action, "arguments": arguments}
        return self.env.step(action)

    def encode(self, name: str, /, **arguments: Any) -> Any:
        """The element of GymEnv's `action_space` for a call."""
        return self._world.encode(name, **arguments)

    def decode(self, element: Any) -> Any:
        """The call that an element of GymEnv's `action_space` stands for."""
        return self._world.decode(element)

    def tools(self) -> Any:
        """The actions as OpenAI function tools."""
        return self._world.tools()

    @property
    def episode(self) -> Any:
        """The record so far, as a check would see it."""
        return self._world.episode

    def score(self) -> float | None:
        """The episode's score so far by the checks attached; None without one, or where one fails."""
        score: float | None = self._world.score()
        return score

    def action_masks(self) -> Any:
        """Which actions of `action_space` may be taken now: a bool array."""
        return self.env.get_wrapper_attr("action_masks")()

    def _repr_html_(self) -> Any:
        return self._world._repr_html_()

    @property
    def _world(self) -> Any:
        """The GymEnv inside."""
        return self.env.unwrapped
