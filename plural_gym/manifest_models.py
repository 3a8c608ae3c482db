"""What may stand in each YAML file of a project: one frozen model a word.

`Document.parse` in `manifest.py` fills them; the words (`environment.py`, `task.py`, ...) turn them into live
objects. References are names, code is ``file.py:Object``, paths are relative; whether they lead anywhere is
the reader's to check, as only it knows the folder. Unknown keys are errors, values are never converted.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

FIELD_RULE: Final = "field_rule"
"""Error type of one value; its context holds `must` ("be a path") and `remedy` ("; try 'x'" or "")."""

MODEL_RULE: Final = "model_rule"
"""Error type of keys that contradict each other; its context holds `rules`: (key or "", sentence) pairs."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_APP_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_VERSION_ENDING = re.compile(r"-v[0-9]+\Z")
_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)
_KIND = re.compile(r"[a-z0-9][a-z0-9_-]*|[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_CREDENTIAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_TASK_PATTERN = re.compile(r"[a-z0-9*?\[\]!-]+(/[a-z0-9*?\[\]!-]+)?")


def _refuse(must: str, remedy: str = "") -> PydanticCustomError:
    return PydanticCustomError(FIELD_RULE, "must {must}{remedy}", {"must": must, "remedy": remedy})


def _name(value: str) -> str:
    ending = _VERSION_ENDING.search(value)
    if ending and _NAME.fullmatch(value):
        raise _refuse(
            f"not end in {ending[0]!r}, which reads as a version", f"; write {value[: ending.start()]!r}"
        )
    if not _NAME.fullmatch(value):
        slug = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")[:64].rstrip("-")
        slug = _VERSION_ENDING.sub("", slug)
        rule = "be 1 to 64 lower-case letters, digits and dashes, and start with a letter or digit"
        raise _refuse(rule, f"; try {slug!r}" if slug else "")
    return value


def _app_name(value: str) -> str:
    if not _APP_NAME.fullmatch(value):
        raise _refuse("be lower-case words of letters and digits, joined by single dashes or underscores")
    return value


def _version(value: object) -> object:
    if not (isinstance(value, str) and _SEMVER.fullmatch(value)):
        raise _refuse("be a version of three numbers, such as '0.1.0'")
    return value


def _kind(value: str) -> str:
    if not _KIND.fullmatch(value):
        raise _refuse("be the name of a kind, or 'module:Class'")
    return value


def _relative_path(value: str) -> str:
    if not value.strip() or "\0" in value or "\\" in value or value.startswith("/") or value[1:2] == ":":
        raise _refuse("be a path relative to this file's folder, with '/' between its parts")
    return value


def _project_folder(value: str) -> str:
    if ".." in _relative_path(value).split("/"):
        raise _refuse("be a folder inside the project, without '..'")
    return value


def split_code_reference(reference: str) -> tuple[str, str] | None:
    """`("verify.py", "solved")` of `"verify.py:solved"`; None where it is not of that form."""
    file, colon, name = reference.rpartition(":")
    if not (colon and file.endswith(".py") and file != ".py" and name.isidentifier()):
        return None
    return None if ":" in file or "\\" in file or "\0" in file or file.startswith("/") else (file, name)


def _code_reference(value: str) -> str:
    if split_code_reference(value) is None:
        raise _refuse("be 'file.py:name', with a path relative to this folder")
    return value


def _check_reference(value: str) -> str:
    if value != "total_reward" and split_code_reference(value) is None:
        raise _refuse("be 'file.py:name' or 'total_reward'")
    return value


def _no_list(value: object) -> object:
    if isinstance(value, list):
        raise _refuse(
            "be 'file.py:name', 'total_reward' or a mapping with 'command'",
            f"; for a program write {{command: {value}}}",
        )
    return value


def _credential(value: str) -> str:
    if not _CREDENTIAL.fullmatch(value):
        raise _refuse("be a name of letters, digits, '_' and '-', never the value itself")
    return value


def _auth(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise _refuse("be 'none' or the name of the variable that holds the key, never the key itself")
    return value


def _task_pattern(value: str) -> str:
    if not _TASK_PATTERN.fullmatch(value):
        raise _refuse("be a Task's name or a pattern such as 'wordle/*'")
    return value


def _distinct(values: list[str]) -> list[str]:
    repeated = sorted({value for value in values if values.count(value) > 1})
    if repeated:
        raise _refuse("name each entry once", f"; remove the second {repeated[0]!r}")
    return values


Name = Annotated[str, AfterValidator(_name)]
AppName = Annotated[str, AfterValidator(_app_name)]
Version = Annotated[str, BeforeValidator(_version)]
Kind = Annotated[str, AfterValidator(_kind)]
RelativePath = Annotated[str, AfterValidator(_relative_path)]
ProjectFolder = Annotated[str, AfterValidator(_project_folder)]
CodeReference = Annotated[str, AfterValidator(_code_reference)]
CheckReference = Annotated[str, AfterValidator(_check_reference)]
Credential = Annotated[str, AfterValidator(_credential)]
Auth = Annotated[str, AfterValidator(_auth)]
TaskPattern = Annotated[str, AfterValidator(_task_pattern)]
Names = Annotated[list[Name], AfterValidator(_distinct)]
Credentials = Annotated[list[Credential], AfterValidator(_distinct)]
Json = dict[str, JsonValue]
Setup = dict[AppName, Json]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Word = Literal["apps", "environments", "tasks", "verifiers", "agents", "harnesses", "benchmarks"]


def _rules(found: Iterable[tuple[str, str]]) -> None:
    """Raise one error that carries all (key, sentence) pairs; nothing for none."""
    rules = list(found)
    if rules:
        summary = " ".join(sentence for _, sentence in rules)
        raise PydanticCustomError(MODEL_RULE, "{summary}", {"summary": summary, "rules": rules})


def text_or_mapping(value: object) -> str:
    """The tag of a value that is either a mapping or one plain value."""
    return "mapping" if isinstance(value, Mapping | BaseModel) else "text"


class ManifestModel(BaseModel):
    """A mapping in a manifest: frozen, without unknown keys, without conversions (`"8"` is no number)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, serialize_by_alias=True)


class ResourceManifest(ManifestModel):
    """What every resource says of itself."""

    name: Name
    """The resource's name, equal to its folder's; how everything else refers to it."""
    version: Version = "0.1.0"
    """Semantic version, recorded with every Trial; not part of the content hash."""
    title: str = ""
    """A short name for people; not part of the content hash."""
    description: str = ""
    """A few sentences for people."""


class KindManifest(ManifestModel):
    """A mapping whose `kind` decides what else may stand in it.

    Keys that the model does not declare are gathered in `options` unless the kind is one of `own_kinds`; the
    kind's own class checks them.
    """

    own_kinds: ClassVar[frozenset[str]] = frozenset()
    kind: Kind
    """Which kind of this word it is: a registered name, or `module:Class`."""
    options: Json = {}
    """The keys that only this kind knows."""

    @model_validator(mode="before")
    @classmethod
    def _gather_options(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        kind = data.get("kind", cls.model_fields["kind"].default)
        options = data.get("options", {})
        if not isinstance(kind, str) or kind in cls.own_kinds or not isinstance(options, Mapping):
            return data
        declared = {field.alias or key for key, field in cls.model_fields.items()}
        free = {key: value for key, value in data.items() if key not in declared}
        kept = {key: value for key, value in data.items() if key in declared}
        return {**kept, "options": {**options, **free}} if free else data

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.options and self.kind in self.own_kinds:
            _rules([("options", f"'options' has no meaning for kind {self.kind!r}; remove it.")])
        return self


class ProjectManifest(ResourceManifest):
    """`project.yaml`: the project's name, and where its resources lie."""

    folders: dict[Word, ProjectFolder] = {}
    """Where a word's resources lie, as `environments: envs`; a word that is left out lies in its plural."""


class InlineApp(KindManifest):
    """An App as it stands inside `environment.yaml`, or in a folder of its own."""

    own_kinds: ClassVar[frozenset[str]] = frozenset({"python"})
    kind: Kind = "python"
    """`python`, `mcp`, `openapi`, `recording`, or a stranger's."""
    class_: CodeReference | None = Field(default=None, alias="class")
    """`file.py:Class`, the App's class; needed by kind `python`."""
    credentials: Credentials = []
    """Names whose values the Agent that runs supplies; they never reach the model."""
    secrets: Credentials = []
    """Names whose values the project owns, for set-up; they never reach the model or the Agent."""

    @model_validator(mode="after")
    def _check_class(self) -> Self:
        if self.kind == "python" and self.class_ is None:
            _rules([("", "'class' is missing; name the App's class as 'app.py:Class'.")])
        return self


class AppManifest(InlineApp, ResourceManifest):
    """`app.yaml`: an App in a folder of its own, which several Environments may name."""


class RuntimeManifest(KindManifest):
    """Where an Environment runs; a bare word in YAML is its kind."""

    kind: Kind = "local"
    """`local` (trusted code only), `docker`, `daytona`, or a stranger's."""

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, data: Any) -> Any:
        return {"kind": data} if isinstance(data, str) else data


class LimitsManifest(ManifestModel):
    """How much one attempt may use; running out truncates, and never fails a Trial. None: not set here."""

    turns: Annotated[int, Field(ge=1)] | None = None
    """Most actions an attempt may take."""
    seconds: Positive | None = None
    """Longest an attempt may take, by the clock."""
    cost_usd: Positive | None = None
    """Most that an attempt's model calls may cost."""
    seat_turns: Annotated[int, Field(ge=1)] | None = None
    """Most actions that each seat of a party may take."""


class SeatManifest(ManifestModel):
    """One seat of a party."""

    name: str
    """The seat's name, as Apps and Jobs use it."""
    role: str = ""
    """What the Agent in this seat is told of its part."""


class PartyManifest(ManifestModel):
    """The seats of a world that several Agents share."""

    seats: Annotated[
        list[
            Annotated[
                Annotated[SeatManifest, Tag("mapping")] | Annotated[str, Tag("text")],
                Discriminator(text_or_mapping),
            ]
        ],
        Field(min_length=2),
    ]
    """Names, or `{name: ..., role: ...}`; at least two, in the order in which they are served."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [seat if isinstance(seat, str) else seat.name for seat in self.seats]
        for name in sorted({name for name in names if names.count(name) > 1}):
            _rules([("seats", f"two seats are named {name!r}; rename one.")])
        return self


class EnvironmentManifest(ResourceManifest):
    """`environment.yaml`: Apps, and where they run."""

    apps: dict[
        AppName,
        Annotated[
            Annotated[InlineApp, Tag("mapping")] | Annotated[Name, Tag("text")],
            Discriminator(text_or_mapping),
        ],
    ] = {}
    """The Apps by the name that actions and `setup` use; a text names an App's folder. None is legal."""
    runtime: RuntimeManifest = RuntimeManifest()
    """Where the world runs, as `docker` or `{kind: docker, image: ...}`."""
    resources: list[RelativePath] = []
    """Files of this folder that are staged fresh for every Trial."""
    limits: LimitsManifest = LimitsManifest()
    """Limits of one attempt; a Task may lower them."""
    finish: Literal["auto", "always", "never"] = "auto"
    """Whether `finish(answer)` is offered beside the Apps' actions."""
    party: PartyManifest | None = None
    """The seats, where several Agents share the world."""
    metadata: Json = {}
    """Free notes; the Agent never sees them."""


class TaskManifest(ResourceManifest):
    """`task.yaml`: one assignment, or with `rows` one for each row. Only `instructions` reach the Agent."""

    instructions: str
    """The text the Agent reads, or a Markdown file of this folder. With `rows` it may be left to them."""
    environment: Name
    """The Environment the work happens in."""
    verifiers: Annotated[Names, Field(min_length=1)]
    """The Verifiers that grade it."""
    info: JsonValue = {}
    """Facts for Apps and Verifiers."""
    metadata: Json = {}
    """Free notes."""
    expected: JsonValue = None
    """The answer key; None: there is none."""
    setup: Setup = {}
    """Field values by App, set on its State before the episode."""
    limits: LimitsManifest = LimitsManifest()
    """Limits that are lower than the Environment's."""
    resources: list[RelativePath] = []
    """Files of this folder that are staged beside the Environment's."""
    split: str | None = None
    """The part of a data set it belongs to, such as `train`."""
    rows: RelativePath | None = None
    """A .jsonl, .csv or .parquet file of this folder: a Task a row, named `folder/row`."""
    oracle: Name | None = None
    """The Agent that is known to solve it."""

    @model_validator(mode="before")
    @classmethod
    def _leave_instructions_to_rows(cls, data: Any) -> Any:
        lacking = isinstance(data, Mapping) and "rows" in data and "instructions" not in data
        return {**data, "instructions": ""} if lacking else data


class TaskRow(ManifestModel):
    """One row of a Task's `rows`: what it sets replaces what `task.yaml` says."""

    name: Name
    """The row's name; the Task is `folder/name`."""
    instructions: str | None = None
    """The text the Agent reads; None: the folder's."""
    setup: Setup = {}
    """Field values by App, laid over the folder's."""
    expected: JsonValue = None
    """The answer key."""
    info: JsonValue = None
    """Facts for Apps and Verifiers; None: the folder's."""
    split: str | None = None
    """The part of a data set it belongs to; None: the folder's."""


class CriterionManifest(ManifestModel):
    """One line of a rubric. Its range is brought to 0..1 before weights apply."""

    name: str
    """The criterion's name, as reviews give it."""
    description: str = ""
    """What each score of the range means."""
    min_score: Finite = 0.0
    """The worst score."""
    max_score: Finite = 1.0
    """The best score."""
    weight: Positive = 1.0
    """Its share of the Verifier's score."""

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.min_score >= self.max_score:
            low, high = self.min_score, self.max_score
            _rules([("max_score", f"'max_score' must be greater than 'min_score' ({low:g}), not {high:g}.")])
        return self


class CommandManifest(ManifestModel):
    """A check that is a program; it is run on a copy of the evidence."""

    command: Annotated[list[str], Field(min_length=1)]
    """The program and its arguments, a word an entry: `[python, grade.py]`."""
    timeout_s: Positive | None = None
    """Longest that it may take, in seconds; None: as long as the Verifier's `timeout_s`."""
    folder: RelativePath | None = None
    """The folder of the files that it needs and runs in; None: this one."""


class VerifierRuntimeManifest(ManifestModel):
    """Where a judge works: apart from the Trial's Runtime. None: the default of kind `agent`."""

    network: Literal["public"] = "public"
    """A judge needs its model's endpoint; nothing narrower could be kept."""
    timeout_s: Positive | None = None
    """Longest that one model call may take, in seconds."""
    max_attempts: Annotated[int, Field(ge=1, le=20)] | None = None
    """How often one call is sent at most where the endpoint is busy, slow or unreachable."""
    max_answers: Annotated[int, Field(ge=1, le=10)] | None = None
    """How many answers one judgment may take, malformed ones included."""


_FUNCTIONS = ("check", "reward", "hindsight")
_KEYS_OF_KIND = {
    "deterministic": _FUNCTIONS,
    "agent": ("model", "instructions", "criteria"),
    "human": ("instructions", "criteria"),
}
_MORE_OF_KIND = {
    "deterministic": ("timeout_s", "reward_timeout_s"),
    "agent": ("base_url", "auth", "settings", "repeats", "max_chars", "runtime"),
    "human": (),
}
"""The keys of a kind that may be left out."""


class VerifierManifest(KindManifest, ResourceManifest):
    """`verifier.yaml`: how finished work is scored, and single actions rewarded."""

    own_kinds: ClassVar[frozenset[str]] = frozenset(_KEYS_OF_KIND)
    kind: Kind = "deterministic"
    """`deterministic`, `agent` (a model judges), `human` (a person does), or a stranger's."""
    check: (
        Annotated[
            Annotated[CommandManifest, Tag("mapping")] | Annotated[CheckReference, Tag("text")],
            Discriminator(text_or_mapping),
            BeforeValidator(_no_list),
        ]
        | None
    ) = None
    """`file.py:function` of an Episode, `total_reward`, or `{command: [...]}`: the score."""
    reward: CodeReference | None = None
    """`file.py:function` of a Step: the reward of one action."""
    hindsight: CodeReference | None = None
    """`file.py:function` of the finished Trial: late credit."""
    model: str | None = None
    """The judge's model, as `provider/model`; with a `base_url` whatever that endpoint calls it."""
    base_url: str | None = None
    """An OpenAI-compatible endpoint that serves the judge; None: the provider's."""
    auth: Auth | None = None
    """`none`, or the variable that holds the key; None: the provider's own, and no key for a `base_url`."""
    settings: Json = {}
    """The judge's sampling settings, such as `temperature`."""
    repeats: Annotated[int, Field(ge=1, le=100)] | None = None
    """How many judgments are made and averaged; None: one."""
    max_chars: Annotated[int, Field(ge=2_000, le=4_000_000)] | None = None
    """Characters of evidence that the judge is shown at most; None: the kind's default."""
    runtime: VerifierRuntimeManifest | None = None
    """Where a judge works, and how patient it is."""
    instructions: str | None = None
    """What a judge or a reviewer is told."""
    criteria: list[CriterionManifest] = []
    """The rubric of a judge or a reviewer."""
    weight: Positive = 1.0
    """Its share of the Trial's score; never scales a reward."""
    timeout_s: Positive | None = None
    """Longest that `check` and `hindsight` may take, in seconds; None: the kind's default."""
    reward_timeout_s: Positive | None = None
    """Longest that one `reward` may take, in seconds; None: the kind's default."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.kind in _KEYS_OF_KIND:
            _rules([*self._misplaced(), *self._lacking()])
        return self

    def _misplaced(self) -> Iterable[tuple[str, str]]:
        owned = (*_KEYS_OF_KIND.values(), *_MORE_OF_KIND.values())
        own = (*_KEYS_OF_KIND[self.kind], *_MORE_OF_KIND[self.kind])
        for key in dict.fromkeys(key for keys in owned for key in keys):
            if key in self.model_fields_set and key not in own:
                yield key, f"{key!r} has no meaning for kind {self.kind!r}; remove it."
        names = [criterion.name for criterion in self.criteria]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield "criteria", f"two criteria are named {name!r}; rename one."

    def _lacking(self) -> Iterable[tuple[str, str]]:
        if self.kind != "deterministic":
            for key in _KEYS_OF_KIND[self.kind]:
                if not getattr(self, key):
                    yield "", f"{key!r} is missing; kind {self.kind!r} needs it."
        elif not any(getattr(self, key) for key in _FUNCTIONS):
            yield "", "one of 'check', 'reward' and 'hindsight' is needed; add 'check: verify.py:check'."
        elif self.check == "total_reward" and self.reward is None:
            yield "check", "check 'total_reward' needs a 'reward' to sum; add 'reward: verify.py:reward'."


class AgentManifest(ResourceManifest):
    """`agent.yaml`: a contestant, tied to no world."""

    model: str | None = None
    """The model's id in the catalog; None: it calls no model."""
    instructions: str = ""
    """What it is told beside every Task."""
    harness: str = "native"
    """The Harness that plays it: a kind's name, a project's Harness, or `module:Class`."""
    harness_options: Json = {}
    """Options of that Harness."""
    settings: Json = {}
    """Sampling settings, such as `temperature`, handed to the model."""
    credentials: Credentials = []
    """Names of the credentials it supplies to Apps."""


class HarnessManifest(ResourceManifest):
    """`harness.yaml`: a loop that plays an Agent."""

    kind: Kind = "scripted"
    """`scripted` (own code), `native`, `claude-code`, `codex`, `external`, or a stranger's."""
    play: CodeReference | None = None
    """`file.py:Object`: a function (task, seat), or a class with `play`; needed by kind `scripted`."""
    config: Json = {}
    """Settings of the loop."""

    @model_validator(mode="after")
    def _check_play(self) -> Self:
        if self.kind == "scripted" and self.play is None:
            _rules([("", "'play' is missing; name the function as 'harness.py:play'.")])
        return self


class TaskSelection(ManifestModel):
    """Some of a folder's Tasks, in their order."""

    from_: Name = Field(alias="from")
    """The folder of the Tasks."""
    split: str | None = None
    """Only those of this split; None: all."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Only so many, from the first; None: all."""


class BenchmarkManifest(ResourceManifest):
    """`benchmark.yaml`: a fixed, ordered set of Tasks and how results are ranked."""

    purpose: str = ""
    """What a high score is meant to show."""
    tasks: Annotated[
        list[
            Annotated[
                Annotated[TaskSelection, Tag("mapping")] | Annotated[TaskPattern, Tag("text")],
                Discriminator(text_or_mapping),
            ]
        ],
        Field(min_length=1),
    ]
    """Names, patterns such as `wordle/*`, or `{from: folder, split: test, limit: 10}`, in order."""
    weights: dict[TaskPattern, Positive] = {}
    """A Task's weight in the mean by name or pattern; 1 where none is given."""
    agent_failure: Literal["zero", "exclude"] = "zero"
    """What an attempt counts that the Agent failed without a score."""
    infrastructure_error: Literal["exclude"] = "exclude"
    """Attempts that the machine failed are left out, and shown."""
    success_threshold: Finite | None = None
    """The score from which an attempt counts as a success; None: 1."""
    metric: Literal["score"] = "score"
    """What is ranked on."""


def check_name(folder_name: str, manifest: ResourceManifest) -> str | None:
    """What is wrong where a resource's `name` is not its folder's; None where all is well."""
    if manifest.name == folder_name:
        return None
    return f"name {manifest.name!r} is not the folder's, {folder_name!r}; make them the same."
