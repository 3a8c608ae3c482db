"""Rows of a Task's data file."""

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from plural_gym.errors import ProjectError
from plural_gym.rows import read_rows


def rows_of(folder: Path, name: str, content: str | bytes) -> list[tuple[int, dict[str, Any]]]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_rows(path, root=folder))


def problems_of(folder: Path, name: str, content: str | bytes) -> list[str]:
    with pytest.raises(ProjectError) as caught:
        rows_of(folder, name, content)
    return [str(problem) for problem in caught.value.problems]


def test_jsonl_is_taken_as_it_is_with_its_lines(tmp_path: Path) -> None:
    first = '{"name": "crane", "setup": {"game": {"secret": "crane"}}}'
    text = f'\ufeff{first}\r\n\n{{"name": "b", "expected": null}}\n'
    assert rows_of(tmp_path, "words.jsonl", text) == [
        (1, {"name": "crane", "setup": {"game": {"secret": "crane"}}}),
        (3, {"name": "b", "expected": None}),
    ]


def test_line_breaks_of_unicode_are_text(tmp_path: Path) -> None:
    assert rows_of(tmp_path, "a.jsonl", '{"name": "a\u2028b"}') == [(1, {"name": "a\u2028b"})]
    assert rows_of(tmp_path, "a.csv", "name\na\u2028b\n") == [(2, {"name": "a\u2028b"})]


def test_csv_builds_nested_values_and_leaves_out_empty_cells(tmp_path: Path) -> None:
    text = (
        "name,setup.game.secret,setup.game.tries,expected,info,split,instructions\n"
        'crane,crane,6,crane,"{""a"": [1]}",train,"two\nlines"\n'
        '42,"""null""",,42,,,\n\n'
        "x,007,true,1.5,NaN,12,\n"
    )
    assert rows_of(tmp_path, "words.csv", text) == [
        (
            2,
            {
                "name": "crane",
                "setup": {"game": {"secret": "crane", "tries": 6}},
                "expected": "crane",
                "info": {"a": [1]},
                "split": "train",
                "instructions": "two\nlines",
            },
        ),
        (4, {"name": "42", "setup": {"game": {"secret": "null"}}, "expected": 42}),
        (
            6,
            {
                "name": "x",
                "setup": {"game": {"secret": "007", "tries": True}},
                "expected": 1.5,
                "info": "NaN",
                "split": "12",
            },
        ),
    ]


def test_parquet_keeps_its_types_and_leaves_out_what_is_absent(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(
        [
            {
                "name": "a",
                "setup": {"game": {"secret": "crane", "tries": None}},
                "expected": "42",
                "split": None,
            },
            {"name": "b", "setup": {"game": {"secret": None, "tries": 3}}, "expected": None, "split": "test"},
        ]
    )
    parquet.write_table(table, tmp_path / "words.parquet")
    assert list(read_rows(tmp_path / "words.parquet")) == [
        (1, {"name": "a", "setup": {"game": {"secret": "crane"}}, "expected": "42"}),
        (2, {"name": "b", "setup": {"game": {"tries": 3}}, "split": "test"}),
    ]


def test_parquet_takes_setup_as_json_text_or_dotted_columns(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"name": ["a"], "setup": ['{"game": {"n": 1}}'], "info.id": [7]}), tmp_path / "a.parquet"
    )
    assert list(read_rows(tmp_path / "a.parquet")) == [
        (1, {"name": "a", "setup": {"game": {"n": 1}}, "info": {"id": 7}})
    ]


TABLE: list[tuple[str, str | bytes, list[str]]] = [
    (
        "a.txt",
        "x",
        ["a.txt: suffix '.txt' is not one that rows can have; use one of .jsonl, .csv, .parquet."],
    ),
    ("a.jsonl", "\n\n", ["a.jsonl: is empty; write at least one row with a 'name'."]),
    ("a.csv", "name\n", ["a.csv: is empty; write at least one row with a 'name'."]),
    ("a.csv", "", ["a.csv: is empty; write at least one row with a 'name'."]),
    ("a.parquet", "", ["a.parquet: is not Parquet, or damaged; write it again."]),
    (
        "a.jsonl",
        '{"name": "a"}\n{"name": }\n',
        ["a.jsonl:2: is not JSON: Expecting value at column 10; write one object a line."],
    ),
    ("a.jsonl", '["a"]\n', ["a.jsonl:1: must be an object such as {\"name\": ...}, not ['a']."]),
    ("a.jsonl", b'{"name": "a"}\n\xff\n', ["a.jsonl:2: is not UTF-8 text (byte 0xff); save it as UTF-8."]),
    ("a.jsonl", '{"name": "a", "name": "b"}', ["a.jsonl:1: key 'name' stands twice; keep one."]),
    ("a.jsonl", '{"name": NaN}', ["a.jsonl:1: NaN is a number that JSON cannot hold; use null."]),
    (
        "a.jsonl",
        '{"name": 1e999}',
        ["a.jsonl:1: number '1e999' is too large; put it in quotes to mean text."],
    ),
    ("a.jsonl", f'{{"name": {"9" * 5000}}}', ["a.jsonl:1: holds a number that is too large."]),
    (
        "a.jsonl",
        '{"name": "\\ud800"}',
        ["a.jsonl:1: holds half of a surrogate pair, which no file can; write the whole character."],
    ),
    ("a.jsonl", "[" * 65 + "]" * 65, ["a.jsonl:1: is nested more than 64 levels deep; flatten it."]),
    ("a.jsonl", "[" * 100_000, ["a.jsonl:1: is nested more than 64 levels deep; flatten it."]),
    (
        "a.jsonl",
        '{"name": "a"}\n{"name": "b"}\n{"name": "a"}\n',
        ["a.jsonl:3: name 'a' stands twice, first on line 1; rename one."],
    ),
    ("a.csv", b"name\na\n\xff\n", ["a.csv:3: is not UTF-8 text (byte 0xff); save it as UTF-8."]),
    (
        "a.csv",
        "name,split\na\nb,c,d\n",
        [
            "a.csv:2: has 1 cells, and the header 2; make them equal.",
            "a.csv:3: has 3 cells, and the header 2; make them equal.",
        ],
    ),
    (
        "a.csv",
        'name\na\n"b\n',
        ["a.csv:3: is not CSV: unexpected end of data; put quotes around cells that hold commas or quotes."],
    ),
    ("a.csv", "name,name\na,b\n", ["a.csv:1: column 'name' stands twice; keep one."]),
    ("a.csv", "name,\na,b\n", ["a.csv:1: column 2 has no name, or an empty part: ''; name it."]),
    (
        "a.csv",
        "name,setup..x\na,b\n",
        ["a.csv:1: column 2 has no name, or an empty part: 'setup..x'; name it."],
    ),
    (
        "a.csv",
        "name,setup.game,setup.game.x\na,b,c\n",
        ["a.csv:1: columns 'setup.game' and 'setup.game.x' overlap; keep one."],
    ),
    ("a.csv", "name\na\n\na\n", ["a.csv:4: name 'a' stands twice, first on line 2; rename one."]),
]


@pytest.mark.parametrize(("name", "content", "said"), TABLE)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, name: str, content: str | bytes, said: list[str]
) -> None:
    assert problems_of(tmp_path, name, content) == said


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("info", [1.0, float("nan")],
         "a.parquet:2: (row 2) column 'info' holds nan, a number that JSON cannot hold; use null."),
        ("expected", [b"x", None],
         "a.parquet:1: (row 1) column 'expected' holds a bytes, which JSON has not; store it as text."),
        ("setup", ["{", None],
         "a.parquet:1: (row 1) 'setup' is text that is not JSON: "
         "Expecting property name enclosed in double quotes at column 2."),
        ("name.x", ["a", "b"], "a.parquet:1: columns 'name' and 'name.x' overlap; keep one."),
    ],
)  # fmt: skip
def test_what_parquet_holds_and_json_cannot_is_said(
    tmp_path: Path, column: str, values: list[Any], said: str
) -> None:
    parquet.write_table(pa.table({"name": ["a", "b"], column: values}), tmp_path / "a.parquet")
    with pytest.raises(ProjectError) as caught:
        read_rows(tmp_path / "a.parquet")
    assert str(caught.value) == said


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        with pytest.raises(ProjectError) as caught:
            read_rows(tmp_path / name, root=tmp_path.parent)
        assert str(caught.value) == f"{tmp_path.name}/{name}: cannot be read: No such file or directory."


def test_a_file_elsewhere_is_shown_whole(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        read_rows(tmp_path / "a.jsonl", root=tmp_path / "project")
    assert str(caught.value).startswith(str(tmp_path / "a.jsonl"))


def test_of_very_many_problems_the_first_are_told(tmp_path: Path) -> None:
    said = problems_of(tmp_path, "a.jsonl", "x\n" * 1000)
    assert len(said) == 51 and said[-1] == "a.jsonl: has 950 more problems."


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_twenty_thousand_rows_load_in_well_under_a_second(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"words{suffix}"
    names = [f"word-{number}" for number in range(20_000)]
    if suffix == ".jsonl":
        rows = ({"name": name, "setup": {"game": {"secret": name}}, "expected": name} for name in names)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == ".csv":
        path.write_text(
            "name,setup.game.secret,expected\n" + "".join(f"{name},{name},{name}\n" for name in names)
        )
    else:
        parquet.write_table(pa.table({"name": names, "setup.game.secret": names, "expected": names}), path)
    started = time.process_time()
    assert sum(1 for _ in read_rows(path)) == 20_000
    assert time.process_time() - started < 1.0
