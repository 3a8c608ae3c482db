"""Boards: what authors write in three lines, as values, text and HTML."""

import re
from typing import Any

import pytest

from plural_gym.board import COLORS, Board, Cell, shared
from plural_gym.errors import DefinitionError


def plain(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_whatever_stands_in_a_row_becomes_a_cell() -> None:
    board = Board([["X", 1, Cell("O", "green")], (2.5,)])
    assert board.rows == ((Cell("X"), Cell("1"), Cell("O", "green")), (Cell("2.5"),))
    assert Board([letter] for letter in "ab") == Board([["a"], ["b"]])
    assert Board([]).text() == "" and Board([[]]).text() == ""


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("abc", r"rows are rows of cells, got 'abc'; write \[\[...\], \[...\]\]"),
        (Cell("a"), "rows are rows of cells"),
        (3, "rows are rows of cells, got 3"),
        (["abc"], r"a row of a Board is a sequence of cells, got 'abc'; write \['abc'\]"),
        ([Cell("a")], "a row of a Board is a sequence of cells"),
        ([3], r"got 3; write \[3\]"),
    ],
)
def test_what_is_no_rows_of_cells_is_refused(rows: Any, says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        Board(rows)


def test_a_color_is_a_name_or_six_digits() -> None:
    assert Cell("a", "green").background == COLORS["green"] and Cell("a", "#AbCdEf").background == "#AbCdEf"
    assert Cell("a", "black").color == COLORS["white"] and Cell("a", "white").color == COLORS["black"]
    assert Cell("a").color is None and Cell("a", color="red").color == COLORS["red"]
    with pytest.raises(DefinitionError, match=r"no color 'gren'.*did you mean 'green'"):
        Cell("a", "gren")
    for wrong in ("#fff", "rgb(1,2,3)", 7, "red;}</style>"):
        with pytest.raises(DefinitionError, match="no color"):
            Cell("a", color=wrong)  # type: ignore[arg-type]


def test_tiles_stand_in_equal_squares() -> None:
    board = Board([["X", ""], [Cell("10", "green"), "é"]], title="Game", caption="X to move", tiles=True)
    assert board.text().split("\n") == ["Game", " X    ·  ", " 10   é  ", "X to move"]
    colored = board.text(colored=True)
    assert "\x1b[38;2;255;255;255;48;2;83;141;78m 10 \x1b[0m" in colored
    assert plain(colored) == str(board) == board.text()


def test_neighbouring_rows_with_equally_many_cells_share_columns() -> None:
    board = Board([["a", "b", "c"], ["From", "Ada"], ["To", "Bo"], ["alone"]])
    assert board.text() == "a  b  c\nFrom  Ada\nTo    Bo\nalone"


def test_a_long_text_goes_on_in_its_column() -> None:
    text = Board([["Wrote", "word " * 40], ["Sent", "no"]]).text()
    lines = text.split("\n")
    assert max(map(len, lines)) <= 72 and len(lines) > 3
    assert lines[0].startswith("Wrote  word") and all(line.startswith("       word") for line in lines[1:-1])
    assert lines[-1] == "Sent   no"


def test_columns_that_do_not_fit_are_cut_to_one_size() -> None:
    assert shared([3, 50, 40], 30) == [3, 14, 13]
    assert shared([3, 4], 30) == [3, 4]
    assert shared([9] * 5, 3) == [1] * 5


def test_nothing_on_a_board_moves_the_cursor() -> None:
    board = Board([["\x1b[2Jgone", "a\tb"]], title="\x07bell", caption="\u202eright to left")
    text = board.text()
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    assert "\\x1b[2Jgone" in text and "a   b" in text and "\\u202eright" in text


def test_wide_letters_take_two_columns() -> None:
    assert Board([["日本", "x"], ["abcd", "y"]]).text() == "日本  x\nabcd  y"


def test_html_shows_every_text_escaped() -> None:
    evil = "<script>alert('x')</script>"
    page = Board([[Cell(evil, "green"), evil]], title=evil, caption=evil, tiles=True)._repr_html_()
    assert "<script" not in page and page.count("&lt;script&gt;alert(&#x27;x&#x27;)") == 4
    assert "background:#538d4e" in page and "background:transparent" in page
    assert page.count("<td") == 2
