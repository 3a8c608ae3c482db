"""From a manifest to the word it declares: App, Environment, Verifier, Harness, Agent, Benchmark.

`project.py` calls these with one resource and the words it may refer to. Each raises ProjectError with every
problem of its resource. Tasks, of which thousands may share a manifest, are built in `project_tasks.py`.
"""

import fnmatch
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plural_gym import kinds, refs
from plural_gym.agent import Agent
from plural_gym.app import App, AppDeclaration
from plural_gym.benchmark import Benchmark
from plural_gym.command import Command, script_of
from plural_gym.environment import Environment, Limits, Resource, RuntimeChoice
from plural_gym.errors import DefinitionError, UnknownName, suggest
from plural_gym.harness import Harness, as_harness
from plural_gym.manifest import Loc, inside, text_or_file
from plural_gym.manifest_models import (
    AgentManifest,
    AppManifest,
    BenchmarkManifest,
    CommandManifest,
    EnvironmentManifest,
    HarnessManifest,
    InlineApp,
    LimitsManifest,
    ResourceManifest,
    TaskSelection,
    VerifierManifest,
    split_code_reference,
)
from plural_gym.project_files import Findings, Found
from plural_gym.task import TaskSet
from plural_gym.verifier import RubricCriterion, Verifier, total_reward


def build_app(found: Found) -> AppDeclaration:
    """The App that several Environments may name."""
    findings = Findings(found, AppManifest)
    manifest = findings.manifest
    declaration = _declaration(findings, (), manifest)
    findings.settle()
    assert declaration is not None
    return declaration


def declared_apps(
    found: Found, apps: Mapping[str, AppDeclaration], findings: Findings[EnvironmentManifest] | None = None
) -> dict[str, AppDeclaration | None]:
    """The Apps of an Environment, whatever else is wrong with it; None for an App that is wrong itself.

    `findings`: where what is wrong with them is told.

    Raises:
        ProjectError: nothing of the manifest can be read.
    """
    findings = findings or Findings(found, EnvironmentManifest)
    written = found.document.data.get("apps")
    declared: dict[str, AppDeclaration | None] = dict.fromkeys(written if isinstance(written, dict) else ())
    for name, app in findings.manifest.apps.items():
        if isinstance(app, str):
            with findings.at("apps", name):
                declared[name] = apps[app]
        else:
            declared[name] = _declaration(findings, ("apps", name), app)
    return declared


def build_environment(found: Found, apps: Mapping[str, AppDeclaration]) -> Environment:
    """The Environment, its Apps' classes loaded and its Resources found."""
    findings = Findings(found, EnvironmentManifest)
    manifest = findings.manifest
    declared = declared_apps(found, apps, findings)
    with findings.at("runtime", "kind"):
        require_kind("plural.runtimes", manifest.runtime.kind)
    for index, path in enumerate(manifest.resources):
        with findings.at("resources", index):
            line = findings.line(("resources", index))
            inside(found.root, found.folder, path, file=found.file, line=line)
    made: Environment | None = None
    if not findings.problems:
        with findings.at("apps"):
            made = Environment(
                **_described(manifest),
                apps=declared,
                runtime=RuntimeChoice(kind=manifest.runtime.kind, options=manifest.runtime.options),
                resources=tuple(Resource(path=Path(path)) for path in manifest.resources),
                limits=limits(manifest.limits) or Limits(),
                finish=manifest.finish,
                party=None if manifest.party is None else manifest.party.model_dump(),
                metadata=manifest.metadata,
            )
    findings.settle()
    assert made is not None
    made._folder = found.folder
    return made


def build_verifier(found: Found) -> Verifier:
    """The Verifier of its kind; keys that the manifest leaves out are the kind's to decide."""
    findings = Findings(found, VerifierManifest)
    manifest = findings.manifest
    given: dict[str, Any] = dict(manifest.options)
    for key in ("check", "reward", "hindsight"):
        reference = getattr(manifest, key)
        if isinstance(reference, CommandManifest):
            given[key] = _command(findings, reference)
        elif reference is not None:
            given[key] = total_reward if reference == "total_reward" else _code(findings, (key,), reference)
    plain = ("model", "base_url", "auth", "repeats", "max_chars", "timeout_s", "reward_timeout_s")
    for key in plain:
        if getattr(manifest, key) is not None:
            given[key] = getattr(manifest, key)
    if manifest.settings:
        given["settings"] = manifest.settings
    if manifest.runtime is not None:
        given["runtime"] = manifest.runtime.model_dump(exclude_none=True)
    if manifest.instructions is not None:
        given["instructions"] = text(findings, ("instructions",), manifest.instructions)
    if manifest.criteria:
        given["criteria"] = tuple(RubricCriterion(**one.model_dump()) for one in manifest.criteria)
    kind: Any = None
    with findings.at("kind"):
        kind = kinds.load("plural.verifiers", manifest.kind)
    made: Any = None
    if not findings.problems:
        with findings.at():
            made = kind(**_described(manifest), weight=manifest.weight, **given)
    findings.settle()
    made._folder = found.folder
    assert isinstance(made, Verifier)
    return made


def build_harness(found: Found, options: Mapping[str, Any] | None = None) -> Harness:
    """The Harness of its kind. `options`: an Agent's own, laid over the manifest's config."""
    findings = Findings(found, HarnessManifest)
    manifest = findings.manifest
    config: dict[str, Any] = {**manifest.config, **(options or {})}
    if manifest.play is not None:
        config["play"] = _code(findings, ("play",), manifest.play)
    kind: Any = None
    with findings.at("kind"):
        kind = kinds.load("plural.harnesses", manifest.kind)
    made: Harness | None = None
    if not findings.problems:
        with findings.at("play" if "config" not in found.document.data else "config"):
            made = as_harness(kind, config)
    findings.settle()
    assert made is not None
    made.name, made.version = manifest.name, manifest.version
    made.title, made.description = manifest.title, manifest.description
    made._folder = found.folder
    return made


def build_agent(found: Found, harness_of: Callable[[str, Mapping[str, Any]], Harness]) -> Agent:
    """The Agent. `harness_of`: a Harness by name and an Agent's options for it."""
    findings = Findings(found, AgentManifest)
    manifest = findings.manifest
    harness: Harness | None = None
    if not {"harness", "harness_options"} & findings.dropped:
        with findings.at("harness"):
            harness = harness_of(manifest.harness, manifest.harness_options)
    instructions = text(findings, ("instructions",), manifest.instructions)
    findings.settle()
    made = Agent(
        **_described(manifest),
        model=manifest.model,
        instructions=instructions,
        harness=harness,
        settings=manifest.settings,
        credentials=tuple(manifest.credentials),
    )
    made._folder = found.folder
    return made


def build_benchmark(found: Found, tasks: TaskSet, folder_of: Callable[[str], TaskSet]) -> Benchmark:
    """The Benchmark; its Tasks stay unbuilt. `folder_of`: the Tasks of one task folder."""
    findings = Findings(found, BenchmarkManifest)
    manifest = findings.manifest
    chosen: dict[str, None] = {}
    for index, entry in enumerate(manifest.tasks or ()):
        with findings.at("tasks", index):
            for name in _selected(entry, tasks, folder_of):
                if name in chosen and entry == name:
                    findings.add(("tasks", index), f"Task {name!r} stands here twice; remove one.")
                chosen[name] = None
    known = not findings.problems
    weights: dict[str, float] = {}
    for pattern, weight in manifest.weights.items():
        with findings.at("weights", pattern):
            names = [name for name in _matching(pattern, tasks, folder_of) if name in chosen]
            if not names and known:
                raise UnknownName(f"weight of {pattern!r} is of no Task in this Benchmark; remove it.")
            # A name says more than a pattern, wherever it stands.
            weights.update((name, weight) for name in names if name not in weights or _is_name(pattern))
    findings.settle()
    made = Benchmark(
        **_described(manifest),
        tasks=tasks.choose(list(chosen)),
        weights=weights,
        agent_failure=manifest.agent_failure,
        success_threshold=manifest.success_threshold,
        purpose=manifest.purpose,
    )
    made._folder = found.folder
    return made


def _selected(
    entry: str | TaskSelection, tasks: TaskSet, folder_of: Callable[[str], TaskSet]
) -> tuple[str, ...]:
    if isinstance(entry, str):
        return _matching(entry, tasks, folder_of)
    found = folder_of(entry.from_)
    if entry.split is not None:
        found = found.split(entry.split)
    if entry.limit is not None and entry.limit > len(found):
        held = f"the {len(found)} Tasks there are" if len(found) != 1 else "the 1 Task there is"
        raise UnknownName(f"limit {entry.limit} is more than {held}; lower it.")
    return found.names[: entry.limit]


def _matching(pattern: str, tasks: TaskSet, folder_of: Callable[[str], TaskSet]) -> tuple[str, ...]:
    if _is_name(pattern):
        return (tasks.full_name(pattern),)
    names = tuple(name for name in tasks.names if fnmatch.fnmatchcase(name, pattern))
    if not names:
        folder = pattern.partition("/")[0]
        if _is_name(folder):
            folder_of(folder)  # where it cannot be read, that is what is wrong
        folders = {name.partition("/")[0] for name in tasks.names}
        raise UnknownName(f"{pattern!r} matches no Task; there are Tasks of: {', '.join(sorted(folders))}.")
    return names


def _is_name(pattern: str) -> bool:
    return not any(mark in pattern for mark in "*?[")


def limits(manifest: LimitsManifest) -> Limits | None:
    """The limits that the manifest sets; None where it sets none."""
    given = manifest.model_dump(exclude_none=True)
    return Limits(**given) if given else None


def text(findings: Findings[Any], loc: Loc, value: str) -> str:
    """A text of the manifest, or what the Markdown file it names holds."""
    found = findings.found
    with findings.at(*loc):
        return text_or_file(found.root, found.folder, value, file=found.file, line=findings.line(loc))
    return value


def require_kind(group: str, name: str) -> None:
    """Raise UnknownName where no kind of this name is declared. Does not load it."""
    if ":" not in name and name not in kinds.names(group):
        raise UnknownName(
            f"there is no {kinds.word_of(group)} kind {name!r}; {suggest(name, kinds.names(group))}"
        )


def _described(manifest: ResourceManifest) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "version": manifest.version,
        "title": manifest.title,
        "description": manifest.description,
    }


def _declaration(findings: Findings[Any], loc: Loc, manifest: InlineApp) -> AppDeclaration | None:
    """The App of a manifest, or of a part of one; None where a problem was found."""
    before = len(findings.problems)
    options: dict[str, Any] = dict(manifest.options)
    if manifest.class_ is not None:
        options["class"] = _code(findings, (*loc, "class"), manifest.class_)
    for key in ("credentials", "secrets"):
        if getattr(manifest, key):
            options[key] = list(getattr(manifest, key))
    with findings.at(*loc, "kind"):
        kinds.load("plural.apps", manifest.kind)
    code = options.get("class")
    if code is not None and not (isinstance(code, type) and issubclass(code, App)):
        findings.add((*loc, "class"), f"class {manifest.class_!r} is no App; derive it from plural.App.")
    if len(findings.problems) > before:
        return None
    return AppDeclaration(manifest.kind, options, findings.found.folder)


def _command(findings: Findings[Any], manifest: CommandManifest) -> Command | None:
    """The Command of a check, once the folder and the script it names are there; None where they are not."""
    found, before = findings.found, len(findings.problems)
    folder = found.folder
    if manifest.folder is not None:
        with findings.at("check", "folder"):
            line = findings.line(("check", "folder"))
            folder = inside(found.root, folder, manifest.folder, file=found.file, line=line)
    script = script_of(manifest.command)
    if script is not None and len(findings.problems) == before:
        with findings.at("check", "command"):
            line = findings.line(("check", "command"))
            inside(found.root, folder, script.removeprefix("./"), file=found.file, line=line)
    if len(findings.problems) > before:
        return None
    with findings.at("check", "command"):
        own = None if manifest.folder is None else folder
        return Command(manifest.command, timeout_s=manifest.timeout_s, folder=own)
    return None


def _code(findings: Findings[Any], loc: Loc, reference: str) -> Any:
    """The object that `file.py:name` names; None where a problem was found."""
    found = findings.found
    with findings.at(*loc, label=str(loc[-1])):
        parts = split_code_reference(reference)
        assert parts is not None
        inside(found.root, found.folder, parts[0], file=found.file, line=findings.line(loc))
        try:
            return refs.load(reference, found.folder)
        except SystemExit as error:
            raise DefinitionError(
                f"{parts[0]} ends the program when it is imported (exit {error.code}); put that under "
                '`if __name__ == "__main__":`.'
            ) from error
    return None
