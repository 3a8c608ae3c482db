"""`plural verifier validate`: a Verifier loaded and tried in a process of its own, whatever that does."""

from typing import Any

import pytest

HEAD = "from plural import VerifierOutput\n\n"


def write(garden: Any, code: str, *hooks: str) -> None:
    """The Verifier `grown` with other code, of which `hooks` are its functions."""
    (garden.root / "verifiers/grown/verify.py").write_text(code, encoding="utf-8")
    manifest = "name: grown\nversion: 0.1.0\n" + "".join(f"{hook}: verify.py:{hook}\n" for hook in hooks)
    (garden.root / "verifiers/grown/verifier.yaml").write_text(manifest, encoding="utf-8")


def test_a_good_verifier_is_told_with_what_was_tried(garden: Any, plural: Any) -> None:
    said = plural("verifier", "validate", "grown")
    assert said.err == "" and said.out.startswith("verifier/grown is valid\nversion 0.1.0\nsha256:")
    assert said.out.splitlines()[3].startswith("tried check, hindsight on Task beds/small: ")
    facts = plural("verifier", "validate", "grown", "--json").json
    assert facts["valid"] and facts["tried"]["functions"] == ["check", "hindsight"]
    assert facts["content_hash"] == garden.project.verifiers["grown"].content_hash


def test_a_failure_on_the_made_up_attempt_is_a_warning(garden: Any, plural: Any) -> None:
    garden.edit("verifiers/grown/verify.py", 'bed["wanted"]', 'bed["wantd"]')
    said = plural("verifier", "validate", "grown")
    assert said.out.startswith("verifier/grown is valid\n")
    assert said.err == (
        "warning: verifiers/grown/verify.py:5: check raised KeyError: 'wantd' "
        "(on a made-up attempt of Task 'beds/small').\n"
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\nwhile True: pass\n", "verify.py:2: loading its code takes longer than 2 s; a module only"),
        ("import os\nos._exit(0)\n", "verifier.yaml: loading its code exits with status 0; a module only"),
        ("import ctypes\nctypes.string_at(0)\n", "loading its code is killed by SIGSEGV"),
        ("def check(episode): return 1.0\n", "verify.py:1: check returned 1.0, which is no VerifierOutput"),
    ],
)
def test_what_is_wrong_ends_with_3_and_its_line(garden: Any, plural: Any, code: str, message: str) -> None:
    write(garden, code, "check")
    said = plural("verifier", "validate", "grown", "--timeout", "2", code=3)
    assert said.err.startswith("verifiers/grown/") and message in said.err and said.out == ""


def test_what_it_prints_disturbs_nobody(garden: Any, plural: Any) -> None:
    code = HEAD + (
        "import os, sys\nprint('{\"facts\": 1}' * 10_000); sys.stderr.write('File \"x\", line 1 in y')\n"
        "os.write(1, b'x' * 100_000)\n"
        "def check(episode):\n    print('x' * 1_000_000)\n    return VerifierOutput(score=1.0)\n"
    )
    write(garden, code, "check")
    said = plural("verifier", "validate", "grown")
    assert said.err == "" and len(said.out.splitlines()) == 4


def test_a_function_that_loops_or_exits_costs_only_its_own_trial(garden: Any, plural: Any) -> None:
    code = HEAD + (
        "import os\n\ndef reward(step):\n    while True: pass\n\n"
        "def check(episode):\n    os._exit(5)\n\n"
        "def hindsight(trial):\n    yield trial.credit(1, 1)\n"
    )
    write(garden, code, "check", "reward", "hindsight")
    said = plural("verifier", "validate", "grown", "--timeout", "2")
    loop, left, late = said.err.splitlines()
    assert loop == (
        "warning: verifiers/grown/verify.py:6: reward, on a made-up attempt of its first Task, takes longer "
        "than 2 s; in a Job it would give nothing."
    )
    assert "verifier.yaml: check, on a made-up attempt of its first Task, exits with status 5" in left
    assert "verify.py:12: hindsight: no step or model call has the event_id 1" in late
    assert "tried hindsight on Task beds/small" in said.out


def test_a_world_that_does_not_end_is_blamed_itself(garden: Any, plural: Any) -> None:
    garden.edit("environments/garden/app.py", "self.state.plants += count", "while True: pass")
    said = plural("verifier", "validate", "grown", "--timeout", "2")
    place = "environments/garden/app.py:15"
    assert said.err.startswith(
        f"warning: {place}: playing its first Task takes longer than 2 s; its functions"
    )
    assert "tried" not in said.out


def test_what_an_author_left_open_is_an_error_and_others_words_are_not(garden: Any, plural: Any) -> None:
    garden.edit("verifiers/grown/verify.py", "bed = episode.state", "bed = episode.state  # PLURAL-TODO: x")
    garden.edit("verifiers/growth/verifier.yaml", "reward:", "rewrd:")
    *others, told = plural("verifier", "validate", "grown", code=3).err.splitlines()
    assert told.startswith("verifiers/grown/verify.py:4: PLURAL-TODO is left (x)")
    assert [one.partition(" as ")[0] for one in others] == [
        "warning: verifiers/grown/verifier.yaml: its functions were not tried,"
    ]
    assert "there is no Verifier 'gron'" in plural("verifier", "validate", "gron", code=2).err


def test_without_a_name_it_is_the_one_at_hand_or_the_project(
    garden: Any, plural: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plural("verifier", "validate").out.startswith("project garden is valid")
    monkeypatch.chdir(garden.root / "verifiers/grown")
    assert plural("verifier", "validate").out.startswith("verifier/grown is valid")


def test_the_judge_of_a_new_verifier_can_be_named(garden: Any, plural: Any) -> None:
    plural("verifier", "init", "mine", "--kind", "agent", "--model", "acme/one")
    assert garden.project.verifiers["mine"].model == "acme/one"
    assert "--model names the judge of --kind agent" in plural("verifier", "init", "b", "-m", "x", code=2).err
    wrong = plural("verifier", "init", "other", "--kind", "humn", code=2).err
    assert "there is no Verifier kind 'humn' to start from; did you mean 'human'?" in wrong
