"""Hashed features of text: alike everywhere, and different where the text differs."""

import subprocess
import sys

import numpy as np

from plural_gym.rl.text_features import hashed

MARKS = "s=- l=- a=g t=- e=g"
PRINTS = """
from plural_gym.rl.text_features import hashed
numbers, signs = hashed({text!r}, (1, 2), 16)
print(numbers.tolist(), signs.tolist())
"""


def test_another_process_finds_the_same_numbers() -> None:
    numbers, signs = hashed(MARKS, (1, 2), 16)
    for seed in ("0", "1"):
        said = subprocess.run(
            [sys.executable, "-c", PRINTS.format(text=MARKS)],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert said == f"{numbers.tolist()} {signs.tolist()}\n"


def test_the_numbers_never_change() -> None:
    """Policies are trained on them: another hash would need another name."""
    numbers, signs = hashed("lamp on", (1,), 0)
    assert numbers.tolist() == [774343677114695962, 1593219807018289146]
    assert signs.tolist() == [1.0, -1.0]


def test_words_pairs_and_places_are_features() -> None:
    def count(text: str, ngrams: tuple[int, ...], places: int) -> int:
        numbers, signs = hashed(text, ngrams, places)
        assert len(numbers) == len(signs) and set(np.unique(signs)) <= {-1.0, 1.0}
        assert (numbers >= 0).all()
        return len(numbers)

    assert count("a b c", (1,), 0) == 3
    assert count("a b c", (1, 2, 3), 0) == 6
    assert count("a b c", (1,), 3) == 6
    assert count("a b c", (1,), 2) == 3, "the line is too long for places"
    assert count("a b\nc", (2,), 0) == 1, "runs stay within their line"
    assert count("", (1, 2), 16) == 0 == count("a", (2,), 0)


def test_json_parts_into_its_words() -> None:
    assert sorted(hashed('{"status":"open","n":[1,2]}', (1,), 0)[0].tolist()) == sorted(
        hashed("status open n 1 2", (1,), 0)[0].tolist()
    )


def test_text_of_any_script_and_broken_text_are_taken() -> None:
    numbers, _ = hashed("é 日本 \ud800", (1,), 0)
    assert len(set(numbers.tolist())) == 3
