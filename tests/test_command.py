"""A check that is a program: what may be one, and what its end and output mean."""

from pathlib import Path
from typing import Any

import pytest

from plural_gym.command import Command, Ran, script_of
from plural_gym.errors import DefinitionError, GradingFault


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((), "command is empty; name a program, such as ['python', 'grade.py']"),
        ([], "command is empty"),
        ("python grade.py", "write its words as a list: ['python', 'grade.py']"),
        ("python 'grade", "write its words as a list: ['python', \"'grade\"]"),
        (5, "command is a list of words such as ['python', 'grade.py'], not 5"),
        (["python", 5], "command[1] is 5; a word is a text: '5'"),
        (["python", None], "command[1] is None"),
        ([" "], "command[0] is empty; it names the program"),
        (["a\0b"], "command[0] 'a\\x00b' holds what no program can be given"),
        (["a", "\ud800"], "holds what no program can be given"),
    ],
)
def test_what_no_system_could_run_is_refused_when_it_is_built(command: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Command(command)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": True}, "timeout_s is a number, not True"),
        ({"timeout": 3}, "timeout is no field; did you mean 'timeout_s'?"),
        ({"folder": "/no/such/folder"}, "folder '/no/such/folder' is no folder"),
    ],
)
def test_its_other_fields_are_checked(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Command(["true"], **fields)
    assert message in str(caught.value)


def test_it_is_a_value() -> None:
    assert Command(["true"]) == Command(command=("true",)) and hash(Command(["true"]))
    assert str(Command(["python", "a b.py"])) == "python 'a b.py'"
    assert len(str(Command(["x" * 500]))) == 80


def test_it_takes_the_verifiers_folder_and_time_unless_it_has_its_own(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert Command(["true"]).of(tmp_path, 60.0) == Command(["true"], folder=tmp_path, timeout_s=60)
    given = Command(["true"], folder=own, timeout_s=3)
    assert given.of(tmp_path, 60.0) == given
    assert Command(["true"]).of(None, 60.0).folder is None


def test_its_identity_is_its_words_and_its_files(tmp_path: Path) -> None:
    (tmp_path / "grade.py").write_text("pass")
    command = Command(["python", "grade.py"], folder=tmp_path)
    before = command.identity()
    assert Command(["python", "grade.py"], folder=tmp_path, timeout_s=5).identity() == before
    for name in ("verifier.yaml", "README.md", "cases/correct.yaml", "__pycache__/grade.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("changed")
        assert command.identity() == before, name
    assert [str(inside) for _, inside in command.files()] == ["grade.py"]
    assert Command(["python", "./grade.py"], folder=tmp_path).identity() != before
    (tmp_path / "data").mkdir()
    (tmp_path / "data/words.txt").write_text("crane")
    assert command.identity() != before


@pytest.mark.parametrize(
    ("command", "script"),
    [
        (["python", "grade.py"], "grade.py"),
        (["python3", "-u", "sub/grade.py", "-c", "x"], "sub/grade.py"),
        (["python", "-c", "import grade.py"], None),
        (["python", "-m", "grade.py"], None),
        (["python", "/opt/grade.py"], None),
        (["python"], None),
        (["./grade.sh", "x"], "./grade.sh"),
        (["pytest", "tests"], None),
        (["/bin/true"], None),
        ([], None),
    ],
)
def test_a_command_may_name_a_file_of_its_folder(command: list[str], script: str | None) -> None:
    assert script_of(command) == script


# --- what its end means ---


def ran(status: int | None, stdout: str | bytes = "", stderr: str = "", cut: bool = False) -> Ran:
    out = stdout if isinstance(stdout, bytes) else stdout.encode()
    return Ran(status, f"it exited with status {status}", out, stderr.encode(), cut)


@pytest.mark.parametrize(("status", "score"), [(0, 1.0), (1, 0.0)])
def test_without_an_output_the_exit_status_is_the_score(status: int, score: float) -> None:
    output = ran(status, "...F..\n\n1 failed, 2 passed\n").output()
    assert output.score == score
    assert output.evidence == (f"it exited with status {status}", "...F..", "1 failed, 2 passed")
    assert ran(status, "", "to stderr\n").output().evidence[1:] == ("to stderr",)


def test_an_output_is_read_from_standard_output() -> None:
    said = '{"score": 0.5, "scores": {"loss": 2}, "evidence": ["half"], "feedback": "so so"}\n'
    for status in (0, 1):
        output = ran(status, said, "a warning").output()
        assert (output.score, output.scores, output.evidence) == (0.5, {"loss": 2.0}, ("half",))
        assert output.feedback == "so so"


@pytest.mark.parametrize("status", [2, 3, 77, 255, None])
def test_any_other_end_is_a_fault_whatever_was_printed(status: int | None) -> None:
    with pytest.raises(GradingFault) as caught:
        ran(status, '{"score": 1.0}', "one\n\ntwo\nthree\n4\n5\n6\n").output()
    assert str(caught.value) == (f"it exited with status {status}\n    two\n    three\n    4\n    5\n    6")


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ('{"score": 1', "EOF while parsing"),
        ('{"score": 1} and more', "trailing characters"),
        ('{"score": 1}\n{"score": 0}', "trailing characters"),
        ("{}", "score is missing"),
        ('{"score": NaN}', "score"),
        ('{"score": "high"}', "score"),
        ('{"score": 1, "scor": 2}', "scor is no field; did you mean 'score'?"),
        ('{"score": 1, "evidence": [1]}', "evidence"),
        ("[1.0]", 'print an object such as {"score": 1.0}'),
        ("0.75", 'is none: 0.75; print an object such as {"score": 1.0}'),
        ('{"a":' * 100_000, "recursion limit"),
        (b'{"score": 1.0, "feedback": "\xff"}', "invalid unicode"),
        ('loading ...\n{"score": 0.0}\n', "other lines before it; print nothing else to stdout"),
        ('loading ...\n{\n  "score": 0.0\n}\n', "other lines before it"),
    ],
)
def test_what_looks_like_an_output_and_is_none_is_a_fault(printed: str | bytes, message: str) -> None:
    with pytest.raises(GradingFault) as caught:
        ran(0, printed).output()
    assert message in str(caught.value)


def test_an_output_that_was_cut_is_a_fault() -> None:
    with pytest.raises(GradingFault, match="it is too long; print less evidence"):
        ran(0, '{"score": 1.0}', cut=True).output()
    assert ran(0, "...", cut=True).output().score == 1.0


@pytest.mark.parametrize("printed", ["true\n", "null", '"billing"\n', "{score}: set notation"[1:], ""])
def test_other_lines_are_no_output(printed: str) -> None:
    assert ran(0, printed).output().score == 1.0


RAISED = """Traceback (most recent call last):
  File "/tmp/plural-check-x/verifier/grade.py", line 7, in <module>
    grade()
  File "/usr/lib/python3.11/json/__init__.py", line 1, in loads
    ~~~~^^^
KeyError: 'done'
"""
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/tmp/plural-check-x/verifier/grade.py", line 3, in <module>
  |     raise ExceptionGroup("two", [ValueError(1)])
  | ExceptionGroup: two (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +------------------------------------
"""
BAD_SYNTAX = (
    '  File "/tmp/plural-check-x/verifier/grade.py", line 1\n    x x\n      ^\nSyntaxError: invalid syntax\n'
)


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        (RAISED, "it raised KeyError: 'done' (at grade.py:7)"),
        (RAISED.replace("'done'", "two\nlines"), "it raised KeyError: two (at grade.py:7)"),
        (RAISED.replace("KeyError: 'done'", "MyOwn"), "it raised MyOwn (at grade.py:7)"),
        (
            RAISED
            + "\nDuring handling of the above exception, another exception occurred:\n\n"
            + RAISED.replace("KeyError: 'done'", "ValueError: 5"),
            "it raised ValueError: 5",
        ),
        (GROUP, "it raised ExceptionGroup: two (1 sub-exception) (at grade.py:3)"),
        (BAD_SYNTAX, "Python could not begin it: SyntaxError: invalid syntax"),
        ("/venv/bin/python: No module named pytest\n", "could not begin it: No module named pytest"),
    ],
)
def test_an_exception_of_the_grader_is_never_a_score_of_0(stderr: str, message: str) -> None:
    with pytest.raises(GradingFault) as caught:
        ran(1, "", stderr).output()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "stderr",
    [
        "",
        "3 of 4 words are wrong\n",
        RAISED.replace("KeyError: 'done'", "AssertionError: not sorted"),
        RAISED.replace("KeyError: 'done'", "AssertionError"),
        "Exception ignored in: <function X.__del__ at 0x7f>\n" + RAISED,
        "Exception in thread Thread-1 (run):\n" + RAISED,
    ],
)
def test_an_assertion_that_fails_is_a_score_of_0(stderr: str) -> None:
    assert ran(1, "", stderr).output().score == 0.0


def test_what_a_terminal_would_obey_is_shown_as_its_escape() -> None:
    output = ran(1, b"\x1b[2Jgone\n\xff\xfe\n" + "ünï‮code\n".encode()).output()
    assert output.evidence[1:] == ("\\x1b[2Jgone", "\\xff\\xfe", "ünï\\u202ecode")
    assert ran(0, "x" * 5000 + "\n").output().evidence[1] == "x" * 300 + "…"
