"""What can be read of a manifest although some of it is wrong."""

from pathlib import Path

import pytest

from plural_gym.errors import ProjectError
from plural_gym.manifest import Document, load
from plural_gym.manifest_models import BenchmarkManifest, HarnessManifest, TaskManifest, TaskRow
from plural_gym.manifest_partial import read, read_row


def document(folder: Path, text: str) -> Document:
    path = folder / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path, root=folder)


def test_a_sound_manifest_is_read_as_it_is(tmp_path: Path) -> None:
    found = read(document(tmp_path, "name: a\nplay: p.py:play\n"), HarnessManifest)
    assert (found.manifest.name, found.problems, found.dropped) == ("a", (), frozenset())


def test_what_is_wrong_is_left_out_and_entries_keep_their_lines(tmp_path: Path) -> None:
    text = "name: a\nenvironment: e\nverifiers:\n  - 1\n  - v\nlimits: {turns: 0, seconds: 3}\nx: 1\n"
    found = read(document(tmp_path, text + "rows: r.csv\n"), TaskManifest)
    assert found.manifest.verifiers == ["v"] and found.document.line(("verifiers", 0)) == 5
    assert (found.manifest.limits.turns, found.manifest.limits.seconds) == (None, 3.0)
    assert [problem.line for problem in found.problems] == [4, 6, 7]
    assert found.dropped == {"verifiers", "limits"}


def test_a_needed_key_that_is_missing_or_wrong_is_none(tmp_path: Path) -> None:
    found = read(document(tmp_path, "name: A B\ntasks: []\npurpose: x\n"), BenchmarkManifest)
    assert (found.manifest.name, found.manifest.tasks, found.manifest.purpose) == (None, None, "x")
    assert len(found.problems) == 2


def test_a_rule_is_told_unless_a_value_that_it_concerns_is_wrong(tmp_path: Path) -> None:
    found = read(document(tmp_path, "nme: a\n"), HarnessManifest)
    assert [problem.message.split(";")[0] for problem in found.problems] == [
        "'name' is missing.",
        "unknown key 'nme'",
        "'play' is missing",
    ]
    found = read(document(tmp_path, "name: a\nplay: 3\n"), HarnessManifest)
    assert len(found.problems) == 1


def test_what_the_yaml_itself_does_wrong_is_told_too(tmp_path: Path) -> None:
    found = read(document(tmp_path, "name: a\nplay: p.py:x\nplay: p.py:y\n"), HarnessManifest)
    assert found.manifest.play == "p.py:x"
    assert [problem.line for problem in found.problems] == [3]


def test_a_row_is_read_in_the_same_way() -> None:
    found = read_row("r.jsonl", 7, {"name": "a", "x": 1, "setup": {"game": {"n": 1}, "Bad": {}}}, TaskRow)
    assert found.manifest.setup == {"game": {"n": 1}}
    assert {(problem.file, problem.line) for problem in found.problems} == {("r.jsonl", 7)}


def test_a_document_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="must hold 'key: value' lines"):
        document(tmp_path, "- a\n")
