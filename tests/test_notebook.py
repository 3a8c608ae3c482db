"""HTML for notebooks: every text escaped, styles that leave the page its colours."""

import re
from collections.abc import Callable
from typing import Any

from plural_gym import notebook
from plural_gym.environment import Environment
from plural_gym.episode import Episode
from plural_gym.job import JobResult
from plural_gym.task import Task
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier

EVIL = '<script>alert("x")</script>&\''
SAFE = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;&#x27;"


def seen(page: str) -> str:
    return re.sub("<[^>]*>", " ", page)


def test_every_text_is_escaped() -> None:
    pages = [
        notebook.escaped(EVIL),
        notebook.span(EVIL, notebook.BAD),
        notebook.pre(EVIL),
        notebook.fold(EVIL, ""),
        notebook.card(EVIL),
        notebook.table([EVIL], [[EVIL]], EVIL, [EVIL]),
    ]
    for page in pages:
        assert "<script" not in page and SAFE in page
    assert pages[-1].count(SAFE) == 4


def test_a_long_text_is_cut_and_says_how_long_it_was() -> None:
    shown = notebook.escaped("x" * 1_000_000)
    assert shown.endswith("… [1,000,000 characters in all]") and len(shown) < notebook.MAX_CHARS + 50
    assert notebook.escaped("x" * notebook.MAX_CHARS) == "x" * notebook.MAX_CHARS


def test_control_characters_are_written_as_escapes() -> None:
    assert notebook.escaped("\x1b[31m\u202e\x00") == "\\x1b[31m\\u202e\\x00"


def test_a_page_keeps_its_own_colours_for_text() -> None:
    page = notebook.card("title", notebook.pre("text"), notebook.table(["a"], [["b"]]), aside="x")
    assert not re.search(r"[;']color:", page) and "background:#" not in page


def test_a_job_shows_its_leaderboard_and_what_failed(counter: Any, run: Callable[..., JobResult]) -> None:
    def broken(step: Any) -> float:
        raise RuntimeError(EVIL)

    def counted(episode: Episode) -> VerifierOutput:
        return VerifierOutput(score=1.0)

    task = Task(
        name="count",
        instructions="Count.",
        environment=Environment(name="counter", apps={"counter": counter.Counter}),
        verifiers=[DeterministicVerifier(name="full", check=counted, reward=broken)],
    )
    result = run(task, lambda task, seat: seat.act("add", by=3), job_id="the-job")
    page = result._repr_html_()
    assert "<script" not in page and SAFE in page
    text = seen(page)
    assert "Job the-job" in text and "succeeded: 1 of 1 Trials" in text
    assert re.search(r"player\s+1\.000", text), "the leaderboard"
    assert "verifier full reward" in text and re.search(r"test_notebook.py:\d+", text)
