"""The Verifier that grades with code: an author's `check`, `reward` and `hindsight`, or a program."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from plural_gym.app import MAX_TIMEOUT_S
from plural_gym.command import Command
from plural_gym.errors import Fault, GradingFault
from plural_gym.identity import code_identity, content_hash
from plural_gym.verifier import Grading, Hook, Verifier, VerifierOutput, total_reward
from plural_gym.word import Number


class DeterministicVerifier(Verifier):
    """Scores what happened by exact checks, and may reward single actions.

    Needs at least one of `check`, `reward` and `hindsight`. Functions are sync or async.
    """

    kind: ClassVar[str] = "deterministic"

    check: Callable[..., Any] | Command | None = None
    """Function of an Episode that returns a VerifierOutput, `total_reward`, or a Command."""
    reward: Callable[..., Any] | None = None
    """Function of a Step that returns a finite number, or None for no signal."""
    hindsight: Callable[..., Any] | None = None
    """Function of a HindsightTrial that yields `trial.credit(event_id, value)`."""
    timeout_s: Number = Field(default=60.0, gt=0, le=MAX_TIMEOUT_S, allow_inf_nan=False)
    """For one call of check or hindsight, in a Job; for a Command everywhere."""
    reward_timeout_s: Number = Field(default=5.0, gt=0, le=MAX_TIMEOUT_S, allow_inf_nan=False)
    """For one call of reward, in a Job."""

    @field_validator("check", "reward", "hindsight", mode="before")
    @classmethod
    def _is_code(cls, value: Any, info: Any) -> Any:
        if info.field_name == "check" and isinstance(value, Mapping):
            return Command(**value)
        if info.field_name == "check" and isinstance(value, Command):
            return value
        if value is not None and not callable(value):
            remedy = "pass the function itself"
            if info.field_name == "check" and isinstance(value, list | tuple):
                remedy = f"write Command({list(value)!r}) for a program"
            raise ValueError(f"{info.field_name} {value!r} is no function; {remedy}")
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

    @property
    def program(self) -> Command | None:
        """The check where it is a program, with its folder and time limit."""
        return self.check.of(self.folder, self.timeout_s) if isinstance(self.check, Command) else None

    def grade(self, grading: Grading) -> VerifierOutput | Fault | None:
        program = self.program
        if program is None:
            return grading.run_check()
        try:
            if content_hash("verifier", self.identity()) != self.content_hash:
                raise GradingFault("its files have changed since they were pinned; start anew to use them")
            return grading.run_command(program).output()
        except GradingFault as error:
            return Fault(f"verifier {self.name} check", GradingFault.__name__, str(error), str(program))

    def functions(self) -> dict[Hook, Callable[..., Any]]:
        found: dict[Hook, Callable[..., Any] | None] = {
            "check": None if isinstance(self.check, Command) else self.check,
            "reward": self.reward,
            "hindsight": self.hindsight,
        }
        return {hook: function for hook, function in found.items() if function is not None}

    @property
    def runs_again(self) -> bool:
        return True

    def timeouts_s(self) -> dict[Hook, float]:
        return {
            "check": self.timeout_s if self.program is None else self.program.timeout_s or self.timeout_s,
            "reward": self.reward_timeout_s,
            "hindsight": self.timeout_s,
        }

    def identity(self) -> dict[str, Any]:
        code: dict[str, Any] = {
            hook: "total_reward" if function is total_reward else code_identity(function, self.folder)
            for hook, function in self.functions().items()
        }
        if self.program is not None:
            code["check"] = self.program.identity()
        return {"kind": self.kind, "weight": self.weight, **code}
