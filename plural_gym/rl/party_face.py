"""PartyFace: what the AEC and the parallel form of a party share: options, spaces, rendering, pickling."""

from collections.abc import Sequence
from typing import Any, Literal

from gymnasium import spaces

from plural_gym.environment import Environment
from plural_gym.rl.game import PartyGame
from plural_gym.rl.party_rendering import PartyView
from plural_gym.rl.plans import Grader
from plural_gym.task import Task


class PartyFace:
    """A party's live episodes, one at a time.

    Observation of a seat: `{"text": str, "turn": int32 array (1,)}`, its own view alone. Action: in every
    form that `GymEnv.step` takes; wrong input is a rejected move, after which the same seat moves again. The
    infos hold `action_mask` over the actions, 0 where it is not the seat's turn.

    Args:
        environment: a world with a party.
        tasks: what `reset` draws from by seed; none: an unnamed Task without instructions.
        task: name of the one Task to play, out of `tasks`.
        split: draw only from this split of `tasks`.
        verifiers: graders in place of the Task's own; Verifiers or plain functions of a Step.
        score_as_reward: add each seat's score to its last reward.
        on_fault: "raise" AppFault when an App's code fails, or "truncate" the episode.
        max_chars: longest observation text; longer ones are cut, with a mark.
        render_mode: what `render` gives: "ansi", "human", "rgb_array" (needs Pillow), or None.
    """

    metadata: dict[str, Any]

    def __init__(
        self,
        environment: Environment,
        *,
        tasks: Sequence[Task] | None = None,
        task: str | None = None,
        split: str | None = None,
        verifiers: Sequence[Grader] | None = None,
        score_as_reward: bool = False,
        on_fault: Literal["raise", "truncate"] = "raise",
        max_chars: int = 4096,
        render_mode: str | None = None,
    ) -> None:
        options: dict[str, Any] = {
            "tasks": tasks,
            "task": task,
            "split": split,
            "verifiers": verifiers,
            "score_as_reward": score_as_reward,
            "on_fault": on_fault,
            "max_chars": max_chars,
        }
        self._arguments = {"environment": environment, "render_mode": render_mode, **options}
        self.environment = environment
        self.game = PartyGame(environment, **options)
        self.render_mode = render_mode
        self._view = PartyView(self.game, render_mode)
        version = environment.version.split(".")[0]
        self.metadata = {**self.metadata, "name": f"{environment.name.replace('-', '_')}_v{version}"}
        self.possible_agents = list(self.game.seats)
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """What a seat sees; the same object every time."""
        return self.game.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """What a seat can do; the same object every time."""
        return self.game.action_spaces[agent]

    def render(self) -> Any:
        """The transcript in mode "ansi", a picture in "rgb_array"; None in "human", which prints."""
        return self._view.render()

    def close(self) -> None:
        """Let go of the Apps. Safe to call twice."""
        self.game.close()

    def __getstate__(self) -> dict[str, Any]:
        return self._arguments

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
