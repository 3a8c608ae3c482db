"""Manifests on disk: what is read, what is refused, and in which words."""

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plural_gym.errors import Problem, ProjectError
from plural_gym.manifest import Document, inside, load, text_or_file
from plural_gym.manifest_errors import explain


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    turns: int = Field(default=1, ge=1, le=9)
    ratio: float = Field(default=0.5, gt=0, lt=1)


class Sample(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    title: str = ""
    live: bool = False
    mode: Literal["auto", "always", "never"] = "auto"
    kind: Literal["one"] = "one"
    limits: Inner = Inner()
    many: dict[str, Inner] = {}
    steps: list[Inner] = []
    words: Annotated[list[str], Field(min_length=1)] = ["x"]
    secrets: list[str] = []
    pattern: str = Field(default="a", pattern="^a$")
    free: dict[str, Any] = {}
    finite: float = Field(default=0.0, allow_inf_nan=False)


def read(folder: Path, text: str | bytes) -> Document:
    path = folder / "sample.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(path, root=folder)


def problems_of(folder: Path, text: str | bytes) -> list[str]:
    with pytest.raises(ProjectError) as caught:
        read(folder, text).parse(Sample)
    assert all(problem.file == "sample.yaml" for problem in caught.value.problems)
    return [f"{problem.line}: {problem.message}" for problem in caught.value.problems]


YAML_FAULTS = [
    ("", None, "is empty; write at least 'name:'."),
    ("# nothing\n", None, "is empty; write at least 'name:'."),
    ("\n- a\n", 2, "must hold 'key: value' lines at its top, not ['a']."),
    ("just text", 1, "must hold 'key: value' lines at its top, not 'just text'."),
    (b"name: a\ntitle: \xff\n", 2, "is not UTF-8 text (byte 0xff); save it as UTF-8."),
    ("name: a\ntitle: \x01\n", 2, "holds the control character '\\x01'; remove it."),
    (
        "name: a\ntitle: b: c\n",
        2,
        "is not valid YAML: mapping values are not allowed here; put quotes around a text that holds ': '.",
    ),
    (
        "\tname: a\n",
        1,
        "is not valid YAML: found character '\\t' that cannot start any token; indent with spaces.",
    ),
    (
        "name: @a\n",
        1,
        "is not valid YAML: found character '@' that cannot start any token; put quotes around the text.",
    ),
    (
        "name: a\ntitle: 'b\n",
        2,
        "is not valid YAML: found unexpected end of stream (while scanning a quoted scalar from line 2); "
        "close what was opened.",
    ),
    (
        "name:\n - b\n c: d\n",
        3,
        "is not valid YAML: expected <block end>, but found '?' "
        "(while parsing a block collection from line 2); align it with the lines above.",
    ),
    ('name: "\\UFFFFFFFF"\n', None, "is not valid YAML: Python int too large to convert to C int."),
    ("name: a\nfree: " + "[" * 80, 2, "is nested more than 64 levels deep; flatten it."),
    ("name: a\ntitle: b\nname: c\n", 3, "key 'name' stands twice, first on line 1; keep one."),
    ("name: a\nlimits:\n  turns: 1\n  turns: 2\n", 4, "key 'turns' stands twice, first on line 3; keep one."),
    ("name: !foo a\n", 1, "tag '!foo' is not allowed; write plain values, and text in quotes."),
    ("name: a\nfree: !!set {b}\n", 2, "tag '!!set' is not allowed; write plain values, and text in quotes."),
    (
        "name: !!python/object/apply:os.system a\n",
        1,
        "tag '!!python/object/apply:os.system' is not allowed; write plain values, and text in quotes.",
    ),
    ("name: a\nfree: {1: b}\n", 2, "a key must be text, not 1; put it in quotes."),
    ("name: a\nfree: {[b]: c}\n", 2, "a key must be text, not ['b']; put it in quotes."),
    ("name: a\n---\nname: b\n", 2, "starts a second YAML document; keep one in each file."),
    ("name: a\nfree: {b: *c}\n", 2, "alias '*c' has no anchor '&c' above it; add one."),
    ("name: a\nfree: {b: &c [*c]}\n", 2, "alias '*c' stands inside its own anchor; write the value out."),
    ("name: a\nfree:\n  <<: 5\n", 3, "'<<' merges mappings, not 5; name an anchored mapping."),
    (
        "name: a\nfree: {b: .nan}\n",
        2,
        "'.nan' is a number that JSON cannot hold; use null, or put it in quotes.",
    ),
    (
        "name: a\nfree: {a:\n\n-.inf}\n",
        4,
        "'-.inf' is a number that JSON cannot hold; use null, or put it in quotes.",
    ),
    ("name: a\nfree: {b: 1e999}\n", 2, "number 1e999 is too large; put it in quotes to mean text."),
    (
        f"name: a\nfree: {{b: {'9' * 5000}}}\n",
        2,
        f"number {'9' * 79}… is too large; put it in quotes to mean text.",
    ),
    (
        'name: a\nfree: {b: "\\ud800"}\n',
        2,
        "holds half of a surrogate pair, which no file can; write the whole character.",
    ),
]

MODEL_FAULTS = [
    ("title: a\n", 1, "'name' is missing."),
    ("\n\nname: a\ntitel: b\n", 4, "unknown key 'titel'; did you mean 'title'?"),
    (
        "name: a\nlimits:\n  turns: 2\n  turn: 3\n",
        4,
        "unknown key 'turn' in 'limits'; did you mean 'turns'?",
    ),
    ("name: a\nsteps:\n- {}\n- {x: 1}\n", 4, "unknown key 'x' in 'steps[1]'; known keys: ratio, turns."),
    ("name: a\nmany:\n  b:\n    x: 1\n", 4, "unknown key 'x' in 'many.b'; known keys: ratio, turns."),
    ("name: 5\n", 1, "'name' must be text, not 5; put it in quotes."),
    ("name: true\n", 1, "'name' must be text, not true; put it in quotes."),
    ("name:\n", 1, "'name' must be text, not null; give it a value or remove the key."),
    ("name: [b]\n", 1, "'name' must be text, not ['b']."),
    ("name: a\nlive: no\n", 2, "'live' must be true or false, not 'no'."),
    ("name: a\nwords: b\n", 2, "'words' must be a list, not 'b'; write [b]."),
    ("name: a\nwords: []\n", 2, "'words' must hold at least 1 entry, and holds 0."),
    ("name: a\nwords:\n- b\n- 3\n", 4, "'words[1]' must be text, not 3; put it in quotes."),
    ("name: a\nlimits: 5\n", 2, "'limits' must be a mapping, not 5."),
    ("name: a\nmany: b\n", 2, "'many' must be a mapping, not 'b'."),
    ("name: a\nlimits: {turns: eight}\n", 2, "'limits.turns' must be a whole number, not 'eight'."),
    ("name: a\nlimits: {turns: 2.5}\n", 2, "'limits.turns' must be a whole number, not 2.5."),
    ("name: a\nlimits: {ratio: b}\n", 2, "'limits.ratio' must be a number, not 'b'."),
    ("name: a\nlimits: {turns: 0}\n", 2, "'limits.turns' must be at least 1, not 0."),
    ("name: a\nlimits: {turns: 10}\n", 2, "'limits.turns' must be at most 9, not 10."),
    ("name: a\nlimits: {ratio: 0}\n", 2, "'limits.ratio' must be greater than 0, not 0."),
    ("name: a\nlimits: {ratio: 1}\n", 2, "'limits.ratio' must be less than 1, not 1."),
    (
        "name: a\nmode: allways\n",
        2,
        "'mode' must be 'auto', 'always' or 'never', not 'allways'; did you mean 'always'?",
    ),
    ("name: a\nmode: 5\n", 2, "'mode' must be 'auto', 'always' or 'never', not 5."),
    ("name: a\nkind: zwei\n", 2, "'kind' must be 'one', not 'zwei'."),
    ("name: a\nsecrets: [5]\n", 2, "'secrets[0]' must be text; put it in quotes."),
    ("name: a\nsecrets: sk-live-1\n", 2, "'secrets' must be a list."),
    ("name: a\npattern: b\n", 2, "'pattern': string should match pattern '^a$', not 'b'."),
    ("name: a\nlimits: " + "b" * 200, 2, "'limits' must be a mapping, not '" + "b" * 78 + "…."),
]


@pytest.mark.parametrize(("text", "line", "message"), YAML_FAULTS)
def test_what_is_wrong_with_the_yaml_is_said_with_its_line(
    tmp_path: Path, text: str | bytes, line: int | None, message: str
) -> None:
    assert problems_of(tmp_path, text) == [f"{line}: {message}"]


@pytest.mark.parametrize(("text", "line", "message"), MODEL_FAULTS)
def test_what_does_not_fit_the_model_is_said_with_its_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    assert problems_of(tmp_path, text) == [f"{line}: {message}"]


def test_every_problem_is_told_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    text = "titel: a\nlimits:\n  turns: 0\ntags: !foo b\nlimits: {}\n"
    assert [problem.partition(":")[0] for problem in problems_of(tmp_path, text)] == [
        "1",
        "1",
        "3",
        "4",
        "4",
        "5",
    ]


def test_a_fault_that_stops_reading_brings_the_earlier_ones_along(tmp_path: Path) -> None:
    told = problems_of(tmp_path, "name: a\nname: b\ntitle: c: d\n")
    assert [problem[:2] for problem in told] == ["2:", "3:"]


def test_problems_hold_the_faults_and_what_the_model_says(tmp_path: Path) -> None:
    document = read(tmp_path, "name: a\nname: b\nlive: 3\n")
    assert document.data == {"name": "a", "live": 3}
    with pytest.raises(ValidationError) as caught:
        Sample.model_validate(document.data)
    assert [problem.line for problem in document.problems(caught.value, Sample)] == [2, 3]
    assert document.problems(None, Sample) == list(document.faults)


def test_a_number_from_python_that_is_not_finite_is_explained() -> None:
    with pytest.raises(ValidationError) as caught:
        Sample(name="a", finite=float("inf"))
    assert explain(caught.value, Sample) == [(("finite",), "'finite' must be a finite number, not inf.")]


def test_scalars_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    text = (
        "%YAML 1.1\n---\nno: no\ndate: 2024-01-01\ntime: 12:30\nyes: on\nnull_: ~\nempty:\n"
        "true_: True\nhex: 0x1F\noctal: 0o17\n"
        "zero: 017\nunderscore: 1_000\nfloat: 1e3\ndot: .5\nminus: -3\nversion: 1.0.0\n"
        "quoted: '5'\nblock: |\n  a\n  b\n"
    )
    assert read(tmp_path, text).data == {
        "no": "no", "date": "2024-01-01", "time": "12:30", "yes": "on", "null_": None, "empty": None,
        "true_": True, "hex": 31, "octal": 15, "zero": 17, "underscore": "1_000", "float": 1000.0, "dot": 0.5,
        "minus": -3, "version": "1.0.0", "quoted": "5", "block": "a\nb\n",
    }  # fmt: skip


def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path: Path) -> None:
    document = read(tmp_path, b"\xef\xbb\xbfname: a\r\ntitle: b\r\n")
    assert document.data == {"name": "a", "title": "b"}
    assert document.line(("title",)) == 2


def test_aliases_are_copies_and_merges_give_way_to_what_is_written(tmp_path: Path) -> None:
    text = "a: &a {x: [1], y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], x: 0}\nd: *a\ne: {'<<': 1}\n"
    data = read(tmp_path, text).data
    assert data["c"] == {"x": 0, "y": 2, "z": 4}
    assert data["d"] == data["a"] and data["d"]["x"] is not data["a"]["x"]
    assert data["e"] == {"<<": 1}


def test_a_problem_in_an_aliased_value_is_shown_where_the_value_is_written(tmp_path: Path) -> None:
    text = "name: a\nfree:\n  b: &b\n    turns: 0\nlimits:\n  *b\n"
    assert problems_of(tmp_path, text) == ["4: 'limits.turns' must be at least 1, not 0."]


def test_aliases_cannot_grow_without_bound(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
    )
    started = time.perf_counter()
    (told,) = problems_of(tmp_path, bomb)
    assert told.endswith("holds more than 200,000 values, aliases counted; move data to rows.")
    deep = "a0: &a0 [x]\n" + "".join(f"a{level}: &a{level} [*a{level - 1}]\n" for level in range(1, 80))
    assert problems_of(tmp_path, deep) == ["64: is nested more than 64 levels deep; flatten it."]
    assert time.perf_counter() - started < 5


def test_lines_are_those_of_keys_and_entries(tmp_path: Path) -> None:
    document = read(tmp_path, "# note\na:\n  - x\n  -\n    b: 1\n    c: >-\n      text\n\nd: {e:\n 5}\n")
    places: dict[tuple[int | str, ...], int] = {
        (): 2, ("a",): 2, ("a", 0): 3, ("a", 1): 5, ("a", 1, "c"): 6, ("a", 7): 2, ("d",): 9, ("d", "e"): 9,
        ("d", "missing"): 9, ("a", 1, "label", "c"): 6, ("nothing",): 2,
    }  # fmt: skip
    assert {loc: document.line(loc) for loc in places} == places
    assert document.problem(("d",), "is odd.") == Problem("sample.yaml", 9, "is odd.")


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside.yaml").write_text("name: a\n")
    (project / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (project / "large.yaml").write_bytes(b"#" * (16 * 1024 * 1024 + 1))
    os.mkfifo(project / "pipe.yaml")
    outside = "lies outside the project, itself or by a link; copy it into the project."
    said = {
        "missing.yaml": "cannot be read: No such file or directory.",
        "../outside.yaml": outside,
        "link.yaml": outside,
        "large.yaml": "is too large (16,777,217 bytes, at most 16,777,216); move data to rows.",
        "pipe.yaml": "is not a file.",
        ".": "is not a file.",
    }
    for name, message in said.items():
        with pytest.raises(ProjectError) as caught:
            load(project / name, root=project)
        assert [problem.message for problem in caught.value.problems] == [message]


@given(st.text() | st.text(alphabet="ab:-[]{}&*!'\"|>%@#,?\n\t <~\\", max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        document = read(folder, text.encode("utf-8", "replace"))
    except ProjectError as error:
        assert str(error).startswith("sample.yaml")
    else:
        json.dumps(document.data, allow_nan=False).encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_json_is_read_as_it_is(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    document = read(tmp_path_factory.getbasetemp(), json.dumps({"free": value}))
    assert document.data == {"free": value} and not document.faults


# --- paths ---


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    folder = root / "verifiers" / "solved"
    folder.mkdir(parents=True)
    (folder / "verify.py").write_text("")
    (folder / "task.md").write_text("Guess.\n")
    (root / "shared.py").write_text("")
    (tmp_path / "project-secret.py").write_text("")
    (folder / "near.py").symlink_to(root / "shared.py")
    (folder / "far.py").symlink_to(tmp_path / "project-secret.py")
    (folder / "up").symlink_to(tmp_path)
    (folder / "broken.py").symlink_to(folder / "gone.py")
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "pipe")
    return root


@pytest.mark.parametrize(
    "relative", ["verify.py", "./verify.py", "../../shared.py", "near.py", "up2/../verify.py"]
)
def test_paths_inside_the_project_are_followed(project: Path, relative: str) -> None:
    (project / "verifiers" / "solved" / "up2").mkdir()
    found = inside(project, "verifiers/solved", relative)
    assert found.is_file() and found.is_relative_to(project)
    assert inside(project, project / "verifiers" / "solved", relative) == found


@pytest.mark.parametrize(
    ("relative", "message"),
    [
        ("", "path '' cannot be followed; write a relative path with '/' between its parts."),
        ("a\0b", "path 'a\\x00b' cannot be followed; write a relative path with '/' between its parts."),
        ("a\\b", "path 'a\\\\b' cannot be followed; write a relative path with '/' between its parts."),
        ("C:/b", "path 'C:/b' cannot be followed; write a relative path with '/' between its parts."),
        ("/etc/passwd", "path '/etc/passwd' is absolute; write it relative to verifiers/solved."),
        ("../../../x", "path '../../../x' leaves the project; copy what it needs into the project."),
        (
            "../../../project-secret.py",
            "path '../../../project-secret.py' leaves the project; copy what it needs into the project.",
        ),
        (
            "far.py",
            "path 'far.py' follows the link 'far.py' out of the project; "
            "copy what it needs into the project.",
        ),
        (
            "up/project/shared.py",
            "path 'up/project/shared.py' follows the link 'up' out of the project; "
            "copy what it needs into the project.",
        ),
        ("verfy.py", "'verfy.py' not found: verifiers/solved has no 'verfy.py'; did you mean 'verify.py'?"),
        ("verify.py/x", "'verify.py/x' not found: verifiers/solved/verify.py has no 'x'; there are none."),
        ("../../zzz", "'../../zzz' not found: the project has no 'zzz'; it has: shared.py, verifiers."),
        ("pipe", "'pipe' is neither a file nor a folder."),
    ],
)  # fmt: skip
def test_paths_that_lead_out_or_nowhere_are_refused(project: Path, relative: str, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        inside(project, "verifiers/solved", relative)
    assert caught.value.problems == (Problem("verifiers/solved", None, message),)


@pytest.mark.parametrize("relative", ["broken.py", "loop", "loop/x"])
def test_links_to_nothing_are_not_found(project: Path, relative: str) -> None:
    with pytest.raises(ProjectError, match="not found"):
        inside(project, "verifiers/solved", relative)


def test_the_problem_of_a_path_is_shown_where_it_is_written(project: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        inside(project, "verifiers/solved", "/x", file="verifiers/solved/verifier.yaml", line=4)
    assert str(caught.value).startswith("verifiers/solved/verifier.yaml:4: path '/x' is absolute")
    with pytest.raises(ProjectError, match=r"folder '../x' lies outside the project\."):
        inside(project, "../x", "y")


def test_instructions_are_text_or_a_markdown_file(project: Path) -> None:
    def told(text: str) -> str:
        return text_or_file(project, "verifiers/solved", text)

    assert told("task.md") == "Guess.\n"
    assert told("Write README.md") == "Write README.md"
    assert told("Guess.\nWrite task.md") == "Guess.\nWrite task.md"
    assert told("Guess.") == "Guess."
    with pytest.raises(ProjectError, match=r"has no 'tsk.md'; did you mean 'task.md'\?"):
        told("tsk.md")
    (project / "verifiers" / "solved" / "my task.md").write_text("Win.")
    assert told("my task.md") == "Win."
    (project / "verifiers" / "solved" / "bytes.md").write_bytes(b"\n\xff")
    with pytest.raises(ProjectError, match=r"^verifiers/solved/bytes.md:2: is not UTF-8 text"):
        told("bytes.md")
