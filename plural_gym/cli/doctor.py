"""`plural doctor`: what this machine can run, and what would help where it cannot."""

import os
import platform
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import typer

from plural_gym.cli.terminal import JsonOption, ProjectOption, print_json, print_table
from plural_gym.errors import MachineError, PluralError, ProjectError

_PACKAGES = ("plural-gym", "gymnasium", "pettingzoo", "numpy", "pydantic", "pyarrow", "typer", "rich")
_LOW_DISK_GB = 1.0
_DOCKER_S = 5
_DOCKER_SOCKET = "unix:///var/run/docker.sock"
_MARKS = {"ok": "ok", "missing": "–", "broken": "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    part: str
    status: Literal["ok", "missing", "broken"]
    """`missing` is a choice, `broken` is not."""
    found: str
    remedy: str = ""


def register(app: typer.Typer) -> None:
    """Add `doctor` to the command line."""
    app.command("doctor", rich_help_panel="Run")(doctor)


def doctor(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Show what this machine can run. Exit code 5 where the local Runtime does not work."""
    findings = [*(finding for look in _LOOKS for finding in look()), *_records(project)]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [[_MARKS[one.status], one.part, one.found, one.remedy] for one in findings]
        print_table(["", "part", "found", "what would help"], rows)
    if any(one.part == "runtime local" and one.status == "broken" for one in findings):
        raise typer.Exit(MachineError.exit_code)


def _python() -> Iterator[Finding]:
    found = f"{platform.python_version()} ({sys.executable})"
    old = sys.version_info < (3, 11)
    yield Finding("Python", "broken" if old else "ok", found, "install Python 3.11 or later" if old else "")
    for name in _PACKAGES:
        installed = _installed(name)
        if installed is not None:
            yield Finding(name, "ok", installed)
        else:
            yield Finding(name, "broken", "not installed", "pip install --upgrade plural-gym")


def _machine() -> Iterator[Finding]:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = "unknown memory"
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        memory = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GB of memory"
    yield Finding("machine", "ok", f"{processors} processors, {memory}, {platform.platform()}")


def _local() -> Iterator[Finding]:
    """Start one worker process and end it."""
    from plural_gym.runtimes.local import LocalRuntime

    began = time.monotonic()
    runtime = LocalRuntime({})
    try:
        with tempfile.TemporaryDirectory(prefix="plural-") as folder:
            runtime.open("apps", Path(folder) / "apps.log").kill()
        yield Finding("runtime local", "ok", f"a worker started in {time.monotonic() - began:.2f} s")
    except (PluralError, OSError) as error:
        yield Finding("runtime local", "broken", str(error), "needs fork(), as on Linux and macOS")
    finally:
        runtime.close()


def _docker() -> Iterator[Finding]:
    """Whether a Docker engine answers; without a Runtime that uses one it is told, and nothing advised."""
    from plural_gym import kinds

    known = kinds.names("plural.runtimes")
    for finding in _engine("runtime docker"):
        if "docker" in known:
            yield finding
        else:
            told = f"{finding.found}; not used, as the only Runtime is {', '.join(known)}"
            yield Finding("Docker engine", finding.status, told)


def _engine(part: str) -> Iterator[Finding]:
    """Whether a Docker engine answers; why not, in words."""
    try:
        import docker
    except ModuleNotFoundError:
        yield Finding(part, "missing", "the package 'docker' is not installed", "pip install docker")
        return
    host = os.environ.get("DOCKER_HOST") or _DOCKER_SOCKET
    try:
        if host.startswith("unix://"):
            # The engine's client would leave its socket open where nobody listens.
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_DOCKER_S)
                probe.connect(host.removeprefix("unix://"))
        client = docker.from_env(timeout=_DOCKER_S)
        try:
            yield Finding(part, "ok", f"version {client.version()['Version']}")
        finally:
            client.close()
    except PermissionError:
        remedy = "add the user to the group 'docker' and log in again"
        yield Finding(part, "missing", f"{host} refuses this user", remedy)
    except Exception as error:  # each transport of the client has errors of its own
        why = f"no engine at {host}" if isinstance(error, OSError) else str(error)
        remedy = "start it, or unset DOCKER_HOST" if host != _DOCKER_SOCKET else "install Docker and start it"
        yield Finding(part, "missing", why, remedy)


def _ids() -> Iterator[Finding]:
    """The shipped worlds, as Gymnasium knows them."""
    part = "gymnasium ids"
    try:
        import gymnasium
    except ImportError as error:
        yield Finding(part, "broken", str(error), "pip install gymnasium")
        return
    found = sorted(name for name in gymnasium.registry if name.startswith("plural/"))
    help_with = "" if found else "install plural-gym again from a wheel"
    yield Finding(part, "ok" if found else "broken", ", ".join(found) or "none registered", help_with)


def _extras() -> Iterator[Finding]:
    """Optional parts, as the distribution declares them: `name; extra == 'part'`."""
    from importlib.metadata import requires

    parts: dict[str, list[str]] = {}
    for line in requires("plural-gym") or ():
        needed = re.match(r"([A-Za-z0-9._-]+).*extra\s*==\s*['\"]([^'\"]+)", line)
        if needed is not None:
            parts.setdefault(needed[2], []).append(needed[1])
    for part, names in sorted(parts.items()):
        absent = [name for name in names if _installed(name) is None]
        if absent:
            remedy = f"pip install 'plural-gym[{part}]'"
            yield Finding(f"optional {part}", "missing", f"without {', '.join(absent)}", remedy)
        else:
            yield Finding(f"optional {part}", "ok", "installed")


def _installed(name: str) -> str | None:
    """The version of a distribution; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _records(project: Path | None) -> Iterator[Finding]:
    """Where records go: whether they can be written, and how much room there is."""
    from plural_gym.project_files import find_root

    try:
        folder = find_root(project or ".")
        yield Finding("project", "ok", str(folder))
    except ProjectError:
        folder = Path(project or ".").absolute()
        yield Finding("project", "missing", "no project.yaml here or above", "plural init my-project")
    place = folder / ".plural"
    place = place if place.is_dir() else folder
    if not os.access(place, os.W_OK | os.X_OK):
        remedy = "choose another folder: plural run --directory PATH"
        yield Finding("records", "broken", f"{place} cannot be written", remedy)
        return
    free = shutil.disk_usage(place).free / 2**30
    low = free < _LOW_DISK_GB
    remedy = "free some space, or choose another disk: plural run --directory PATH" if low else ""
    yield Finding("records", "broken" if low else "ok", f"{free:.1f} GB free for {place}", remedy)


_LOOKS: tuple[Callable[[], Iterator[Finding]], ...] = (_python, _machine, _local, _docker, _ids, _extras)
