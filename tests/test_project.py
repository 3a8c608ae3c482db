"""A project's folder: what is found, what is built when, and every problem with its place."""

import os
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from plural_gym import refs
from plural_gym.errors import Problem, ProjectError, UnknownName
from plural_gym.harness import TaskBrief, drive
from plural_gym.project import Project, Report
from plural_gym.task import TaskSet

GAME = """
from plural import App, State, action


class Board(State):
    secret: str = "crane"
    tries: int = 0


class Game(App):
    state: Board

    @action
    def guess(self, word: str) -> str:
        self.state.tries += 1
        return "hit" if word == self.state.secret else "miss"


class NoApp:
    pass


class Untyped(App):
    state: Board

    @action
    def guess(self, word):
        return word
"""
VERIFY = """
from plural import VerifierOutput


def solved(episode):
    return VerifierOutput(score=float(episode.answer == episode.expected))


def progress(step):
    return None
"""
PLAY = """
def play(task, seat, word="slate"):
    return word
"""
FILES = {
    "project.yaml": "name: sample\nfolders: {tasks: environments/*/tasks}\n",
    "environments/game/environment.yaml": (
        "name: game\napps:\n  board:\n    class: app.py:Game\nresources: [words.txt]\nlimits:\n  turns: 6\n"
    ),
    "environments/game/app.py": GAME,
    "environments/game/words.txt": "crane\n",
    "environments/game/tasks/words/task.yaml": (
        "name: words\nenvironment: game\nverifiers:\n  - solved\ninstructions: say.md\nrows: words.jsonl\n"
        "setup: {board: {tries: 1}}\nsplit: train\noracle: solver\n"
    ),
    "environments/game/tasks/words/say.md": "Guess the word.\n",
    "environments/game/tasks/words/words.jsonl": (
        '{"name": "crane", "setup": {"board": {"secret": "crane"}}, "expected": "crane"}\n'
        '{"name": "slate", "setup": {"board": {"secret": "slate"}}, "expected": "slate", "split": "test"}\n'
        '{"name": "brace", "setup": {"board": {"tries": 2}}, "instructions": "Guess it.", "split": "test"}\n'
    ),
    "environments/game/tasks/single/task.yaml": (
        "name: single\nenvironment: game\nverifiers: [solved]\ninstructions: Guess.\nlimits: {turns: 2}\n"
        "expected: crane\n"
    ),
    "verifiers/solved/verifier.yaml": (
        "name: solved\ncheck: verify.py:solved\nreward: verify.py:progress\nweight: 2\ntimeout_s: 9\n"
    ),
    "verifiers/solved/verify.py": VERIFY,
    "verifiers/progress/verifier.yaml": "name: progress\nreward: verify.py:progress\n",
    "verifiers/progress/verify.py": VERIFY,
    "harnesses/fixed/harness.yaml": "name: fixed\nplay: play.py:play\nconfig:\n  word: crane\n",
    "harnesses/fixed/play.py": PLAY,
    "agents/solver/agent.yaml": "name: solver\nharness: fixed\n"
    "settings: {temperature: 0}\ncredentials: [KEY]\n",
    "agents/other/agent.yaml": "name: other\nharness: fixed\nharness_options: {word: brace}\n",
    "benchmarks/exam/benchmark.yaml": (
        "name: exam\npurpose: Words.\ntasks:\n  - single\n  - words/c*\n"
        "  - {from: words, split: test, limit: 1}\n"
        "weights:\n  words/*: 2\n  words/crane: 5\n"
    ),
}
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """`make({"agents/x/agent.yaml": "..."})`: the sample project with these files changed; None removes."""

    def make(changes: dict[str, str | None] | None = None) -> Path:
        for name, content in {**FILES, **(changes or {})}.items():
            if content is not None:
                path = tmp_path / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
        return tmp_path

    return make


def told(report: Report) -> list[str]:
    return [str(problem) for problem in report.problems]


# --- what is found ---


def test_a_project_is_found_upward(make: Make) -> None:
    root = make()
    project = Project.open(root / "environments" / "game")
    assert (project.root, project.name, project.version) == (root, "sample", "0.1.0")
    assert repr(project) == f"Project('sample', {str(root)!r})"


def test_without_a_project_file_the_remedy_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        Project.open(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: no project.yaml here or in a folder above; run `plural init`, "
        "or name the project's folder."
    )


def test_a_wrong_project_file_is_told_when_it_is_opened(make: Make) -> None:
    with pytest.raises(ProjectError, match=r"project.yaml:2: unknown key 'folder'; did you mean 'folders'\?"):
        Project.open(make({"project.yaml": "name: sample\nfolder: {}\n"}))


def test_the_sample_has_no_problem_and_no_warning(make: Make) -> None:
    report = Project.open(make()).validate()
    assert report == Report((), ()) and report.ok


def test_names_are_known_without_building(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(reference: str, folder: Path) -> Any:
        raise AssertionError(reference)

    monkeypatch.setattr(refs, "load", refuse)
    project = Project.open(make())
    assert list(project.verifiers) == ["progress", "solved"] and len(project.agents) == 2
    assert project.tasks.names == ("single", "words/crane", "words/slate", "words/brace")
    assert project.tasks_of("game").names == project.tasks.names
    assert project.tasks_of("game", "test").names == ("words/slate", "words/brace")
    assert project.tasks_of("game", "train").names == ("words/crane",)
    assert "solved" in project.verifiers and repr(project.verifiers) == "verifiers(progress, solved)"


def test_words_know_their_folder_and_are_built_once(make: Make) -> None:
    root = make()
    project = Project.open(root)
    assert project.environments["game"] is project.environments["game"]
    assert project.environments["game"].folder == root / "environments" / "game"
    assert project.verifiers["solved"].folder == root / "verifiers" / "solved"
    assert project.harnesses["fixed"].folder == root / "harnesses" / "fixed"
    assert project.agents["solver"].folder == root / "agents" / "solver"
    assert project.benchmarks["exam"].folder == root / "benchmarks" / "exam"
    assert project.tasks["crane"].folder == root / "environments" / "game" / "tasks" / "words"


def test_manifests_say_what_words_are(make: Make) -> None:
    project = Project.open(make())
    environment = project.environments["game"]
    assert environment.limits.turns == 6 and environment.runtime.kind == "local"
    assert [resource.staged_name for resource in environment.resources] == ["words.txt"]
    assert list(environment.actions.public) == ["guess"]
    verifier: Any = project.verifiers["solved"]
    assert (verifier.weight, verifier.timeout_s, verifier.reward_timeout_s) == (2.0, 9.0, 5.0)
    agent = project.agents["solver"]
    assert agent.settings == {"temperature": 0} and agent.credentials == ("KEY",)
    seat: Any = None
    assert drive(agent.driver(), TaskBrief(""), seat) == "crane"
    assert drive(project.agents["other"].driver(), TaskBrief(""), seat) == "brace"


def test_a_row_is_laid_over_its_folder(make: Make) -> None:
    project = Project.open(make())
    crane, brace = project.tasks["crane"], project.tasks["words/brace"]
    assert crane.name == "words/crane" and crane.instructions == "Guess the word.\n"
    assert crane.setup == {"board": {"tries": 1, "secret": "crane"}} and crane.split == "train"
    assert brace.setup == {"board": {"tries": 2}} and brace.instructions == "Guess it."
    assert (brace.expected, brace.split, brace.oracle) == (None, "test", "solver")
    assert crane.environment is brace.environment is project.environments["game"]
    single = project.tasks["single"]
    assert single.limits is not None and single.limits.model_fields_set == {"turns"}
    assert single.effective_limits.turns == 2 and crane.limits is None


def test_a_benchmark_chooses_tasks_by_name_pattern_and_split(make: Make) -> None:
    benchmark = Project.open(make()).benchmarks["exam"]
    assert benchmark.task_set.names == ("single", "words/crane", "words/slate")
    assert benchmark.weights == {"words/crane": 5.0, "words/slate": 2.0}
    assert benchmark.content_hash.startswith("sha256:")


def test_an_app_of_its_own_serves_several_environments(make: Make) -> None:
    named = "name: game\napps: {board: game-app}\n"
    root = make(
        {
            "apps/game-app/app.yaml": "name: game-app\nclass: app.py:Game\ncredentials: [CRM_KEY]\n",
            "apps/game-app/app.py": GAME,
            "environments/game/environment.yaml": named,
            "environments/again/environment.yaml": named.replace("game\n", "again\n"),
        }
    )
    project = Project.open(root)
    assert project.validate().problems == ()
    declaration = project.apps["game-app"]
    assert declaration.folder == root / "apps" / "game-app" and declaration.options["credentials"] == [
        "CRM_KEY"
    ]
    assert project.environments["game"].apps["board"] is project.environments["again"].apps["board"]


@pytest.mark.parametrize(
    ("word", "name", "message"),
    [
        ("environments", "gam", "there is no Environment 'gam'; did you mean 'game'?"),
        ("verifiers", "x", "there is no Verifier 'x'; it has: progress, solved."),
        ("harnesses", "fixd", "there is no Harness 'fixd'; did you mean 'fixed'?"),
        ("agents", "solvr", "there is no Agent 'solvr'; did you mean 'solver'?"),
        ("benchmarks", "exm", "there is no Benchmark 'exm'; did you mean 'exam'?"),
        ("apps", "x", "there is no App 'x'; there are none."),
        ("tasks", "crene", "there is no Task 'crene'; did you mean 'crane'?"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(make: Make, word: str, name: str, message: str) -> None:
    with pytest.raises(UnknownName) as caught:
        getattr(Project.open(make()), word)[name]
    assert str(caught.value) == message


def test_tasks_of_an_unknown_environment_or_split_are_refused(make: Make) -> None:
    project = Project.open(make())
    with pytest.raises(UnknownName, match="there is no Environment 'gam'; did you mean 'game'"):
        project.tasks_of("gam")
    with pytest.raises(UnknownName, match="no Task is in the split 'tes'; did you mean 'test'"):
        project.tasks_of("game", "tes")


# --- what is wrong ---

ENV = "environments/game/environment.yaml"
TASKS = "environments/game/tasks"
TASK = f"{TASKS}/single/task.yaml"
ROWS = f"{TASKS}/words/words.jsonl"
VERIFIER = "verifiers/progress/verifier.yaml"
HARNESS = "harnesses/fixed/harness.yaml"
AGENT = "agents/other/agent.yaml"
EXAM = "benchmarks/exam/benchmark.yaml"
ONE = "name: single\nenvironment: game\nverifiers: [solved]\ninstructions: Guess.\n"

FAULTS: list[tuple[str, str, list[str]]] = [
    # references by name
    (
        TASK,
        ONE.replace(": game", ": gam"),
        [f"{TASK}:2: there is no Environment 'gam'; did you mean 'game'?"],
    ),
    (
        TASK,
        ONE.replace("[solved]", "[solve]"),
        [f"{TASK}:3: there is no Verifier 'solve'; did you mean 'solved'?"],
    ),
    (TASK, ONE + "oracle: solvr\n", [f"{TASK}:5: there is no Agent 'solvr'; did you mean 'solver'?"]),
    (
        AGENT,
        "name: other\nharness: fixd\n",
        [f"{AGENT}:2: there is no Harness 'fixd', as a folder or a kind; did you mean 'fixed'?"],
    ),
    (ENV, "name: game\napps:\n  board: gme\n", [f"{ENV}:3: there is no App 'gme'; there are none."]),
    (
        EXAM,
        "name: exam\ntasks:\n  - singl\n  - zzz*\n  - {from: word}\n  - {from: words, split: tes}\n"
        "  - {from: words, limit: 9}\n  - single\n  - single\n  - words/*\nweights: {zz*: 1}\n",
        [
            f"{EXAM}:3: there is no Task 'singl'; did you mean 'single'?",
            f"{EXAM}:4: 'zzz*' matches no Task; there are Tasks of: single, words.",
            f"{EXAM}:5: there is no Task folder 'word'; did you mean 'words'?",
            f"{EXAM}:6: no Task is in the split 'tes'; did you mean 'test'?",
            f"{EXAM}:7: limit 9 is more than the 3 Tasks there are; lower it.",
            f"{EXAM}:9: Task 'single' stands here twice; remove one.",
            f"{EXAM}:11: 'zz*' matches no Task; there are Tasks of: single, words.",
        ],
    ),
    (
        EXAM,
        "name: exam\ntasks: [single]\nweights: {words/*: 1}\n",
        [f"{EXAM}:3: weight of 'words/*' is of no Task in this Benchmark; remove it."],
    ),
    # references to code
    (
        VERIFIER,
        "name: progress\nreward: verify.py:progres\n",
        [f"{VERIFIER}:2: reward 'verify.py:progres' not found in progress/; did you mean 'progress'?"],
    ),
    (
        VERIFIER,
        "name: progress\nreward: verfy.py:progress\n",
        [
            f"{VERIFIER}:2: 'verfy.py' not found: verifiers/progress has no 'verfy.py'; "
            "did you mean 'verify.py'?"
        ],
    ),
    (
        VERIFIER,
        "name: progress\nreward: ../../../verify.py:progress\n",
        [f"{VERIFIER}:2: path '../../../verify.py' leaves the project; copy what it needs into the project."],
    ),
    (
        "verifiers/progress/verify.py",
        "import sys\nsys.exit(3)\n",
        [
            f"{VERIFIER}:2: verify.py ends the program when it is imported (exit 3); put that under "
            '`if __name__ == "__main__":`.'
        ],
    ),
    (
        "verifiers/progress/verify.py",
        "def progress(step):\n    return (\n",
        [
            f"{VERIFIER}:2: verify.py cannot be imported: SyntaxError: '(' was "
            "never closed (verify.py, line 2)"
        ],
    ),
    (
        "environments/game/app.py",
        GAME + "\n1 / 0\n",
        [f"{ENV}:4: app.py cannot be imported: ZeroDivisionError: division by zero (at app.py:30)."],
    ),
    (
        ENV,
        "name: game\napps:\n  board: {class: app.py:NoApp}\n",
        [f"{ENV}:3: class 'app.py:NoApp' is no App; derive it from plural.App."],
    ),
    (
        ENV,
        "name: game\napps:\n  board:\n    class: app.py:Untyped\n",
        [f"{ENV}:3: Untyped.guess: argument 'word' needs a type hint."],
    ),
    (
        HARNESS,
        "name: fixed\nplay: play.py:play\nconfig: {wrd: a}\n",
        [
            f"{HARNESS}:3: harness 'play' takes (task, seat): got an unexpected keyword argument 'wrd'; "
            "it accepts: task, seat, word."
        ],
    ),
    # kinds
    (
        VERIFIER,
        "name: progress\nkind: acme\nstrictness: 3\n",
        [f"{VERIFIER}:2: there is no verifier kind 'acme'; "],
    ),
    (HARNESS, "name: fixed\nkind: acme\n", [f"{HARNESS}:2: there is no harness kind 'acme'; "]),
    (
        ENV,
        "name: game\napps: {board: {class: app.py:Game}}\nruntime: {kind: acme}\n",
        [f"{ENV}:3: there is no runtime kind 'acme'; "],
    ),
    (ENV, "name: game\napps:\n  board:\n    kind: acme\n", [f"{ENV}:4: there is no app kind 'acme'; "]),
    # what does not fit together
    (
        TASK,
        ONE.replace("[solved]", "[progress]"),
        [f"{TASK}:3: Task 'single': no Verifier scores; attach at least one with a check (has: progress)."],
    ),
    (
        TASK,
        ONE + "setup: {bord: {tries: 1}, board: {trie: 1}}\n",
        [
            f"{TASK}:5: setup names App 'bord'; did you mean 'board'?",
            f"{TASK}:5: setup board.trie: the State has no field 'trie'; did you mean 'tries'?",
        ],
    ),
    (TASK, ONE.replace("Guess.", '""'), [f"{TASK}:4: 'instructions' is empty; say what the Agent is to do."]),
    (
        TASK,
        ONE.replace("Guess.", "say.md"),
        [f"{TASK}:4: 'say.md' not found: {TASKS}/single has no 'say.md'; "],
    ),
    (
        TASK,
        ONE + "resources: [task.yaml]\n",
        [f"{TASK}:5: a Task has no Resources of its own; list them in the environment.yaml it plays in."],
    ),
    (
        TASK,
        ONE.replace("single", "sngle"),
        [f"{TASK}:1: name 'sngle' is not the folder's, 'single'; make them the same."],
    ),
    (
        ENV,
        "name: game\napps:\n  the__board: {class: app.py:Game}\n",
        [
            f"{ENV}:3: key 'the__board' in 'apps' must be lower-case words of letters and digits, joined by",
            f"{TASKS}/words/task.yaml:7: setup names App 'board'; did you mean 'the__board'?",
        ],
    ),
    (
        ENV,
        "name: game\napps: {board: {class: app.py:Game}}\nresources:\n  - words.txt\n  - wrds.txt\n",
        [f"{ENV}:5: 'wrds.txt' not found: environments/game has no 'wrds.txt'; did you mean 'words.txt'?"],
    ),
    (ENV, "name: game\nlimts: {}\n", [f"{ENV}:2: unknown key 'limts'; did you mean 'limits'?"]),
    # rows
    (
        ROWS,
        '{"name": "crane", "setup": {"board": {"tries": "many"}}}\n{"name": "Slate"}\n{"name": "c", "x": 1}\n'
        '{"name": "d", "setup": {"bord": {}}, "split": "test"}\n',
        [
            f"{ROWS}:1: setup board.tries: must be an integer, got 'many'.",
            f"{ROWS}:2: 'name' must be 1 to 64 lower-case letters, digits and dashes, and start with a "
            "letter or digit, not 'Slate'; try 'slate'.",
            f"{ROWS}:3: unknown key 'x'; known keys: expected, info, instructions, name, setup, split.",
            f"{ROWS}:4: setup names App 'bord'; did you mean 'board'?",
        ],
    ),
    (ROWS, '{"expected": 1}\n', [f"{ROWS}:1: 'name' is missing; every row needs one."]),
    (ROWS, "{\n", [f"{ROWS}:1: is not JSON: "]),
    (
        f"{TASKS}/words/task.yaml",
        "name: words\nenvironment: game\nverifiers: [solved]\nrows: wrds.jsonl\n",
        [f"{TASKS}/words/task.yaml:4: 'wrds.jsonl' not found: "],
    ),
    (
        f"{TASKS}/words/task.yaml",
        "name: words\nenvironment: game\nverifiers: [solved]\nrows: words.jsonl\n",
        [
            f"{ROWS}:1: row 'crane' has no instructions; write them here or in task.yaml.",
            f"{ROWS}:2: row 'slate' has no instructions; write them here or in task.yaml.",
        ],
    ),
    # folders
    (
        "project.yaml",
        "name: sample\nfolders:\n  tasks: environments/*/tasks\n  apps: aps\n",
        ["project.yaml:4: folder 'aps' of apps does not exist; create it or remove the line."],
    ),
    (
        "agents/third/agnt.yaml",
        "name: third\n",
        ["agents/third: holds no agent.yaml; rename 'agnt.yaml' or add it."],
    ),
    (
        "environments/more/tasks/single/task.yaml",
        ONE,
        [
            f"environments/more/tasks/single/task.yaml: task name 'single' is also used by {TASK}; "
            "rename one of them."
        ],
    ),
    # markers
    (
        f"{TASKS}/words/say.md",
        "Guess.\n\n<!-- PLURAL-TODO: say how -->\n",
        [
            f"{TASKS}/words/say.md:3: PLURAL-TODO is left (say how -->); write what belongs "
            "there and remove it."
        ],
    ),
]


@pytest.mark.parametrize(("file", "content", "messages"), FAULTS)
def test_validate_tells_the_place_and_the_remedy(
    make: Make, file: str, content: str, messages: list[str]
) -> None:
    found = told(Project.open(make({file: content})).validate())
    # A message is given up to where it lists what there is.
    assert [line[: len(expected)] for line, expected in zip(found, messages, strict=True)] == messages


def test_all_problems_of_all_files_are_told_at_once(make: Make) -> None:
    root = make(
        {
            TASK: ONE.replace(": game", ": gam").replace("[solved]", "[solve]") + "oracle: solvr\n",
            VERIFIER: "name: progress\nreward: verify.py:progres\nhindsight: verify.py:late\n",
            AGENT: "name: other\nharness: fixd\ncolour: red\n",
        }
    )
    found = [(problem.file, problem.line) for problem in Project.open(root).validate().problems]
    assert found == [(AGENT, 2), (AGENT, 3), (TASK, 2), (TASK, 3), (TASK, 5), (VERIFIER, 2), (VERIFIER, 3)]


def test_a_broken_resource_is_told_alone_when_it_is_opened(make: Make) -> None:
    root = make(
        {VERIFIER: "name: progress\nrewrd: verify.py:progress\n", AGENT: "name: other\nharness: fixd\n"}
    )
    project = Project.open(root)
    assert project.tasks["crane"].name == "words/crane"
    with pytest.raises(ProjectError) as caught:
        project.verifiers["progress"]
    assert {problem.file for problem in caught.value.problems} == {VERIFIER}


def test_a_verifier_that_is_broken_is_told_once_for_all_its_tasks(make: Make) -> None:
    root = make({"verifiers/solved/verifier.yaml": "name: solved\ncheck: verify.py:solve\n"})
    project = Project.open(root)
    place = "verifiers/solved/verifier.yaml:2"
    message = f"{place}: check 'verify.py:solve' not found in solved/; did you mean 'solved'?"
    assert told(project.validate()) == [message]
    with pytest.raises(ProjectError) as caught:
        project.tasks["crane"]
    assert str(caught.value) == message


def test_of_a_row_that_does_not_fit_only_that_task_is_lost(make: Make) -> None:
    rows = '{"name": "crane", "setup": {"board": {"tries": "x"}}}\n{"name": "slate"}\n'
    project = Project.open(make({ROWS: rows}))
    assert project.tasks["slate"].name == "words/slate"
    with pytest.raises(ProjectError, match=r"words.jsonl:1: setup board.tries: must be an integer"):
        project.tasks["crane"]


def test_tasks_of_a_folder_that_cannot_be_read_are_explained(make: Make) -> None:
    project = Project.open(make({ROWS: "{\n"}))
    assert project.tasks.names == ("single", "words")
    assert project.tasks_of("game").names == ("single",)
    with pytest.raises(ProjectError, match=r"words.jsonl:1: is not JSON"):
        project.tasks["words/crane"]
    tasks: Any = project.tasks
    assert "words/crane" not in tasks and "single" in tasks
    with pytest.raises(UnknownName, match=r"there is no Task 'crane'.* Tasks of words could not be read."):
        project.tasks["crane"]


def test_of_many_bad_rows_the_first_are_told(make: Make) -> None:
    rows = "".join(f'{{"name": "r{number}", "x": 1}}\n' for number in range(60))
    found = [
        problem for problem in Project.open(make({ROWS: rows})).validate().problems if problem.file == ROWS
    ]
    assert len(found) == 51 and Problem(ROWS, None, "has 10 more problems.") in found


def test_one_name_in_two_folders_opens_neither(make: Make) -> None:
    second = "environments/more/tasks/single/task.yaml"
    project = Project.open(make({second: ONE}))
    with pytest.raises(ProjectError) as caught:
        project.tasks["single"]
    assert {problem.file for problem in caught.value.problems} == {TASK, second}


def test_an_answer_key_that_no_verifier_reads_is_a_warning(make: Make) -> None:
    unread = VERIFY.replace("episode.answer == episode.expected", "True")
    report = Project.open(make({"verifiers/solved/verify.py": unread})).validate()
    message = "'expected' is given, and no Verifier reads `.expected`; use it or leave it out."
    assert [str(warning) for warning in report.warnings] == [
        f"{TASK}:6: {message}",
        f"{TASKS}/words/task.yaml:6: {message}",
    ]
    assert report.ok


def test_a_link_out_of_the_project_is_refused(make: Make, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "agent.yaml").write_text("name: linked\nharness: fixed\n")
    root = make()
    os.symlink(outside, root / "agents" / "linked")
    assert told(Project.open(root).validate()) == [
        "agents/linked/agent.yaml: lies outside the project, itself or by a link; copy it into the project."
    ]


def test_a_link_out_of_the_project_is_told_where_no_manifest_lies_behind_it(
    make: Make, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    root = make({"project.yaml": "name: sample\nfolders: {tasks: environments/*/tasks, apps: systems}\n"})
    os.symlink(outside, root / "agents" / "ext")
    os.symlink(outside / "gone", root / "verifiers" / "gone")
    os.symlink(outside, root / "systems")
    os.symlink(root / "agents" / "solver", root / "harnesses" / "within")
    remedy = "is a link out of the project; copy what it needs into the project, or remove it."
    found = told(Project.open(root).validate())
    assert [line for line in found if remedy in line] == [
        f"{path}: {remedy}" for path in ("agents/ext", "systems", "verifiers/gone")
    ]


def test_one_wrong_key_hides_nothing_else_of_an_environment(make: Make) -> None:
    wrong = (
        "name: gme\nlimts: {}\napps:\n  board:\n    class: app.py:Gme\n    colour: red\nresources:\n  - 3\n"
        "  - ../../../x\n  - wrds.txt\nlimits: {turns: 0}\nruntime: {kind: acme}\n"
    )
    report = Project.open(make({ENV: wrong})).validate()
    found = [problem for problem in report.problems if problem.file == ENV]
    assert [problem.line for problem in found] == [1, 2, 5, 6, 8, 9, 10, 11, 12]
    assert "class 'app.py:Gme' not found" in found[2].message
    assert "'wrds.txt' not found" in found[6].message


def test_one_wrong_key_hides_nothing_else_of_a_task(make: Make) -> None:
    wrong = (
        "nam: x\nname: sngle\nenvironment: gam\nverifiers:\n  - 1\n  - solvd\nresources: [a]\noracle: solvr\n"
        "instructions: say.md\nlimits: {turns: no}\n"
    )
    report = Project.open(make({TASK: wrong})).validate()
    found = [problem for problem in report.problems if problem.file == TASK]
    assert [problem.line for problem in found] == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert found[4].message == "there is no Verifier 'solvd'; did you mean 'solved'?"


def test_one_wrong_key_hides_nothing_else_of_the_other_words(make: Make) -> None:
    root = make(
        {
            VERIFIER: "name: progres\nrewrd: x\nreward: verify.py:progres\nweight: 0\ninstructions: no.md\n",
            HARNESS: "nme: fixed\nplay: ply.py:play\n",
            AGENT: "name: othr\ncolour: red\nharness: fixd\ninstructions: x.md\n",
            EXAM: "name: exm\ncolour: red\ntasks:\n  - singl\n  - {from: word, splt: x}\n",
        }
    )
    found: dict[str, list[int | None]] = {}
    for problem in Project.open(root).validate().problems:
        found.setdefault(problem.file, []).append(problem.line)
    assert found == {
        VERIFIER: [1, 2, 3, 4, 5],
        HARNESS: [1, 1, 2],
        AGENT: [1, 2, 3, 4],
        EXAM: [1, 2, 4, 5, 5],
    }


def test_a_rule_about_several_keys_is_told_beside_an_unknown_key_and_not_after_a_wrong_value(
    make: Make,
) -> None:
    said = told(Project.open(make({VERIFIER: "name: progress\ncolour: 2\n"})).validate())
    assert len(said) == 2 and "one of 'check', 'reward' and 'hindsight' is needed" in said[0]
    said = told(Project.open(make({VERIFIER: "name: progress\nreward: 3\n"})).validate())
    assert said == [f"{VERIFIER}:2: 'reward' must be text, not 3; put it in quotes."]


def test_one_bad_row_hides_nothing_of_the_others_or_of_itself(make: Make) -> None:
    rows = (
        '{"name": "crane", "setup": {"board": {"tries": "many"}}}\n{bad\n'
        '{"name": "Slate", "setup": {"board": {"tries": []}}}\n{"x": 1}\n'
        '{"name": "c", "x": 1, "setup": {"board": {"secrt": "a"}}}\n'
    )
    report = Project.open(make({ROWS: rows})).validate()
    found = [problem for problem in report.problems if problem.file == ROWS]
    assert [problem.line for problem in found] == [1, 2, 3, 3, 4, 4, 5, 5]
    assert found[3].message == "setup board.tries: must be an integer, got []."
    assert str(found[7]) == (
        f"{ROWS}:5: setup board.secrt: the State has no field 'secrt'; did you mean 'secret'?"
    )


def test_rows_are_held_to_apps_of_an_environment_that_is_wrong_elsewhere(make: Make) -> None:
    rows = '{"name": "crane", "setup": {"board": {"secrt": "a"}}}\n'
    said = told(Project.open(make({ENV: FILES[ENV] + "colour: red\n", ROWS: rows})).validate())
    assert any(line.startswith(f"{ENV}:8: unknown key 'colour'") for line in said)
    assert any(line.startswith(f"{ROWS}:1: setup board.secrt: the State has no field") for line in said)


def test_of_apps_that_cannot_be_read_nothing_is_said_in_rows(make: Make) -> None:
    for wrong in ("name: game\nlimts: {}\n", "name: game\napps: {board: {class: app.py:Gme}}\n"):
        said = told(Project.open(make({ENV: wrong})).validate())
        assert len(said) == 1 and said[0].startswith(f"{ENV}:2: ")


def test_a_setup_that_all_rows_share_is_told_once_where_it_is_written(make: Make) -> None:
    task = f"{TASKS}/words/task.yaml"
    content = FILES[task].replace("{board: {tries: 1}}", "{board: {trys: 1}}")
    assert told(Project.open(make({task: content})).validate()) == [
        f"{task}:7: setup board.trys: the State has no field 'trys'; did you mean 'tries'?"
    ]


def test_a_name_that_is_listed_twice_is_told_once(make: Make) -> None:
    said = told(Project.open(make({TASK: ONE.replace("[solved]", "[solved, solved]")})).validate())
    assert said == [
        f"{TASK}:3: 'verifiers' must name each entry once, not ['solved', 'solved']; remove the second "
        "'solved'."
    ]


def test_a_comment_does_not_count_as_reading_the_answer_key(make: Make) -> None:
    code = VERIFY.replace("episode.answer == episode.expected", "True")
    for unread in ("# not episode.expected", '"""Not episode.expected."""', "expected = 1"):
        report = Project.open(make({"verifiers/solved/verify.py": f"{code}\n{unread}\n"})).validate()
        assert len(report.warnings) == 2, unread
    for read in ("getattr(episode, 'expected')", "wanted(episode)"):
        changed = VERIFY.replace("episode.expected", read)
        files: dict[str, str | None] = {"verifiers/solved/verify.py": changed}
        if read.startswith("wanted"):
            files["verifiers/solved/verify.py"] = "from keys import wanted\n" + changed
            files["verifiers/solved/keys.py"] = "def wanted(episode):\n    return episode.expected\n"
        assert Project.open(make(files)).validate() == Report((), ()), read


def test_a_state_that_is_none_is_told_without_a_setup(make: Make) -> None:
    code = GAME.replace("state: Board", "state: dict")
    report = Project.open(make({"environments/game/app.py": code})).validate()
    assert any(
        problem.file == ENV and "state is annotated as" in problem.message for problem in report.problems
    )


def test_a_folder_without_any_manifest_is_no_resource(make: Make) -> None:
    root = make({"verifiers/shared/code.py": "", "verifiers/.hidden/x.yaml": "", "agents/_old/x.yaml": ""})
    project = Project.open(root)
    assert list(project.verifiers) == ["progress", "solved"] and project.validate().ok


def test_thousands_of_rows_are_built_when_they_are_asked_for(make: Make) -> None:
    rows = "".join(f'{{"name": "r{number}", "expected": {number}}}\n' for number in range(3500))
    project = Project.open(make({ROWS: rows}))
    assert len(project.tasks) == 3501 and isinstance(project.tasks, TaskSet)
    assert project.tasks["r3499"].expected == 3499 and len(project.tasks._built) == 1


def test_a_strangers_kind_is_given_its_own_keys(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
        from typing import ClassVar

        from plural_gym.harness import Harness
        from plural_gym.verifier import Verifier

        class Judge(Verifier):
            kind: ClassVar[str] = "judge"
            strictness: int
            criteria: tuple = ()
            model: str = ""
            instructions: str = ""
            @property
            def scores(self):
                return True

            def identity(self):
                return {"strictness": self.strictness}

        class Loop(Harness):
            def __init__(self, speed=1):
                self.speed = speed

            def play(self, task, seat):
                return self.speed
    """
    (tmp_path / "acme_kinds.py").write_text(dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    root = make(
        {
            VERIFIER: "name: progress\nkind: acme_kinds:Judge\nstrictness: 3\nmodel: m\n"
            "instructions: judge.md\n"
            "criteria: [{name: tone, description: Polite.}]\n",
            "verifiers/progress/judge.md": "Be strict.",
            HARNESS: "name: fixed\nkind: acme_kinds:Loop\nconfig: {speed: 2}\n",
            AGENT: "name: other\nharness: acme_kinds:Loop\nharness_options: {speed: 7}\n",
        }
    )
    project = Project.open(root)
    judge: Any = project.verifiers["progress"]
    assert (judge.strictness, judge.model, judge.instructions) == (3, "m", "Be strict.")
    assert judge.criteria[0].name == "tone"
    harness: Any = project.harnesses["fixed"]
    other: Any = project.agents["other"].driver()
    assert (harness.speed, harness.name, other.speed) == (2, "fixed", 7)
    assert project.validate().ok
