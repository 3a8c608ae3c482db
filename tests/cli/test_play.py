import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plural_gym.cli.main import app
from plural_gym.cli.play import read_call
from plural_gym.errors import UsageError
from plural_gym.shipped import root

runner = CliRunner()
ACTIONS = {
    "guess": {"properties": {"word": {"type": "string"}}},
    "move": {
        "properties": {
            "x": {"type": "integer"},
            "to": {"enum": ["left", "right"]},
            "deep": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        }
    },
    "send": {"properties": {"to": {"const": "all"}, "text": {"type": "string"}}},
    "look": {"properties": {}},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert runner.invoke(app, ["init", str(tmp_path)]).exit_code == 0
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(typed: str, *arguments: str) -> Any:
    return runner.invoke(app, ["play", *arguments], input=typed)


def shipped(typed: str, *arguments: str) -> Any:
    return play(typed, *arguments, "--project", str(root()))


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("guess crane", {"word": "crane"}),
        ("guess word=crane", {"word": "crane"}),
        ("guess 'two words'", {"word": "two words"}),
        ("guess 7", {"word": "7"}),
        ("guess", {}),
        ("move 3 left", {"x": 3, "to": "left"}),
        ("move to=left 3", {"to": "left", "x": 3}),
        ("move deep=[1,2]", {"deep": [1, 2]}),
        ("move deep=null", {"deep": None}),
        ("move three", {"x": "three"}),
        ("send all Dear Ada, we are on it", {"to": "all", "text": "Dear Ada, we are on it"}),
        ("send all don't", {"to": "all", "text": "don't"}),
        ("look", {}),
    ],
)
def test_a_line_is_read_by_the_actions_arguments(line: str, arguments: dict[str, Any]) -> None:
    assert read_call(line, ACTIONS) == {"action": line.split()[0], "arguments": arguments}


@pytest.mark.parametrize(("line", "takes"), [("look here", "nothing"), ("move 1 left [] 2", "x, to, deep")])
def test_too_many_arguments_are_refused_with_what_there_is(line: str, takes: str) -> None:
    with pytest.raises(UsageError, match=f"takes {takes}; there is no argument for"):
        read_call(line, ACTIONS)


def test_an_unknown_action_is_answered_by_the_world() -> None:
    assert read_call("gues crane", ACTIONS) == {"action": "gues", "arguments": {}}


@pytest.mark.parametrize(
    "typed", ["guess crane", "guess word=crane", '{"action": "guess", "arguments": {"word": "crane"}}']
)
def test_a_game_is_played_in_every_form(typed: str) -> None:
    result = shipped(typed + "\n", "crane")
    assert result.exit_code == 0
    assert "Guess the secret word." in result.stdout
    assert "c=g r=g a=g n=g e=g" in result.stdout
    tail = result.stdout[result.stdout.index("Over (environment_terminated) after 1 turn.") :]
    assert "The Task was wordle/crane." in tail
    assert "score 1\n  solved: 1\n    status: won; secret: crane; guesses: crane" in tail
    assert "rewards of progress: +1 at turn 1; in all +1" in tail


def test_neither_state_nor_score_is_told_before_the_end() -> None:
    result = shipped("guess slate\n\nhelp\nquit\nguess crane\n", "crane")
    game, _, end = result.stdout.partition("Stopped after 1 turn.")
    assert "crane" not in game and "score" not in game and "reward" not in game
    assert "secret: crane" in end


def test_the_end_of_input_ends_the_game() -> None:
    result = shipped("", "crane")
    assert result.exit_code == 0
    assert "Stopped after 0 turns." in result.stdout


def test_rejected_input_and_wrong_lines_do_not_end_the_game(project: Path) -> None:
    result = play("guess 700\nguess seven\ngess 7\nguess 7 8\n{broken\nguess 7\n", "low")
    assert "rejected: guess a number from 1 to 100" in result.stdout
    assert "rejected: guess: number: " in result.stdout
    assert "did you mean 'guess'?" in result.stdout
    assert "guess takes number; there is no argument for '8'." in result.stdout
    assert "score 1" in result.stdout


def test_the_state_is_revealed_only_on_request(project: Path) -> None:
    assert "State:" not in play("guess 50\n", "low").stdout
    result = play("guess 50\n", "low", "--reveal-state")
    assert 'State: {"game": {"number": 7, "guesses": [50]}}' in result.stdout


def test_of_a_folder_a_task_is_drawn_by_the_seed_and_named_at_the_end(project: Path) -> None:
    drawn = {
        json.loads(play("", "higher-lower", "--seed", str(seed), "--json").stdout)["task"]
        for seed in (0, 1, 2)
    }
    assert drawn == {"higher-lower/low", "higher-lower/middle", "higher-lower/high"}
    game, _, end = play("guess 1\n", "higher-lower", "--seed", "0").stdout.partition("Stopped")
    assert "low" not in game.replace("lower", "") and "higher-lower/low" in end


def test_json_is_the_record_and_the_game_goes_to_stderr(project: Path) -> None:
    result = play("guess 50\nguess 700\nguess 7\n", "low", "--json")
    record = json.loads(result.stdout)
    assert (record["task"], record["score"]) == ("higher-lower/low", 1.0)
    assert record["rewards"] == [
        {"turn": turn, "rewards": {"found": value}, "faults": []}
        for turn, value in ((1, 0.1), (2, -0.1), (3, 0.1))
    ]
    assert [step["action"] for step in record["steps"]] == ["guess"] * 3
    assert "Find the hidden number." in result.stderr


def test_rewards_are_told_with_their_turns(project: Path) -> None:
    result = play("guess 50\nguess 75\nguess 700\nguess 7\n", "low")
    told = "+0.1 at turn 1, +0 at turn 2, -0.1 at turn 3, +0.1 at turn 4; in all +0.1"
    assert f"rewards of found: {told}\n" in result.stdout


def test_the_seed_is_told_and_a_row_is_not_named_before_the_end(project: Path) -> None:
    told = play("", "low", "--seed", "7").stderr
    assert told == "A Task of higher-lower; --seed 7 plays it again.\n"
    assert runner.invoke(app, ["task", "init", "one", "--instructions", "Do it."]).exit_code == 0
    told = play("", "one").stderr
    assert told.startswith("Task one; --seed ") and told.endswith(" plays it again.\n")


@pytest.mark.parametrize(("finish", "offered"), [("auto", True), ("always", True), ("never", False)])
def test_finish_is_offered_where_a_job_offers_it(project: Path, finish: str, offered: bool) -> None:
    path = project / "environments/higher-lower/environment.yaml"
    path.write_text(path.read_text(encoding="utf-8") + f"finish: {finish}\n", encoding="utf-8")
    result = play("finish 7\n", "low")
    assert ("  finish [answer]\n" in result.stdout) is offered
    assert ("Over (agent_finished) after 0 turns." in result.stdout) is offered
    assert ("rejected: App 'game' has no action 'finish'" in result.stdout) is not offered
    tools = "print([tool['function']['name'] for tool in seat.actions])"
    (project / "harnesses/guesser/play.py").write_text(
        f"def play(task, seat, halve=True):\n    {tools}\n", encoding="utf-8"
    )
    ran = runner.invoke(app, ["run", "--task", "low", "--agent", "halver"])
    assert ("'finish'" in ran.output) is offered


def test_an_own_action_named_finish_is_the_apps(project: Path) -> None:
    path = project / "environments/higher-lower/app.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("def guess(", "def finish("), encoding="utf-8")
    result = play("finish 7\n", "low")
    assert "  finish <number:integer>\n" in result.stdout
    assert "Over (environment_terminated) after 1 turn." in result.stdout


def test_faults_of_verifiers_are_told_at_the_end(project: Path) -> None:
    path = project / "verifiers/found/verify.py"
    text = path.read_text(encoding="utf-8").replace('["guesses"]', '["guess"]')
    path.write_text(text, encoding="utf-8")
    result = play("guess 7\n", "low")
    assert result.exit_code == 0
    assert "score unknown\n  found: verifier found check: KeyError: 'guess' (at verify.py:8)" in result.stdout
    assert "! verifier found reward: KeyError: 'guess'" in result.stdout
    assert "rewards of found: fault at turn 1\n" in result.stdout


def test_an_app_that_raises_ends_the_game_with_its_line(project: Path) -> None:
    path = project / "environments/higher-lower/app.py"
    text = path.read_text(encoding="utf-8").replace('return "found"', "raise KeyError(7)")
    path.write_text(text, encoding="utf-8")
    result = play("guess 7\n", "low")
    assert result.exit_code == 1
    assert "KeyError: 7 (at app.py:" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_task_ends_with_2(project: Path) -> None:
    result = play("", "lo")
    assert result.exit_code == 2
    assert "there is no Task 'lo'" in result.stderr
