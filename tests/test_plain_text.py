"""Text for people's eyes."""

import pytest

from plural_gym.plain_text import called, printable, width, wrapped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\r\nand", "two\nlines\nand"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\rb", "a\\rb"),
        ("half \ud83d", "half \\ud83d"),
        ("\u202eevil", "\\u202eevil"),
        ("\x9b2J", "\\x9b2J"),
        ("é 日本 🎉", "é 日本 🎉"),
    ],
)
def test_what_would_do_something_is_written_as_its_escape(text: str, shown: str) -> None:
    assert printable(text) == shown
    printable(text).encode()


def test_a_call_is_written_as_in_python() -> None:
    assert called("guess", {"word": "crane", "loud": True}) == "guess(word='crane', loud=True)"
    assert called("", {}) == "?()"
    assert called("say", {"text": "\x1b[2J\u202e"}) == "say(text='\\x1b[2J\\u202e')"


def test_width_counts_columns() -> None:
    assert [width(text) for text in ("abc", "日本", "e\u0301", "")] == [3, 4, 1, 0]


def test_lines_are_broken_between_words_and_only_where_they_must() -> None:
    assert list(wrapped("one two three", 7)) == ["one two", "three"]
    assert list(wrapped("  #..#  \n  ....  ", 8)) == ["  #..#  ", "  ....  "]
    assert list(wrapped("abcdefgh", 3)) == ["abc", "def", "gh"]
    assert list(wrapped("", 5)) == [""] and list(wrapped("a\n\nb", 5)) == ["a", "", "b"]
    assert list(wrapped("日本語", 4)) == ["日本", "語"]
    assert list(wrapped("abc", 0)) == ["a", "b", "c"], "a single character always fits"
    assert "".join(wrapped("x" * 10_000, 7)) == "x" * 10_000
