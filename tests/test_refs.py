"""Code by reference, and back from an object to where it stands."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from plural_gym import refs
from plural_gym.errors import DefinitionError
from plural_gym.refs import load, origin, pack, unpack


def test_a_file_is_loaded_once_and_anew_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "verify.py"
    file.write_text("class Solved:\n    pass\n")
    first = load("verify.py:Solved", tmp_path)
    assert load("verify.py:Solved", tmp_path) is first
    file.write_text("class Solved:\n    new = True\n")
    assert load("verify.py:Solved", tmp_path).new is True


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("verify", "'verify' is no reference to code; write 'file.py:name'"),
        ("verify.py:a.b", "is no reference to code"),
        ("verfy.py:solved", r"'verfy.py' not found in .*; did you mean 'verify.py'\?"),
        ("verify.py:solve", r"'verify.py:solve' not found in .*; did you mean 'solved'\?"),
        (
            "broken.py:x",
            r"broken.py cannot be imported: ZeroDivisionError: division by zero \(at broken.py:2\)",
        ),
        ("torn.py:x", r"torn.py cannot be imported: SyntaxError: .*\(at torn.py:1\)"),
    ],
)
def test_a_reference_that_leads_nowhere_is_explained(reference: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "verify.py").write_text("def solved(): pass\ndef progress(): pass\n")
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    (tmp_path / "torn.py").write_text("def (\n")
    for _ in range(2):
        with pytest.raises(DefinitionError, match=message):
            load(reference, tmp_path)
    assert "plural_project" not in " ".join(name for name in sys.modules if name.endswith("_broken"))


def test_siblings_of_two_folders_are_never_mixed_up(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.py").write_text(f"WORD = {name!r}\n")
        (tmp_path / name / "verify.py").write_text("from words import WORD\n")
    before = list(sys.path)
    assert load("verify.py:WORD", tmp_path / "one") == "one"
    assert load("verify.py:WORD", tmp_path / "two") == "two"
    assert sys.path == before and "words" not in sys.modules


def test_plural_is_ours_beside_another_distribution_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "site" / "plural").mkdir(parents=True)
    (tmp_path / "site" / "plural" / "__init__.py").write_text("WHOSE = 'theirs'\n")
    (tmp_path / "site" / "plural" / "inner.py").write_text("")
    (tmp_path / "app.py").write_text(
        "from plural import App, State, action\nimport plural\nOURS = plural.__name__\n"
    )
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import plural, plural.inner\n"
        "from pathlib import Path\n"
        "from plural_gym.refs import load\n"
        f"assert load('app.py:OURS', Path({str(tmp_path)!r})) == 'plural_gym'\n"
        "import plural as again\n"
        "assert plural.WHOSE == again.WHOSE == 'theirs' and sys.modules['plural.inner']\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def top(step: Any) -> float:
    return 0.5


class Outer:
    @staticmethod
    def inner(step: Any) -> float:
        return 0.5


def test_an_origin_says_where_code_stands_and_why_it_cannot_be_loaded_again(tmp_path: Path) -> None:
    (tmp_path / "verify.py").write_text("def solved(): pass\n")
    solved = origin(load("verify.py:solved", tmp_path))
    assert solved.portable and solved.name == "solved" and solved.file == str(tmp_path / "verify.py")
    assert origin(top).portable and origin(top).file == __file__ and len(origin(top).sha256 or "") == 64

    def closure() -> None:
        pass

    scope: dict[str, Any] = {"__name__": "nowhere"}
    exec("def typed(): pass", scope)
    for target, why in (
        (closure, "defined inside a function"),
        (lambda: None, "defined inside a function"),
        (Outer.inner, "Outer.inner is defined inside a class; move it to the module"),
        (scope["typed"], "defined in a notebook or at a prompt"),
        (print, "defined in a notebook or at a prompt"),
    ):
        found = origin(target)
        assert not found.portable and why in (found.why_not or "")


def test_code_reaches_another_process_by_file_by_module_or_by_value(tmp_path: Path) -> None:
    (tmp_path / "verify.py").write_text("def solved(): return 3\n")
    solved = load("verify.py:solved", tmp_path)
    assert set(pack(solved)) == {"file", "name", "sha256"} and unpack(pack(solved)) is solved
    assert pack(cloudpickle.dumps)["module"] == "cloudpickle.cloudpickle"
    assert unpack(pack(cloudpickle.dumps)) is cloudpickle.dumps
    bonus = 2
    packed = pack(lambda step: step + bonus)
    assert set(packed) == {"pickle", "written_in"} and unpack(packed)(1) == 3
    with pytest.raises(DefinitionError, match="cannot be sent to a worker process"):
        lock = __import__("threading").Lock()
        pack(lambda: lock)


def test_code_that_changed_since_it_was_packed_is_not_run(tmp_path: Path) -> None:
    file = tmp_path / "verify.py"
    file.write_text("def solved(): return 3\n")
    packed = pack(load("verify.py:solved", tmp_path))
    file.write_text("def solved(): return 4\n")
    with pytest.raises(DefinitionError, match=r"verify.py has changed since it was loaded"):
        unpack(packed)


def test_nothing_of_a_file_that_failed_stays_behind(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("import plural\nraise RuntimeError\n")
    before = sys.modules.get("plural")
    with pytest.raises(DefinitionError):
        refs.load("late.py:x", tmp_path)
    assert sys.modules.get("plural") is before


def test_code_that_travels_by_value_still_names_its_file() -> None:
    class Local:
        def method(self) -> str:
            return "".join(letter for letter in "ab")

        @property
        def told(self) -> int:
            return 1

    function = unpack(pack(lambda: [one for one in (lambda: (1,))()]))
    assert function.__code__.co_filename == __file__ and function() == [1]
    made = unpack(pack(Local))
    assert made.method.__code__.co_filename == made.told.fget.__code__.co_filename == __file__
    assert made().method() == "ab"
