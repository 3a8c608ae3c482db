"""The Verifier that grades with code: `check`, `reward` and `hindsight` functions of an author."""

from collections.abc import Callable
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from plural_gym.app import MAX_TIMEOUT_S
from plural_gym.identity import code_identity
from plural_gym.verifier import Hook, Verifier, total_reward
from plural_gym.word import Number


class DeterministicVerifier(Verifier):
    """Scores what happened by exact checks, and may reward single actions.

    Needs at least one of `check`, `reward` and `hindsight`. Functions are sync or async.
    """

    kind: ClassVar[str] = "deterministic"

    check: Callable[..., Any] | None = None
    """Function of an Episode that returns a VerifierOutput, or `total_reward`."""
    reward: Callable[..., Any] | None = None
    """Function of a Step that returns a finite number, or None for no signal."""
    hindsight: Callable[..., Any] | None = None
    """Function of a HindsightTrial that yields `trial.credit(event_id, value)`."""
    timeout_s: Number = Field(default=60.0, gt=0, le=MAX_TIMEOUT_S, allow_inf_nan=False)
    """For one call of check or hindsight, in a Job."""
    reward_timeout_s: Number = Field(default=5.0, gt=0, le=MAX_TIMEOUT_S, allow_inf_nan=False)
    """For one call of reward, in a Job."""

    @field_validator("check", "reward", "hindsight", mode="before")
    @classmethod
    def _is_a_function(cls, value: Any, info: Any) -> Any:
        if value is not None and not callable(value):
            raise ValueError(f"{info.field_name} {value!r} is no function; pass the function itself")
        return value

    @model_validator(mode="after")
    def _grades_something(self) -> "DeterministicVerifier":
        if self.check is None and self.reward is None and self.hindsight is None:
            raise ValueError(f"Verifier {self.name!r} needs at least one of check, reward and hindsight")
        if self.check is total_reward and self.reward is None:
            raise ValueError(
                f"Verifier {self.name!r}: total_reward needs a reward function; without one the score "
                "would always be 0"
            )
        return self

    @property
    def scores(self) -> bool:
        return self.check is not None

    def functions(self) -> dict[Hook, Callable[..., Any]]:
        found: dict[Hook, Callable[..., Any] | None] = {
            "check": self.check,
            "reward": self.reward,
            "hindsight": self.hindsight,
        }
        return {hook: function for hook, function in found.items() if function is not None}

    def timeouts_s(self) -> dict[Hook, float]:
        return {
            "check": self.timeout_s,
            "reward": self.reward_timeout_s,
            "hindsight": self.timeout_s,
        }

    def identity(self) -> dict[str, Any]:
        code: dict[str, Any] = {
            hook: "total_reward" if function is total_reward else code_identity(function, self.folder)
            for hook, function in self.functions().items()
        }
        return {"kind": self.kind, "weight": self.weight, **code}
