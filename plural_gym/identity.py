"""Identity: the content hash of a word, and the digest of a folder of sources.

A content hash is SHA-256 over canonical JSON (RFC 8785) of what the word means; name, title, description and
version are left out, and what it depends on enters by its own hash. Written `sha256:` and 64 hex digits.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import rfc8785
from pydantic_core import to_jsonable_python

from plural_gym.refs import origin

MADE_IN_PYTHON = ".made-in-python"
"""Marks a folder that a Job wrote for a word built in Python: of its files, each counts for itself."""
_LEFT_OUT = {".git", ".plural", "__pycache__", ".ipynb_checkpoints", MADE_IN_PYTHON}
_WORDS = ("app", "environment", "verifier", "harness", "agent", "task", "benchmark")
_MANIFESTS = frozenset(f"{word}.yaml" for word in _WORDS)
_NO_CODE = frozenset({"cases", "tasks", "README.md", *_MANIFESTS})
"""What a content hash covers in another way (a manifest, field by field), or not at all."""


def content_hash(kind: str, content: Any) -> str:
    """The identity of one word's content; equal content, equal hash, on every machine."""
    plain = _canonical(to_jsonable_python({"kind": kind, "content": content}))
    return "sha256:" + hashlib.sha256(rfc8785.dumps(plain)).hexdigest()


def _canonical(value: Any) -> Any:
    """Integers beyond 2^53, which RFC 8785 has no form for, become strings."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53 - 1:
        return {"$int": str(value)}
    return value


def sources(folder: Path) -> Iterator[Path]:
    """The files of a resource's folder, other resources' folders inside it left out, in a stable order."""
    paths = sorted(folder.rglob("*"))
    others = {path.parent for path in paths if path.name in _MANIFESTS and path.parent != folder}
    for path in paths:
        inside = path.relative_to(folder).parts
        if not path.is_file() or any(part in _LEFT_OUT or part.endswith(".pyc") for part in inside):
            continue
        if others.isdisjoint(path.parents):
            yield path


def folder_digest(folder: Path, leave_out: frozenset[str] = frozenset()) -> str:
    """SHA-256 over names and contents of a folder's sources. `leave_out`: top-level names to skip."""
    digest = hashlib.sha256()
    for path in sources(folder):
        name = path.relative_to(folder).as_posix()
        if name.split("/", 1)[0] in leave_out:
            continue
        digest.update(name.encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return "sha256:" + digest.hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of one file's content."""
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def code_identity(target: Any, folder: Path | None) -> Mapping[str, Any]:
    """What a content hash covers of a function or class: its name and its source.

    In a project the whole folder counts, since the file may import its siblings; its manifest does not.
    """
    found = origin(target)
    digest = found.sha256
    if folder is not None and found.file is not None and Path(found.file).is_relative_to(folder.resolve()):
        digest = found.sha256 if (folder / MADE_IN_PYTHON).exists() else folder_digest(folder, _NO_CODE)
    return {"name": found.name, "source": digest}
