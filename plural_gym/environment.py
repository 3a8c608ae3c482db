"""Environment: the world an Agent may act in, declared once and shared by many Trials.

Frozen, compared by content. `gym()` makes the live `gymnasium.Env`; `reset`, `step` and `close` drive one
of its own, as the specification writes them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field, PrivateAttr, field_validator

from plural_gym import kinds
from plural_gym.app import ActionSpec, App, AppDeclaration
from plural_gym.errors import DefinitionError, UnknownName, suggest
from plural_gym.identity import code_identity, content_hash, file_digest
from plural_gym.party import Party
from plural_gym.word import Number, WholeNumber, Word

APP_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
"""What an App may be called: it leads the names of its actions, `app.action` and `app__action`."""


class Limits(Word):
    """How long one attempt may take. Running out truncates the attempt; it never fails it."""

    turns: WholeNumber = Field(default=100, ge=1)
    """Actions an attempt may take, rejected ones included."""
    seconds: Number | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Wall time; None: no limit."""
    cost_usd: Number | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Money for model calls; None: no limit."""
    seat_turns: WholeNumber | None = Field(default=None, ge=1)
    """Actions that each seat of a party may take; None: no limit of its own."""

    def lowered(self, other: "Limits | None") -> "Limits":
        """These limits, each lowered to `other`'s where that is tighter and was set."""
        if other is None:
            return self
        tighter = {}
        for name in other.model_fields_set:
            mine, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None:
                tighter[name] = theirs if mine is None else min(mine, theirs)
        return self.model_copy(update=tighter)


class Resource(Word):
    """A file that lies in the world, staged fresh for each Trial."""

    path: Path
    """Where the file lies now; relative to the Environment's folder in a project."""
    name: str = ""
    """Its name in the world; the file's own name where empty."""

    @property
    def staged_name(self) -> str:
        """The name it has beside the Apps."""
        return self.name or self.path.name


class RuntimeChoice(Word):
    """Which Runtime a world runs in, and that kind's own settings."""

    kind: str = "local"
    options: dict[str, Any] = Field(default_factory=dict)


FINISH = ActionSpec(
    name="finish",
    description="End the attempt and give your final answer, if one is asked for.",
    parameters=MappingProxyType(
        {
            "type": "object",
            "properties": {"answer": {"description": "The final answer, any JSON."}},
            "additionalProperties": False,
        }
    ),
    read_only=True,
)
"""What an Agent ends its attempt with. Belongs to no App: no Step, no reward."""


class Actions:
    """Every action of an Environment, and the names it answers to.

    Bare where unique (`guess`), `app.action` always, `app__action` as a tool of a model.
    """

    def __init__(self, by_app: Mapping[str, Sequence[ActionSpec]]) -> None:
        self.by_app = {app: tuple(specs) for app, specs in by_app.items()}
        counts: dict[str, int] = {}
        for specs in self.by_app.values():
            for spec in specs:
                counts[spec.name] = counts.get(spec.name, 0) + 1
        self.table: dict[str, tuple[str, ActionSpec]] = {}
        """Every name an action answers to -> (App, action)."""
        self.public: dict[str, tuple[str, ActionSpec]] = {}
        """One name an action: bare where unique, else `app.action`; in declared order."""
        for app, specs in self.by_app.items():
            for spec in specs:
                names = [f"{app}.{spec.name}", f"{app}__{spec.name}"]
                if counts[spec.name] == 1:
                    names.insert(0, spec.name)
                for name in names:
                    self.table[name] = (app, spec)
                self.public[names[0]] = (app, spec)

    def explain_unknown(self, name: str) -> str:
        """Why `name` is no action, with the nearest that is."""
        owners = [app for app, specs in self.by_app.items() if any(spec.name == name for spec in specs)]
        if owners:
            choices = " or ".join(f"{app}.{name}" for app in owners)
            return f"several Apps have an action {name!r}; say {choices}."
        who = f"App {next(iter(self.by_app))!r}" if len(self.by_app) == 1 else "the Environment"
        return f"{who} has no action {name!r}; {suggest(name, self.public)}"

    def tools(self) -> list[dict[str, Any]]:
        """The actions as OpenAI function tools: bare names with one App, `app__action` with several."""
        several = len(self.by_app) > 1
        return [spec.tool(f"{app}__{spec.name}" if several else None) for app, spec in self.public.values()]


class Environment(Word):
    """One or more Apps and where they run; Resources, Limits and a Party belong to it.

    Args:
        apps: App classes, or declarations of other kinds, by name. May be empty: answer only.
        runtime: a Runtime's kind, such as "local", or a RuntimeChoice with settings.
        finish: whether the Agent is offered `finish(answer)`. "auto": to Harnesses always, in GymEnv only
            where no App ends the episode itself.
        party: the seats, where several Agents share the world; their names, or a Party.
    """

    name: str = Field(min_length=1)
    version: str = "0.1.0"
    title: str = ""
    description: str = ""
    apps: Mapping[str, Any] = Field(default_factory=dict)
    runtime: RuntimeChoice = Field(default_factory=RuntimeChoice)
    resources: tuple[Resource, ...] = ()
    limits: Limits = Field(default_factory=Limits)
    finish: Literal["auto", "always", "never"] = "auto"
    party: Party | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    _folder: Path | None = PrivateAttr(default=None)
    _gym: Any = PrivateAttr(default=None)
    _hash: str | None = PrivateAttr(default=None)
    _actions: Actions | None = PrivateAttr(default=None)

    @field_validator("apps", mode="before")
    @classmethod
    def _apps_are_declared(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"apps is a mapping from a name to an App class, got {value!r}")
        for name, app in value.items():
            if not (isinstance(name, str) and APP_NAME.fullmatch(name)):
                raise ValueError(
                    f"App name {name!r} must be lower-case words of letters and digits, joined by '-' or '_'"
                )
            if not (isinstance(app, AppDeclaration) or (isinstance(app, type) and issubclass(app, App))):
                raise ValueError(f"App {name!r} is {app!r}; give a class derived from App")
        return value

    @field_validator("apps", mode="after")
    @classmethod
    def _apps_stay_as_declared(cls, value: Any) -> Any:
        return MappingProxyType(dict(value))

    @field_validator("runtime", mode="before")
    @classmethod
    def _runtime_by_kind(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @field_validator("party", mode="before")
    @classmethod
    def _party_by_seats(cls, value: Any) -> Any:
        return {"seats": value} if isinstance(value, (list, tuple)) else value

    @field_validator("resources", mode="before")
    @classmethod
    def _resources_by_path(cls, value: Any) -> Any:
        items = value if isinstance(value, (list, tuple)) else [value]
        return [{"path": item} if isinstance(item, (str, Path)) else item for item in items]

    def model_post_init(self, context: Any) -> None:
        names: set[str] = set()
        for resource in self.resources:
            if resource.staged_name in names:
                raise DefinitionError(f"two Resources are named {resource.staged_name!r}; give one a name.")
            names.add(resource.staged_name)
        if self.party is not None and not self.apps:
            raise DefinitionError(f"Environment {self.name!r}: a party needs an App to meet in.")

    @property
    def declarations(self) -> dict[str, AppDeclaration]:
        """Every App as its kind takes it."""
        return {
            name: app if isinstance(app, AppDeclaration) else AppDeclaration("python", {"class": app})
            for name, app in self.apps.items()
        }

    @property
    def actions(self) -> Actions:
        """What an Agent can do here."""
        if self._actions is None:
            self._actions = Actions(
                {
                    name: kinds.load("plural.apps", app.kind).describe(app)
                    for name, app in self.declarations.items()
                }
            )
        return self._actions

    @property
    def ends_itself(self) -> bool:
        """Whether some App decides when the episode terminates."""
        for declaration in self.declarations.values():
            code = declaration.options.get("class")
            if code is None or code.terminated is not App.terminated:
                return True
        return False

    @property
    def folder(self) -> Path | None:
        """Its folder in a project; None where it was built in Python."""
        return self._folder

    def app(self, name: str) -> AppDeclaration:
        """One App by name. Raises UnknownName with what there is."""
        try:
            return self.declarations[name]
        except KeyError:
            raise UnknownName(
                f"Environment {self.name!r} has no App {name!r}; {suggest(name, self.apps)}"
            ) from None

    @property
    def content_hash(self) -> str:
        """Identity of what the world is: Apps with their source, Limits, Resources, Runtime, finish."""
        if self._hash is None:
            apps = {
                name: {
                    "kind": app.kind,
                    **{
                        key: code_identity(value, app.folder or self.folder) if key == "class" else value
                        for key, value in app.options.items()
                    },
                }
                for name, app in self.declarations.items()
            }
            content = {
                "apps": apps,
                "runtime": self.runtime.model_dump(),
                "limits": self.limits.model_dump(),
                "finish": self.finish,
                **({} if self.party is None else {"party": self.party.model_dump()}),
                "resources": {
                    resource.staged_name: file_digest(self.resource_path(resource))
                    for resource in self.resources
                },
            }
            self._hash = content_hash("environment", content)
        return self._hash

    def resource_path(self, resource: Resource) -> Path:
        """Where a Resource's file lies. Raises DefinitionError where it does not."""
        path = resource.path if self.folder is None else self.folder / resource.path
        if not path.is_file():
            raise DefinitionError(f"Environment {self.name!r}: resource {str(resource.path)!r} is no file.")
        return path

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Environment)
            and self.name == other.name
            and self.content_hash == other.content_hash
        )

    def __hash__(self) -> int:
        return hash((self.name, self.content_hash))

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.folder is not None:
            return _from_project, (str(self.folder), self.name)
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[Any, Any]:
        state = super().__getstate__()
        state["__dict__"] = {**state["__dict__"], "apps": dict(self.apps)}
        # The copy reads its Apps anew: it may be loaded where their code differs.
        fresh = {"_gym": None, "_hash": None, "_actions": None}
        state["__pydantic_private__"] = {**(state["__pydantic_private__"] or {}), **fresh}
        return state

    def __setstate__(self, state: dict[Any, Any]) -> None:
        state["__dict__"]["apps"] = MappingProxyType(state["__dict__"]["apps"])
        super().__setstate__(state)

    def gym(self, **options: Any) -> Any:
        """A live `gymnasium.Env` of this world. Options: see `plural_gym.rl.env.GymEnv`."""
        return kinds.load("plural.faces", "gym")(self, **options)

    def aec(self, **options: Any) -> Any:
        """A live `pettingzoo.AECEnv` of a party. Options: see `plural_gym.rl.party_face.PartyFace`."""
        return kinds.load("plural.faces", "aec")(self, **options)

    def parallel(self, **options: Any) -> Any:
        """A live `pettingzoo.ParallelEnv` of a party. Options: see `plural_gym.rl.party_face.PartyFace`."""
        return kinds.load("plural.faces", "parallel")(self, **options)

    def reset(self, **options: Any) -> Any:
        """Start an episode to try things in: `observation, info`. Takes what `GymEnv.reset` takes."""
        if self._gym is None:
            self._gym = self.gym()
        return self._gym.reset(**options)

    def step(self, action: Any, /, **arguments: Any) -> Any:
        """Take one action: `observation, reward, terminated, truncated, info`."""
        return self._live().step(action, **arguments)

    def checkpoint(self) -> Any:
        """The live episode as a value, to `restore` later: State, randomness, turn and limits."""
        return self._live().checkpoint()

    def restore(self, checkpoint: Any) -> Any:
        """Put the live episode back to a checkpoint; returns `observation, info`."""
        return self._live().restore(checkpoint)

    def close(self) -> None:
        """Let go of the live episode. Safe to call twice."""
        if self._gym is not None:
            self._gym.close()
            self._gym = None

    def _live(self) -> Any:
        if self._gym is None:
            raise DefinitionError(f"Environment {self.name!r} has no episode yet; call reset() first.")
        return self._gym


def _from_project(folder: str, name: str) -> Environment:
    """A project's Environment, in another process. The project is named, not imported: it stands above."""
    project = kinds.load("plural.faces", "plural_gym.project:Project").open(folder)
    environment: Environment = project.environments[name]
    return environment
