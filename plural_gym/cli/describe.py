"""What `plural <noun> list` and `show` tell of one resource, as JSON values and as lines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plural_gym.cli.terminal import PLURALS
from plural_gym.errors import ProjectError, UsageError

if TYPE_CHECKING:
    from plural_gym.environment import Actions
    from plural_gym.project import Project
    from plural_gym.project_files import Found

_NAMES_SHOWN = 10


def task_names(project: "Project", name: str) -> list[str]:
    """The full names of the Tasks that `name` means: a folder's, or one."""
    rows = [one for one in project.tasks.names if one.startswith(name + "/")]
    return rows or [project.tasks.full_name(name)]


def is_folder(project: "Project", name: str) -> bool:
    """Whether `name` means the Tasks of a folder of rows."""
    return any(one.startswith(name + "/") for one in project.tasks.names)


def here(noun: str, project: "Project") -> "Found | None":
    """The resource of this noun in whose folder somebody stands."""
    from plural_gym.project_files import Layout

    place = Path.cwd()
    for one in Layout(project.root).resources(PLURALS[noun]).values():
        if place.is_relative_to(one.folder.resolve()) or place.is_relative_to(one.folder):
            return one
    return None


def chosen(noun: str, name: str | None, project: "Project", verb: str) -> str:
    """`name`, or without one that of the resource in whose folder somebody stands.

    Raises:
        UsageError: nobody stands in one; says what there is.
    """
    if name is not None:
        return name
    found = here(noun, project)
    if found is None:
        listed = ", ".join(getattr(project, PLURALS[noun])) or "none"
        raise UsageError(f"say which: plural {noun} {verb} NAME (there are: {listed}).")
    return found.name


def line(noun: str, found: "Found", project: "Project") -> dict[str, Any]:
    """One line of a list, from the manifest alone: no code is loaded."""
    row: dict[str, Any] = {"name": found.name, "version": None, "title": "", "file": found.file}
    row |= {"tasks": None} if noun in ("task", "benchmark") else {}
    row["problem"] = None
    try:
        row |= _told(found)
        if noun == "task":
            row["tasks"] = len(task_names(project, found.name))
        elif noun == "benchmark":
            row["tasks"] = len(project.benchmarks[found.name].task_set)
    except ProjectError as error:
        row["problem"] = f"invalid: {error.problems[0]}"
    return row


def _told(found: "Found") -> dict[str, Any]:
    from plural_gym.project_files import WORDS

    manifest = found.manifest(WORDS[found.word][1])
    return {"version": manifest.version, "title": manifest.title or manifest.description}


def identity(noun: str, name: str, found: "Found", project: "Project") -> dict[str, Any]:
    """Version and content hash; of a folder of Tasks no hash, but how many there are."""
    told: dict[str, Any] = {"version": _told(found)["version"]}
    if noun == "task":
        if is_folder(project, name):
            return {**told, "content_hash": None, "tasks": len(task_names(project, name))}
        return {**told, "content_hash": project.tasks.get(name).content_hash}
    return {**told, "content_hash": _hash(noun, name, project)}


def _hash(noun: str, name: str, project: "Project") -> str:
    from plural_gym.identity import code_identity, content_hash

    if noun == "app":
        app = project.apps[name]
        options = {
            key: code_identity(value, app.folder) if key == "class" else value
            for key, value in app.options.items()
        }
        return content_hash("app", {"kind": app.kind, **options})
    if noun == "harness":
        return content_hash("harness", project.harnesses[name].identity())
    hashed: str = getattr(project, PLURALS[noun])[name].content_hash
    return hashed


def facts(noun: str, name: str, found: "Found", project: "Project") -> dict[str, Any]:
    """Everything that `show` tells. Raises ProjectError where the resource is invalid."""
    from plural_gym.project_files import WORDS

    manifest = found.manifest(WORDS[found.word][1])
    known: dict[str, Any] = {
        "word": noun,
        "name": name,
        **identity(noun, name, found, project),
        "title": manifest.title,
        "description": manifest.description,
        "file": found.file,
    }
    more = {
        "app": _app,
        "environment": _environment,
        "task": _task,
        "verifier": _verifier,
        "agent": _agent,
        "harness": _harness,
        "benchmark": _benchmark,
    }[noun]
    return {**known, **more(name, project)}


def _app(name: str, project: "Project") -> dict[str, Any]:
    from plural_gym import kinds
    from plural_gym.environment import Actions

    app = project.apps[name]
    actions = Actions({name: kinds.load("plural.apps", app.kind).describe(app)})
    return {"kind": app.kind, "actions": _actions(actions)}


def _environment(name: str, project: "Project") -> dict[str, Any]:
    environment = project.environments[name]
    return {
        "apps": {app: declaration.kind for app, declaration in environment.declarations.items()},
        "runtime": environment.runtime.kind,
        "limits": environment.limits.model_dump(exclude_none=True),
        "finish": environment.finish,
        "resources": [resource.staged_name for resource in environment.resources],
        "actions": _actions(environment.actions),
    }


def _actions(actions: "Actions") -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "description": spec.description,
            "read_only": spec.read_only,
            "parameters": dict(spec.parameters),
        }
        for name, (_, spec) in actions.public.items()
    ]


def _task(name: str, project: "Project") -> dict[str, Any]:
    names = task_names(project, name)
    task = project.tasks.get(names[0])
    shared = {
        "environment": task.environment.name,
        "verifiers": [verifier.name for verifier in task.verifiers],
        "oracle": task.oracle,
        "limits": task.effective_limits.model_dump(exclude_none=True),
        "instructions": task.instructions,
    }
    if is_folder(project, name):
        return {**shared, "tasks": len(names), "splits": _splits(project, names), "names": names}
    return {
        **shared,
        "split": task.split,
        "setup": task.setup,
        "info": task.info,
        "expected": task.expected,
        "metadata": task.metadata,
    }


def _splits(project: "Project", names: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        split = project.tasks.get(name).split
        if split is not None:
            counts[split] = counts.get(split, 0) + 1
    return counts


def _verifier(name: str, project: "Project") -> dict[str, Any]:
    from plural_gym.verifier import total_reward

    verifier = project.verifiers[name]
    functions: dict[str, str] = {
        hook: "total_reward" if function is total_reward else _place(function)
        for hook, function in verifier.functions().items()
    }
    program = getattr(verifier, "check", None)
    if "check" not in functions and program is not None:
        functions["check"] = str(program)
    told = ("model", "base_url", "auth", "settings", "repeats", "instructions")
    fields = {key: getattr(verifier, key) for key in told if getattr(verifier, key, None)}
    criteria = [one.model_dump() for one in getattr(verifier, "criteria", ())]
    return {
        "kind": verifier.kind,
        "weight": verifier.weight,
        "scores": verifier.scores,
        **functions,
        **fields,
        **({"criteria": criteria} if criteria else {}),
        "timeouts_s": {hook: s for hook, s in verifier.timeouts_s().items() if hook in functions},
        "used_by": used_by(name, project),
    }


def used_by(verifier: str, project: "Project") -> list[str]:
    """The task folders that list a Verifier."""
    from plural_gym.manifest_models import TaskManifest
    from plural_gym.project_files import Layout

    folders = []
    for found in Layout(project.root).resources("tasks").values():
        try:
            if verifier in found.manifest(TaskManifest).verifiers:
                folders.append(found.name)
        except ProjectError:
            continue
    return folders


def _place(function: Any) -> str:
    """`verify.py:check`."""
    from plural_gym.refs import origin

    found = origin(function)
    return f"{Path(found.file).name}:{found.name}" if found.file is not None else found.name


def _agent(name: str, project: "Project") -> dict[str, Any]:
    agent = project.agents[name]
    return {
        "model": agent.model,
        "harness": agent.driver().name,
        "harness_config": dict(agent.driver().config),
        "settings": agent.settings,
        "credentials": list(agent.credentials),
        "instructions": agent.instructions,
    }


def _harness(name: str, project: "Project") -> dict[str, Any]:
    harness = project.harnesses[name]
    return {
        "kind": harness.kind or "own",
        "play": _place(harness.code),
        "config": dict(harness.config),
    }


def _benchmark(name: str, project: "Project") -> dict[str, Any]:
    benchmark = project.benchmarks[name]
    return {
        "purpose": benchmark.purpose,
        "agent_failure": benchmark.agent_failure,
        "success_threshold": benchmark.rules.success_threshold,
        "weights": benchmark.weights,
        "tasks": len(benchmark.task_set),
        "names": list(benchmark.task_set.names),
    }


# --- as lines ---


def lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Facts for people: a line a fact, what is empty left out, texts and actions at the end."""
    short = {key: value for key, value in told.items() if key not in ("actions", "instructions")}
    width = max(len(key) for key in short) + 2
    for key, value in short.items():
        if value not in (None, "", [], {}):
            yield f"{key.replace('_', ' '):<{width}}{_value(value)}"
    if told.get("instructions"):
        yield ""
        yield from told["instructions"].rstrip().splitlines()
    if told.get("actions") == [] and told.get("apps", True):
        yield ""
        yield "It offers no action; mark a method of its App with @action."
    for action in told.get("actions", ()):
        yield ""
        yield from _action_lines(action)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        left = len(value) - _NAMES_SHOWN
        return ", ".join(value[:_NAMES_SHOWN]) + (f", ... ({left:,} more)" if left > 0 else "")
    if (
        isinstance(value, dict)
        and value
        and all(isinstance(item, str | int | float) for item in value.values())
    ):
        return ", ".join(f"{key}: {_value(item)}" for key, item in value.items())
    return json.dumps(value, ensure_ascii=False)


def _action_lines(action: Mapping[str, Any]) -> Iterator[str]:
    schema = action["parameters"]
    required = schema.get("required", ())
    arguments = ", ".join(
        name if name in required else f"{name}={json.dumps(part.get('default'), ensure_ascii=False)}"
        for name, part in schema["properties"].items()
    )
    yield f"{action['name']}({arguments})" + ("  read-only" if action["read_only"] else "")
    for text in action["description"].splitlines():
        yield f"    {text}".rstrip()
    for name, part in schema["properties"].items():
        about = f"  {part['description']}" if "description" in part else ""
        plain = {key: value for key, value in part.items() if key != "description"}
        yield f"    {name}: {json.dumps(plain, ensure_ascii=False)}{about}"
