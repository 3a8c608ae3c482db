"""Identity: equal content, equal hash, on every machine."""

import hashlib
from pathlib import Path

from plural_gym import refs
from plural_gym.identity import (
    MADE_IN_PYTHON,
    code_identity,
    content_hash,
    file_digest,
    folder_digest,
    sources,
)


def test_a_hash_depends_on_content_alone() -> None:
    one = content_hash("task", {"a": 1, "b": [1.0, None, "é"]})
    assert one == content_hash("task", {"b": [1.0, None, "é"], "a": 1})
    assert one.startswith("sha256:") and len(one) == 71
    assert one == "sha256:" + one[7:].lower() != content_hash("agent", {"a": 1, "b": [1.0, None, "é"]})
    assert content_hash("x", {"n": 2**53}) != content_hash("x", {"n": 2**53 + 1})
    assert content_hash("x", (1, 2)) == content_hash("x", [1, 2])


def test_a_known_hash_never_changes() -> None:
    digest = hashlib.sha256(b'{"content":{"n":1},"kind":"task"}').hexdigest()
    assert content_hash("task", {"n": 1.0}) == f"sha256:{digest}"


def folder(root: Path) -> Path:
    root.mkdir()
    (root / "verify.py").write_text("def solved(): pass\n")
    (root / "words.txt").write_text("crane\n")
    (root / "verifier.yaml").write_text("name: solved\n")
    return root


def test_a_folder_is_its_names_and_contents(tmp_path: Path) -> None:
    one = folder(tmp_path / "one")
    digest = folder_digest(one)
    assert folder_digest(folder(tmp_path / "two")) == digest
    for noise in ("__pycache__/x.pyc", ".git/HEAD", ".plural/jobs/x", "old.pyc", ".ipynb_checkpoints/n"):
        (one / noise).parent.mkdir(parents=True, exist_ok=True)
        (one / noise).write_text("noise")
    assert folder_digest(one) == digest
    (one / "words.txt").rename(one / "word.txt")
    assert folder_digest(one) != digest
    assert folder_digest(one, frozenset({"word.txt"})) == folder_digest(
        tmp_path / "two", frozenset({"words.txt"})
    )


def test_other_resources_inside_a_folder_are_not_its_sources(tmp_path: Path) -> None:
    world = folder(tmp_path / "world")
    (world / "tasks" / "crane").mkdir(parents=True)
    (world / "tasks" / "crane" / "task.yaml").write_text("name: crane\n")
    (world / "tasks" / "crane" / "rows.jsonl").write_text("{}\n")
    (world / "data").mkdir()
    (world / "data" / "more.txt").write_text("")
    assert [path.name for path in sources(world)] == ["more.txt", "verifier.yaml", "verify.py", "words.txt"]


def test_code_in_a_project_is_its_folder_without_the_manifest(tmp_path: Path) -> None:
    home = folder(tmp_path / "home")
    solved = refs.load("verify.py:solved", home)
    one = code_identity(solved, home)
    (home / "verifier.yaml").write_text("name: solved\ntitle: New\n")
    (home / "cases").mkdir()
    (home / "cases" / "right.yaml").write_text("{}")
    assert code_identity(solved, home) == one
    (home / "words.txt").write_text("crate\n")
    assert code_identity(solved, home) != one


def test_code_built_in_python_is_its_file(tmp_path: Path) -> None:
    home = folder(tmp_path / "home")
    solved = refs.load("verify.py:solved", home)
    alone = code_identity(solved, None)
    assert alone == {"name": "solved", "source": file_digest(home / "verify.py").removeprefix("sha256:")}
    assert code_identity(solved, tmp_path / "home2") == alone != code_identity(solved, home)
    (home / MADE_IN_PYTHON).touch()
    assert code_identity(solved, home) == alone
