"""What may stand in a case file, `verifiers/<name>/cases/*.yaml`; `cases.py` shows one and runs them."""

from typing import Annotated, Self

from pydantic import AfterValidator, Discriminator, Field, JsonValue, Tag, model_validator
from pydantic_core import PydanticCustomError

from plural_gym.app import Control
from plural_gym.manifest_models import (
    FIELD_RULE,
    MODEL_RULE,
    Finite,
    Json,
    ManifestModel,
    RelativePath,
    text_or_mapping,
)


def _stays_inside(value: str) -> str:
    if ".." in value.split("/"):
        must = {"must": "be a path without '..'", "remedy": ""}
        raise PydanticCustomError(FIELD_RULE, "must {must}", must)
    return value


Files = dict[Annotated[RelativePath, AfterValidator(_stays_inside)], str]
"""Text files by their path among the artifacts."""


class CaseAction(ManifestModel):
    """One action of an attempt that is played."""

    action: str
    arguments: Json = Field(default_factory=dict)


class PlayCase(ManifestModel):
    """An attempt played through the world of a Task."""

    task: str
    actions: list[CaseAction] = Field(default_factory=list)
    answer: JsonValue = None
    files: Files = Field(default_factory=dict)
    """Files the Agent produced."""
    seed: int = 0
    score: Finite | None = None
    """What hindsight is told where the Verifier has no check: the score others give."""


class CaseApp(ManifestModel):
    """One App of an attempt that is written out."""

    initial: JsonValue = None
    final: JsonValue = None
    control: Control = "full"


class CaseStep(ManifestModel):
    """One step of an attempt that is written out, with the acting App before and after."""

    action: str
    arguments: Json = Field(default_factory=dict)
    app: str | None = None
    """None: the only App."""
    seat: str | None = None
    """Who acted, in a party."""
    observation: JsonValue = None
    error: str | None = None
    previous_state: JsonValue = None
    current_state: JsonValue = None

    @property
    def has_state(self) -> bool:
        """Whether a State is written; without one the reward function is not asked."""
        return bool(self.model_fields_set & {"previous_state", "current_state"})


class EpisodeCase(ManifestModel):
    """An attempt written out."""

    apps: dict[str, CaseApp] = Field(default_factory=dict)
    state: JsonValue = None
    """Final State of the only App, which is then named `app`."""
    steps: list[CaseStep] = Field(default_factory=list)
    observation: JsonValue = None
    answer: JsonValue = None
    expected: JsonValue = None
    info: JsonValue = None
    metadata: Json = Field(default_factory=dict)
    task: str = ""
    stop_reason: str | None = "agent_response"
    artifacts: list[Json] = Field(default_factory=list)
    """What is said of files that are not there; those in `files` come by themselves."""
    files: Files = Field(default_factory=dict)
    """Files the Agent produced."""
    seats: list[str] = Field(default_factory=list)
    """All seats of a party."""
    seat: str | None = None
    """Whose score, rewards and credit are expected, in a party."""
    score: Finite | None = None
    """What hindsight is told where the Verifier has no check: the score others give."""

    @model_validator(mode="after")
    def _seats_are_known(self) -> Self:
        if self.seats and self.seat is None:
            _rule("seats", f"'seat' is missing; name the one that is judged: {', '.join(self.seats)}.")
        for seat in (self.seat, *(step.seat for step in self.steps)):
            if seat is not None and seat not in self.seats:
                named = ", ".join(self.seats) or "none"
                _rule("seats", f"seat {seat!r} is not in 'seats'; there are: {named}.")
        return self

    @model_validator(mode="after")
    def _one_way_to_give_state(self) -> Self:
        if self.apps and self.state is not None:
            _rule("state", "'state' is short for one App's final State; give it or 'apps'.")
        names = list(self.apps) or ["app"]
        if len(names) > 1 and any(step.app is None for step in self.steps):
            _rule("steps", f"a step has no 'app'; with several Apps say which: {', '.join(names)}.")
        unknown = next((step.app for step in self.steps if step.app not in (None, *names)), None)
        if unknown is not None:
            _rule("steps", f"a step's app {unknown!r} is not in 'apps'; there are: {', '.join(names)}.")
        return self


class Bounds(ManifestModel):
    """Where a number must lie, for a judge that seldom gives the same one twice."""

    min: Finite | None = None
    max: Finite | None = None

    @model_validator(mode="after")
    def _has_a_bound(self) -> Self:
        if self.min is None and self.max is None:
            _rule("", "bounds name none; write {min: 0.5}, {max: 0.5}, or both.")
        if self.min is not None and self.max is not None and self.min > self.max:
            _rule("max", f"'max' {self.max:g} is below 'min' {self.min:g}; no number lies between them.")
        return self


Wanted = Annotated[
    Annotated[Bounds, Tag("mapping")] | Annotated[Finite, Tag("text")], Discriminator(text_or_mapping)
]


class Expectation(ManifestModel):
    """What the Verifier must give; what is not named is not compared."""

    score: Wanted | None = None
    scores: dict[str, Wanted] = Field(default_factory=dict)
    rewards: list[Finite | None] | None = None
    credit: list[Finite | None] | None = None
    fault: bool | str = False
    """True: some function of the Verifier has to fail; text: with this in what it says."""

    @model_validator(mode="after")
    def _expects_something(self) -> Self:
        if not self.model_fields_set:
            _rule("", "'expect' names nothing; write score, scores, rewards, credit or fault.")
        return self


class CaseManifest(ManifestModel):
    """A case file."""

    name: str
    episode: EpisodeCase | None = None
    play: PlayCase | None = None
    expect: Expectation

    @model_validator(mode="after")
    def _one_attempt(self) -> Self:
        if (self.episode is None) == (self.play is None):
            _rule("", "a case holds one attempt: either 'episode' or 'play'.")
        return self


def _rule(key: str, sentence: str) -> None:
    rules = [(key, sentence)]
    raise PydanticCustomError(MODEL_RULE, "{summary}", {"summary": sentence, "rules": rules})
