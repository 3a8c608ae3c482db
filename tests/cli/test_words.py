import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import plural_gym.cli
from plural_gym.cli.main import app
from plural_gym.shipped import root

runner = CliRunner()
NOUNS = ("app", "environment", "task", "verifier", "agent", "harness", "benchmark")


def plural(*arguments: str) -> Any:
    return runner.invoke(app, arguments)


def told(*arguments: str) -> Any:
    """What a command says with --json."""
    return json.loads(plural(*arguments, "--json").stdout)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert plural("init", str(tmp_path), "--name", "numbers").exit_code == 0
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


# init


@pytest.mark.parametrize("noun", ["app", "environment", "verifier", "harness", "agent", "benchmark"])
def test_what_init_makes_is_valid_at_once(project: Path, noun: str) -> None:
    made = plural(noun, "init", "my-own")
    assert made.exit_code == 0, made.output
    assert all(Path(line).is_file() for line in made.stdout.splitlines())
    result = plural(noun, "validate", "my-own")
    assert result.exit_code == 0, result.output
    first, version, content_hash = result.stdout.splitlines()
    assert (first, version) == (f"{noun}/my-own is valid", "version 0.1.0")
    assert content_hash.startswith("sha256:")
    assert plural("validate").exit_code == 0


def test_a_new_verifier_has_the_files_of_the_documentation_and_cases_that_hold(project: Path) -> None:
    result = plural("verifier", "init", "correct-resolution")
    assert result.stdout.splitlines() == [
        "verifiers/correct-resolution/cases/correct.yaml",
        "verifiers/correct-resolution/cases/incomplete.yaml",
        "verifiers/correct-resolution/cases/incorrect.yaml",
        "verifiers/correct-resolution/verifier.yaml",
        "verifiers/correct-resolution/verify.py",
    ]
    assert plural("verifier", "test", "correct-resolution").exit_code == 0


def test_a_new_world_can_be_played_from_end_to_end(project: Path) -> None:
    assert plural("environment", "init", "counting").exit_code == 0
    assert plural("verifier", "init", "right").exit_code == 0
    assert plural("harness", "init", "idle").exit_code == 0
    assert plural("agent", "init", "idler", "--harness", "idle").exit_code == 0
    arguments = ["--environment", "counting", "--verifier", "right", "--instructions", "Count to three."]
    assert plural("task", "init", "count", *arguments).exit_code == 0
    assert plural("benchmark", "init", "counts", "--task", "count").exit_code == 0
    assert plural("validate").exit_code == 0
    result = plural("run", "--benchmark", "counts", "--agent", "idler", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["leaderboard"]["rows"][0]["score"] == 0.0


def test_a_task_without_instructions_is_marked_with_file_and_line(project: Path) -> None:
    assert plural("task", "init", "mine").exit_code == 0
    result = plural("task", "validate", "mine")
    assert result.exit_code == 3
    assert result.stderr == (
        "tasks/mine/task.yaml:6: PLURAL-TODO is left (say what the Agent is to do); write what belongs there "
        "and remove it.\n"
    )


def test_an_agent_with_a_model_needs_a_harness_while_none_calls_models_by_itself(project: Path) -> None:
    result = plural("agent", "init", "luna", "--model", "openai/gpt-5.6-luna")
    assert result.exit_code == 2
    assert "name one of the project: --harness NAME (there are: guesser)." in result.stderr
    arguments = ["--model", "openai/gpt-5.6-luna", "--harness", "guesser"]
    assert plural("agent", "init", "luna", *arguments).exit_code == 0
    manifest = (project / "agents/luna/agent.yaml").read_text(encoding="utf-8")
    assert 'model: "openai/gpt-5.6-luna"\nharness: guesser\n' in manifest
    assert plural("agent", "validate", "luna").exit_code == 0
    shutil.rmtree(project / "harnesses/guesser")
    said = plural("agent", "init", "nova", "--model", "openai/gpt-5.6-luna").stderr
    assert "make one with: plural harness init NAME" in said


def test_only_harnesses_that_can_play_are_offered(project: Path) -> None:
    said = plural("agent", "init", "x", "--harness", "nope").stderr
    assert "there is no Harness 'nope'; it has: guesser." in said
    said = plural("agent", "init", "x", "--harness", "scripted").stderr
    assert "the Harness kind 'scripted' needs code to play with; make it with: plural harness init" in said
    assert "there is no Harness 'native'" in plural("agent", "init", "x", "--harness", "native").stderr
    assert not (project / "agents/x").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clock", "Clock"),
        ("wall-clock", "WallClock"),
        ("state", "StateApp"),
        ("none", "NoneApp"),
        ("2nd-clock", "App2ndClock"),
    ],
)
def test_a_new_app_is_a_class_of_its_name(project: Path, name: str, expected: str) -> None:
    assert plural("app", "init", name).exit_code == 0
    assert f"class {expected}(App):\n" in (project / f"apps/{name}/app.py").read_text(encoding="utf-8")
    result = plural("app", "validate", name)
    assert result.exit_code == 0, result.output


# what templates leave commented out

_TEMPLATES = Path(plural_gym.cli.__file__).with_name("templates")
_SETTING = re.compile(r"# ?( *[\w-]+:.*)")


def uncomment(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join(found[1] if (found := _SETTING.fullmatch(line)) else line for line in lines)
    path.write_text(text + "\n", encoding="utf-8")


def test_templates_leave_only_settings_and_sentences_commented_out() -> None:
    left = {
        f"{path.relative_to(_TEMPLATES)}: {line}"
        for path in _TEMPLATES.rglob("*.tmpl")
        if path.name != "README.md.tmpl"
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.lstrip().startswith("#")
    }
    sentence = (
        "The answer key and the world's first State, which the Agent never sees. "
        "Take the marks away to set them."
    )
    assert left == {
        "project/dot-gitignore.tmpl: # Records of runs",
        f"task/task.yaml.tmpl: # {sentence}",
        "task/task.yaml.tmpl: # expected: the right answer",
        "verifier/verifier.yaml.tmpl: # reward: verify.py:reward",
    }


def test_the_reward_of_a_new_verifier_works_once_it_is_uncommented(project: Path) -> None:
    assert plural("verifier", "init", "mine").exit_code == 0
    assert "reward" not in told("verifier", "show", "mine")
    uncomment(project / "verifiers/mine/verifier.yaml")
    assert plural("verifier", "validate", "mine").exit_code == 0
    assert told("verifier", "show", "mine")["reward"] == "verify.py:reward"
    assert plural("task", "init", "one", "--verifier", "mine", "--instructions", "Do it.").exit_code == 0
    played = runner.invoke(app, ["play", "one"], input="guess 700\nguess 7\n")
    assert "rewards of mine: -0.1 at turn 1; in all -0.1" in played.stdout, played.output


def test_answer_key_and_setup_of_a_new_task_hold_once_they_are_uncommented(project: Path) -> None:
    assert plural("task", "init", "one", "--instructions", "Do it.").exit_code == 0
    assert told("task", "show", "one")["setup"] == {}
    uncomment(project / "tasks/one/task.yaml")
    result = plural("task", "validate", "one")
    assert result.exit_code == 0, result.output
    facts = told("task", "show", "one")
    assert facts["expected"] == "the right answer"
    assert facts["setup"] == {"game": {"number": 50, "guesses": []}}


def test_a_task_can_be_made_while_its_world_is_broken(project: Path) -> None:
    edit(project / "environments/higher-lower/app.py", "class HigherLower", "class Other")
    assert plural("task", "init", "one", "--instructions", "Do it.").exit_code == 0
    assert "setup" not in (project / "tasks/one/task.yaml").read_text(encoding="utf-8")


def test_show_says_where_no_action_is_offered(project: Path) -> None:
    edit(project / "environments/higher-lower/app.py", "    @action\n", "")
    said = "It offers no action; mark a method of its App with @action.\n"
    assert said in plural("environment", "show", "higher-lower").stdout


def test_a_benchmark_takes_all_tasks_or_those_it_is_given(project: Path) -> None:
    assert plural("task", "init", "one", "--instructions", "Do it.").exit_code == 0
    assert plural("benchmark", "init", "everything").exit_code == 0
    assert told("benchmark", "show", "everything")["tasks"] == 4
    assert plural("benchmark", "init", "few", "-t", "higher-lower", "-t", "one").exit_code == 0
    assert told("benchmark", "show", "few")["tasks"] == 4
    assert plural("benchmark", "init", "two", "-t", "higher-lower/[lh]*").exit_code == 0
    assert told("benchmark", "show", "two")["names"] == ["higher-lower/low", "higher-lower/high"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verifier", "init", "found"], "there is a Verifier 'found' already"),
        (["task", "init", "higher-lower"], "there is a Task 'higher-lower' already"),
        (["verifier", "init", "My Own"], "try 'my-own'"),
        (["task", "init", "x", "--environment", "higher"], "there is no Environment 'higher'; did you mean"),
        (["task", "init", "x", "--verifier", "fond"], "there is no Verifier 'fond'; did you mean 'found'?"),
        (["agent", "init", "x", "--harness", "gesser"], "did you mean 'guesser'?"),
        (["benchmark", "init", "x", "--task", "nope"], "there is no Task 'nope'"),
    ],
)
def test_what_cannot_be_made_is_refused_with_the_reason(
    project: Path, arguments: list[str], said: str
) -> None:
    result = plural(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not list(project.glob("*/x"))


def test_what_a_word_needs_is_asked_for_where_there_is_a_choice(project: Path) -> None:
    assert plural("environment", "init", "second").exit_code == 0
    result = plural("task", "init", "mine")
    assert result.exit_code == 2
    assert "say which Environment: --environment NAME (there are: higher-lower, second)" in result.stderr


def test_an_empty_project_says_what_to_make_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project.yaml").write_text("name: empty\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "plural environment init NAME" in plural("task", "init", "x").stderr
    assert "plural task init NAME" in plural("benchmark", "init", "x").stderr
    assert "plural harness init NAME" in plural("agent", "init", "x").stderr
    assert plural("validate").stdout == "project empty is valid\nIt is empty.\n"
    for noun in NOUNS:
        result = plural(noun, "list")
        assert (result.exit_code, result.stdout) == (0, "")
        assert f"plural {noun} init NAME" in result.stderr
        assert told(noun, "list") == []


def test_files_go_where_the_project_keeps_that_word(project: Path) -> None:
    (project / "graders").mkdir()
    shutil.move(project / "verifiers/found", project / "graders/found")
    (project / "project.yaml").write_text("name: numbers\nfolders:\n  verifiers: graders\n", encoding="utf-8")
    assert plural("verifier", "init", "mine").exit_code == 0
    assert (project / "graders/mine/verify.py").is_file()


def test_a_pattern_of_folders_is_decided_by_the_environment(project: Path) -> None:
    shutil.move(project / "tasks", project / "environments/higher-lower/tasks")
    text = "name: numbers\nfolders:\n  tasks: environments/*/tasks\n"
    (project / "project.yaml").write_text(text, encoding="utf-8")
    assert plural("task", "init", "one", "--instructions", "Do it.").exit_code == 0
    assert (project / "environments/higher-lower/tasks/one/task.yaml").is_file()
    assert plural("environment", "init", "second").exit_code == 0
    made = plural("task", "init", "two", "--environment", "second", "--instructions", "Do it.")
    assert made.exit_code == 0, made.output
    assert (project / "environments/second/tasks/two/task.yaml").is_file()
    assert plural("validate").exit_code == 0


def test_a_pattern_that_nothing_decides_is_told_with_its_candidates(project: Path) -> None:
    assert plural("environment", "init", "second").exit_code == 0
    text = "name: numbers\nfolders:\n  verifiers: environments/*/graders\n"
    (project / "project.yaml").write_text(text, encoding="utf-8")
    result = plural("verifier", "init", "mine")
    assert result.exit_code == 2
    assert "environments/higher-lower/graders, environments/second/graders" in result.stderr


# validate


def test_validation_of_one_tells_its_version_and_hash(project: Path) -> None:
    facts = told("verifier", "validate", "found")
    assert facts["valid"] is True
    assert (facts["word"], facts["name"], facts["version"]) == ("verifier", "found", "0.1.0")
    assert plural("verifier", "validate", "found").stdout.splitlines()[2] == facts["content_hash"]


def test_a_change_of_code_changes_the_hash(project: Path) -> None:
    before = told("verifier", "validate", "found")["content_hash"]
    edit(project / "verifiers/found/verify.py", "0.1 if", "0.2 if")
    assert told("verifier", "validate", "found")["content_hash"] != before


def test_all_problems_of_a_project_are_told_at_once(project: Path) -> None:
    edit(project / "verifiers/found/verifier.yaml", "weight: 1", "weight: 0")
    edit(project / "agents/halver/agent.yaml", "harness: guesser", "harness: gesser")
    edit(project / "tasks/higher-lower/numbers.jsonl", '"number": 7', '"number": "seven"')
    for command in (["validate"], ["verifier", "validate"], ["agent", "validate"]):
        result = plural(*command)
        assert result.exit_code == 3
        assert result.stdout == ""
        assert "verifiers/found/verifier.yaml:7: " in result.stderr
        assert "agents/halver/agent.yaml:4: there is no Harness 'gesser'" in result.stderr
    facts = told("validate")
    assert facts["valid"] is False
    assert facts["error"]["exit_code"] == 3
    assert len(facts["problems"]) == len(facts["error"]["problems"]) >= 2


def test_validation_of_one_leaves_out_what_is_wrong_elsewhere(project: Path) -> None:
    edit(project / "agents/halver/agent.yaml", "harness: guesser", "harness: gesser")
    assert plural("verifier", "validate", "found").exit_code == 0
    assert plural("agent", "validate", "counter").exit_code == 0
    assert plural("agent", "validate", "halver").exit_code == 3


def test_validation_of_a_task_tells_what_is_wrong_with_its_verifier(project: Path) -> None:
    edit(project / "verifiers/found/verifier.yaml", "verify.py:found", "verify.py:fond")
    for name in ("higher-lower", "low", "higher-lower/low"):
        result = plural("task", "validate", name)
        assert result.exit_code == 3
        assert "verifiers/found/verifier.yaml:5" in result.stderr


def test_validation_of_a_task_tells_every_bad_row(project: Path) -> None:
    edit(project / "tasks/higher-lower/numbers.jsonl", '"number": ', '"nummer": ')
    result = plural("task", "validate", "higher-lower")
    assert result.exit_code == 3
    assert [f"tasks/higher-lower/numbers.jsonl:{line}: " in result.stderr for line in (1, 2, 3)] == [True] * 3


def test_problems_of_tasks_inside_an_environment_are_not_the_environments(project: Path) -> None:
    shutil.move(project / "tasks", project / "environments/higher-lower/tasks")
    text = "name: numbers\nfolders:\n  tasks: environments/*/tasks\n"
    (project / "project.yaml").write_text(text, encoding="utf-8")
    edit(
        project / "environments/higher-lower/tasks/higher-lower/task.yaml", "oracle: halver", "oracle: helver"
    )
    assert plural("environment", "validate", "higher-lower").exit_code == 0
    assert plural("task", "validate", "higher-lower").exit_code == 3


def test_warnings_are_shown_and_end_with_0(project: Path) -> None:
    edit(
        project / "verifiers/found/verify.py",
        "episode.expected in guesses",
        'episode.state["number"] in guesses',
    )
    edit(project / "verifiers/found/verify.py", "; expected {episode.expected}", "")
    result = plural("validate")
    assert result.exit_code == 0
    assert "warning: tasks/higher-lower/task.yaml:" in result.stderr
    assert "no Verifier reads `.expected`" in result.stderr
    assert len(told("task", "validate", "higher-lower")["warnings"]) == 1


def test_a_name_may_be_left_out_inside_the_resources_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "verifiers/found/cases")
    assert plural("verifier", "validate").stdout.startswith("verifier/found is valid")
    assert told("verifier", "show")["name"] == "found"
    assert plural("agent", "validate").stdout.startswith("project numbers is valid")


def test_a_task_that_its_oracle_does_not_solve_is_a_warning(project: Path) -> None:
    edit(project / "tasks/higher-lower/task.yaml", "oracle: halver", "oracle: counter")
    result = plural("task", "validate", "high", "--run")
    assert result.exit_code == 0, result.output
    assert "warning: tasks/higher-lower/task.yaml: higher-lower/high: " in result.stderr
    assert "1 of 1 Task played." in result.stderr
    assert plural("task", "validate", "high", "--run", "--strict").exit_code == 1
    assert plural("task", "validate", "low", "--run", "--limit", "1").exit_code == 0


def test_an_app_without_an_action_is_a_warning_that_says_how_to_mark_one(project: Path) -> None:
    app = next(project.glob("environments/*/app.py"))
    text = app.read_text(encoding="utf-8")
    app.write_text(text.replace("    @action\n", ""), encoding="utf-8")
    assert "offers no action; mark a method with @action." in plural("environment", "validate").stderr


def test_only_so_many_tasks_of_a_folder_are_played(project: Path) -> None:
    result = plural("task", "validate", "--run", "--limit", "1")
    assert result.exit_code == 0, result.output
    assert "1 of 3 Tasks played." in result.stderr


def test_a_warning_of_a_played_task_names_its_file_with_and_without_a_name(project: Path) -> None:
    edit(project / "tasks/higher-lower/task.yaml", "oracle: halver", "oracle: counter")
    named = told("task", "validate", "higher-lower", "--run")["warnings"]
    assert told("task", "validate", "--run")["warnings"] == named
    assert {warning["file"] for warning in named} == {"tasks/higher-lower/task.yaml"}


def test_an_answer_key_that_nobody_reads_is_told_once_beside_a_run(project: Path) -> None:
    verify = project / "verifiers/found/verify.py"
    edit(verify, "episode.expected in guesses", 'episode.state["number"] in guesses')
    edit(verify, "; expected {episode.expected}", "")
    warnings = told("task", "validate", "low", "--run")["warnings"]
    assert [warning["message"].count("expected") for warning in warnings] == [2]


# list and show


def test_lists_name_version_title_and_rows(project: Path) -> None:
    heading, line = plural("task", "list").stdout.splitlines()
    assert heading.split() == ["name", "version", "title", "tasks"]
    assert line.split() == ["higher-lower", "0.1.0", "3"]
    assert [row["name"] for row in told("agent", "list")] == ["counter", "halver"]
    assert told("benchmark", "list")[0]["tasks"] == 3


def test_a_list_shows_what_is_invalid_beside_the_rest(project: Path) -> None:
    edit(project / "agents/halver/agent.yaml", "version: 0.1.0", "version: one")
    edit(project / "tasks/higher-lower/task.yaml", "rows:", "rose:")
    result = plural("agent", "list")
    assert result.exit_code == 0
    assert "counter" in result.stdout and "invalid: agents/halver/agent.yaml:2: " in result.stdout
    assert "invalid: tasks/higher-lower/task.yaml:" in plural("task", "list").stdout
    assert "invalid: " in plural("benchmark", "list").stdout


@pytest.mark.parametrize("noun", ["environment", "task", "verifier", "agent", "harness", "benchmark"])
def test_show_tells_the_same_to_people_and_programs(project: Path, noun: str) -> None:
    for row in told(noun, "list"):
        facts = told(noun, "show", row["name"])
        assert facts["word"] == noun and facts["file"] == row["file"]
        text = plural(noun, "show", row["name"]).stdout
        assert row["name"] in text and row["file"] in text
        if facts["content_hash"]:
            assert facts["content_hash"] in text


def test_show_tells_actions_with_their_schema(project: Path) -> None:
    (action,) = told("environment", "show", "higher-lower")["actions"]
    assert action["name"] == "guess" and action["read_only"] is False
    assert action["parameters"]["properties"] == {"number": {"type": "integer"}}
    text = plural("environment", "show", "higher-lower").stdout
    assert "\nguess(number)\n    Guess the hidden number, from 1 to 100.\n" in text
    assert plural("app", "init", "clock").exit_code == 0
    assert "read()  read-only" in plural("app", "show", "clock").stdout


def test_show_of_a_folder_of_tasks_counts_and_of_one_tells_its_case(project: Path) -> None:
    folder = told("task", "show", "higher-lower")
    assert folder["tasks"] == 3 and "expected" not in folder
    one = told("task", "show", "low")
    assert one["expected"] == 7 and one["setup"] == {"game": {"number": 7}}
    assert told("task", "show", "higher-lower/low")["content_hash"] == one["content_hash"]


def test_show_of_a_verifier_names_its_functions_and_who_uses_it(project: Path) -> None:
    facts = told("verifier", "show", "found")
    assert (facts["check"], facts["reward"]) == ("verify.py:found", "verify.py:closer")
    assert facts["used_by"] == ["higher-lower"]


def test_show_of_the_shipped_worlds_counts_splits() -> None:
    facts = told("task", "show", "support-desk", "--project", str(root()))
    assert sum(facts["splits"].values()) == facts["tasks"] == 24


@pytest.mark.parametrize("verb", ["show", "validate"])
@pytest.mark.parametrize("noun", NOUNS)
def test_an_unknown_name_ends_with_2(project: Path, noun: str, verb: str) -> None:
    result = plural(noun, verb, "nope")
    assert result.exit_code == 2
    assert f"there is no {noun.capitalize()} 'nope'" in result.stderr


def test_show_without_a_name_says_what_there_is(project: Path) -> None:
    result = plural("agent", "show")
    assert result.exit_code == 2
    assert "plural agent show NAME (there are: counter, halver)" in result.stderr


def test_show_of_what_is_invalid_ends_with_3(project: Path) -> None:
    edit(project / "agents/halver/agent.yaml", "harness: guesser", "harness: gesser")
    assert plural("agent", "show", "halver").exit_code == 3
    edit(project / "tasks/higher-lower/task.yaml", "oracle:", "orakel:")
    assert plural("task", "show", "low").exit_code == 3
