"""Wordle: the world, its Verifiers, the words, and the Agents that play it."""

import functools
import hashlib
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plural_gym import DeterministicVerifier, Environment, Limits, Task, refs
from plural_gym.app import AppDeclaration
from plural_gym.apps.python import PythonApp
from plural_gym.episode import Episode, HindsightTrial, recorded_apps
from plural_gym.state import freeze_value
from plural_gym.step import TaskView

ROWS = "envs/wordle/tasks/wordle/words.jsonl"
ENV = Path(__file__).parents[2] / "envs/wordle"


@functools.cache
def words() -> tuple[str, ...]:
    return tuple((ENV / "words.txt").read_text().split())


@functools.cache
def colour() -> Any:
    return refs.load("app.py:colour", ENV)


def slow_colour(guess: str, secret: str) -> str:
    """The rule as people say it: exact places first, then each left-over letter once, from the left."""
    marks = ["-"] * 5
    left = Counter(secret)
    for i in range(5):
        if guess[i] == secret[i]:
            marks[i] = "g"
            left[guess[i]] -= 1
    for i in range(5):
        if marks[i] == "-" and left[guess[i]] > 0:
            marks[i] = "y"
            left[guess[i]] -= 1
    return "".join(marks)


@pytest.fixture
def game(table: Any) -> Any:
    return lambda secret, turns=12: table("app.py:Wordle", "envs/wordle", {"secret": secret}, turns)


@pytest.mark.parametrize(
    ("guess", "secret", "marks"),
    [
        ("crane", "crane", "ggggg"),
        ("slate", "crane", "--g-g"),
        ("might", "crane", "-----"),
        ("geese", "those", "---gg"),
        ("those", "geese", "---gg"),
        ("eerie", "geese", "yg--g"),
        ("geese", "eerie", "-gy-g"),
        ("llama", "label", "gyy--"),
        ("label", "llama", "gy--y"),
        ("allay", "label", "yyy--"),
        ("sissy", "basis", "yyg--"),
        ("abbey", "babes", "yygg-"),
        ("kebab", "abbey", "-ygyy"),
        ("speed", "abide", "--y-y"),
        ("speed", "erase", "y-yy-"),
        ("speed", "steal", "g-g--"),
        ("mamma", "gamma", "-gggg"),
    ],
)
def test_a_letter_gets_at_most_as_many_marks_as_the_secret_has_of_it(
    guess: str, secret: str, marks: str
) -> None:
    assert slow_colour(guess, secret) == marks
    assert colour()(guess, secret) == marks


@given(st.sampled_from(words()), st.sampled_from(words()))
def test_marks_agree_with_the_rule_as_people_say_it(guess: str, secret: str) -> None:
    assert colour()(guess, secret) == slow_colour(guess, secret)


def test_marks_agree_for_every_guess_with_a_letter_that_is_there_twice() -> None:
    repeated = [word for word in words() if len(set(word)) < 5]
    secrets = repeated[::97]
    for guess in repeated:
        for secret in secrets:
            assert colour()(guess, secret) == slow_colour(guess, secret), (guess, secret)


def test_the_reply_shows_each_letter_beside_its_mark(game: Any) -> None:
    seat = game("crane")
    reply = seat.act("guess", word="slate")
    assert reply == "s=- l=- a=g t=- e=g"
    assert (reply[::4], reply[2::4]) == ("slate", "--g-g")
    assert seat.opening is None


def test_the_readme_shows_what_the_game_replies(game: Any) -> None:
    seat = game("label")
    assert f"`llama` for `label` gives `{seat.act('guess', word='llama')}`" in (ENV / "README.md").read_text()


def test_the_game_ends_when_the_word_is_found(game: Any) -> None:
    seat = game("crane")
    seat.act("guess", word="slate")
    assert not seat.finished
    seat.act("guess", word="crane")
    assert seat.finished
    expected = {
        "words": [],
        "secret": "crane",
        "guesses": ["slate", "crane"],
        "marks": ["--g-g", "ggggg"],
        "status": "won",
    }
    assert seat.state == expected


def test_the_game_ends_after_six_guesses(game: Any) -> None:
    seat = game("crane")
    for word in ("slate", "brace", "grace", "trace", "crate"):
        seat.act("guess", word=word)
        assert seat.state["status"] == "playing"
    seat.act("guess", word="crave")
    assert seat.finished
    assert seat.state["status"] == "lost"


def test_the_word_may_be_found_at_the_last_guess(game: Any) -> None:
    seat = game("crane")
    for word in ("slate", "brace", "grace", "trace", "crate", "crane"):
        seat.act("guess", word=word)
    assert seat.state["status"] == "won"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("cran", "'cran' has 4 letters; guess a word of five"),
        ("grapes", "'grapes' has 6 letters; guess a word of five"),
        ("", "'' has 0 letters; guess a word of five"),
        ("zzzzz", "'zzzzz' is not in the word list; guess another English word"),
        ("cr4ne", "'cr4ne' is not in the word list; guess another English word"),
        ("crâne", "'crâne' is not in the word list; guess another English word"),
    ],
)
def test_a_guess_that_is_no_word_is_rejected_and_does_not_count(game: Any, word: str, message: str) -> None:
    seat = game("crane")
    assert seat.try_act("guess", word=word) == message
    assert seat.state == {
        "words": [],
        "secret": "crane",
        "guesses": [],
        "marks": [],
        "status": "playing",
    }
    assert "crane" not in message


def test_a_rejection_never_repeats_a_long_input_in_full(game: Any) -> None:
    assert len(game("crane").try_act("guess", word="x" * 100_000)) < 120


def test_capitals_and_space_around_a_guess_do_not_matter(game: Any) -> None:
    seat = game("crane")
    assert seat.act("guess", word=" Slate\n") == "s=- l=- a=g t=- e=g"
    assert seat.state["guesses"] == ["slate"]


def test_a_secret_that_is_no_word_of_the_list_is_refused_before_anything_runs() -> None:
    declaration = AppDeclaration("python", {"class": refs.load("app.py:Wordle", ENV)})
    for secret in ("zzzzz", "Crane", "cran"):
        with pytest.raises(ValidationError, match=r"lowercase five-letter word of words\.txt"):
            PythonApp.check_setup(declaration, {"secret": secret})
    PythonApp.check_setup(declaration, {"secret": "crane"})


def test_a_setup_may_give_the_words_of_a_game(table: Any) -> None:
    few = ["crane", "slate", "llama"]
    seat = table("app.py:Wordle", "envs/wordle", {"words": few, "secret": "crane"}, 12)
    said = "'brace' is not in the word list; guess another English word"
    assert seat.try_act("guess", word="brace") == said
    assert seat.act("guess", word=" Slate\n") == "s=- l=- a=g t=- e=g"
    assert seat.act("guess", word="crane") == "c=g r=g a=g n=g e=g"
    assert table("app.py:Wordle", "envs/wordle", {"words": few}, 12).state["secret"] in few


def test_words_that_do_not_fit_are_refused_before_anything_runs() -> None:
    declaration = AppDeclaration("python", {"class": refs.load("app.py:Wordle", ENV)})
    with pytest.raises(ValidationError, match=r"'zzzzz' is no lowercase five-letter word of words\.txt"):
        PythonApp.check_setup(declaration, {"words": ["crane", "zzzzz"]})
    with pytest.raises(ValidationError, match="the secret must be one of the words that may be guessed"):
        PythonApp.check_setup(declaration, {"words": ["crane"], "secret": "slate"})


def test_without_a_secret_a_training_word_is_drawn_from_the_seed(table: Any, rows: Any) -> None:
    first, again = (table("app.py:Wordle", "envs/wordle", {}, 12).state["secret"] for _ in range(2))
    assert first == again
    training = [row["name"] for row in rows(ROWS) if row["split"] == "train"]
    assert first in training
    assert list(refs.load("app.py:drawn_words", ENV)()) == training


def test_two_games_share_nothing_but_the_words(game: Any) -> None:
    one, other = game("crane"), game("slate")
    one.act("guess", word="those")
    assert other.state["guesses"] == []


def test_every_row_is_a_game_of_an_accepted_word(rows: Any) -> None:
    accepted = set(words())
    assert list(words()) == sorted(accepted)
    names = [row["name"] for row in rows(ROWS)]
    assert names == sorted(set(names))
    for row in rows(ROWS):
        name = row["name"]
        assert name in accepted
        assert row["setup"] == {"game": {"secret": name}}


def test_the_split_is_fixed_by_the_word(rows: Any) -> None:
    sizes = Counter(row["split"] for row in rows(ROWS))
    assert sizes == {"train": 3195, "test": 339}
    for row in rows(ROWS):
        held_out = int(hashlib.sha256(row["name"].encode()).hexdigest(), 16) % 10 == 0
        assert row["split"] == ("test" if held_out else "train")


def episode(state: dict[str, Any]) -> Episode:
    frozen = freeze_value(state)
    return Episode(TaskView("", ""), recorded_apps({"game": ("full", frozen, frozen)}), ())


@pytest.mark.parametrize(("status", "score"), [("won", 1.0), ("lost", 0.0), ("playing", 0.0)])
def test_solved_reads_the_state(load: Any, status: str, score: float) -> None:
    check = load("verifiers/solved/verify.py:solved")
    output = check(episode({"secret": "crane", "guesses": ["slate"], "marks": ["--g-g"], "status": status}))
    assert output.score == score
    assert output.scores == {"solved": score, "guesses": 1.0}
    assert output.evidence == (f"status: {status}; secret: crane; guesses: slate",)


def hindsight_of(load: Any, score: float, errors: list[str | None]) -> list[Any]:
    steps = [
        {"event_id": f"step-{n}", "action": "guess", "error": error}
        for n, error in enumerate(errors, start=1)
    ]
    trial = HindsightTrial(score, recorded_apps({}), TaskView("", ""), steps)
    return list(load("verifiers/solved/verify.py:fewer_guesses")(trial))


def test_the_solving_guess_is_credited_by_how_few_it_took(load: Any) -> None:
    (credit,) = hindsight_of(load, 1.0, [None, "not in the word list", None])
    assert (credit.event_id, credit.target) == ("step-3", "step")
    assert credit.value == pytest.approx(0.9)
    (credit,) = hindsight_of(load, 1.0, [None])
    assert credit.value == 1.0


def test_an_unsolved_game_gets_no_credit(load: Any) -> None:
    assert hindsight_of(load, 0.0, [None] * 6) == []
    assert hindsight_of(load, 0.0, []) == []


def rewards(load: Any, seat: Any, guesses: list[str]) -> list[float]:
    for word in guesses:
        seat.try_act("guess", word=word)
    return [load("verifiers/progress/verify.py:progress")(step) for step in seat.steps]


def test_progress_rewards_a_row_that_is_better_than_all_before(load: Any, game: Any) -> None:
    assert rewards(load, game("crane"), ["slate", "brace", "crane"]) == pytest.approx([0.2, 0.15, 0.65])
    assert rewards(load, game("geese"), ["those", "eerie", "merge"]) == pytest.approx([0.2, 0.05, 0.0])
    assert rewards(load, game("crane"), ["zzzzz", "crane"]) == [-0.1, 1.0]


def test_progress_earns_nothing_for_repeating_a_guess(load: Any, game: Any) -> None:
    assert rewards(load, game("crane"), ["crate"] * 6) == [0.4, 0.0, 0.0, 0.0, 0.0, 0.0]


@given(st.data())
def test_progress_sums_to_one_when_solved_and_stays_below_half_when_not(
    load: Any, table: Any, data: Any
) -> None:
    secret = data.draw(st.sampled_from(words()))
    others = st.sampled_from([word for word in words() if word != secret])
    guesses = data.draw(st.lists(others, min_size=1, max_size=5))
    seat = table("app.py:Wordle", "envs/wordle", {"secret": secret}, 12)
    earned = rewards(load, seat, guesses)
    assert all(reward >= 0 for reward in earned)
    assert sum(earned) < 0.5 + 1e-9
    assert sum(rewards(load, seat, [secret])) == pytest.approx(1.0)


def play_all(play: Any, game: Any, secrets: list[str]) -> list[int | None]:
    """Guesses that each game took; None where the word was not found."""
    results: list[int | None] = []
    for secret in secrets:
        seat = game(secret)
        play(TaskView("", ""), seat)
        assert seat.finished
        results.append(len(seat.state["guesses"]) if seat.state["status"] == "won" else None)
    return results


def test_the_solver_wins_nearly_every_held_out_game(load: Any, game: Any, rows: Any) -> None:
    secrets = [row["name"] for row in rows(ROWS) if row["split"] == "test"]
    results = play_all(load("harnesses/wordle-solver/play.py:play"), game, secrets)
    won = [guesses for guesses in results if guesses is not None]
    assert len(won) >= 0.98 * len(secrets)
    assert mean(won) < 3.9


def test_the_solver_finds_rare_words_too(load: Any, game: Any) -> None:
    common = set((ENV.parents[1] / "harnesses/wordle-solver/common.txt").read_text().split())
    rare = [word for word in words() if word not in common][::80]
    results = play_all(load("harnesses/wordle-solver/play.py:play"), game, rare)
    assert sum(guesses is not None for guesses in results) > 0.5 * len(rare)


def test_the_solver_goes_on_when_a_guess_is_refused(load: Any) -> None:
    choose = load("harnesses/wordle-solver/play.py:choose")
    opener = choose(())
    second = choose((), frozenset({opener}))
    assert second != opener
    assert choose((), frozenset({opener, second})) not in (opener, second)


def test_the_novice_wins_few_games_and_plays_each_the_same(load: Any, game: Any, rows: Any) -> None:
    secrets = [row["name"] for row in rows(ROWS) if row["split"] == "test"][::4]
    play = load("harnesses/wordle-novice/play.py:play")
    first = play_all(play, game, secrets)
    assert 0 < sum(guesses is not None for guesses in first) < 0.35 * len(secrets)
    assert play_all(play, game, secrets[:5]) == first[:5]


@pytest.fixture
def task(load: Any) -> Task:
    """The Task `wordle/crane`, as the project's files describe it."""
    environment = Environment(
        name="wordle", apps={"game": load("envs/wordle/app.py:Wordle")}, limits=Limits(turns=12)
    )
    solved = DeterministicVerifier(name="solved", check=load("verifiers/solved/verify.py:solved"))
    progress = DeterministicVerifier(name="progress", reward=load("verifiers/progress/verify.py:progress"))
    return Task(
        name="wordle/crane",
        instructions="Guess the secret word.",
        environment=environment,
        verifiers=(solved, progress),
        setup={"game": {"secret": "crane"}},
        expected="crane",
    )


def guess(word: str) -> dict[str, Any]:
    return {"action": "guess", "arguments": {"word": word}}


def test_a_game_through_gymnasium(task: Task) -> None:
    env = task.environment.gym(tasks=[task])
    env.reset(seed=0)
    told = [env.step(guess(word)) for word in ("slate", "zzzzz", "brace", "crane")]
    assert [reward for _, reward, _, _, _ in told] == pytest.approx([0.2, -0.1, 0.15, 0.65])
    assert [terminated for _, _, terminated, _, _ in told] == [False, False, False, True]
    assert not any(truncated for _, _, _, truncated, _ in told)
    assert told[0][0]["text"] == "s=- l=- a=g t=- e=g"
    assert "'zzzzz' is not in the word list" in told[1][0]["text"]
    assert "secret" not in str(told)
    env.close()


def test_twelve_rejected_guesses_cut_the_game_off(task: Task) -> None:
    env = task.environment.gym(tasks=[task])
    env.reset(seed=0)
    told = [env.step(guess("zzzzz")) for _ in range(12)]
    assert [truncated for _, _, _, truncated, _ in told] == [False] * 11 + [True]
    env.close()


def test_the_board_shows_the_guesses_and_the_secret_only_once_it_is_lost(game: Any) -> None:
    seat = game("crane")
    seat.act("guess", word="slate")
    board = seat.host.boards()["app"]
    assert [cell.text for cell in board.rows[0]] == list("SLATE") and len(board.rows) == 6
    colors = [cell.background for cell in board.rows[0]]
    assert colors[0] == colors[1] == colors[3] != colors[2] == colors[4]
    assert not any(cell.text or cell.background for row in board.rows[1:] for cell in row)
    for word in ("vivid", "puppy", "mummy", "fluff"):
        seat.act("guess", word=word)
        assert "CRANE" not in str(seat.host.boards()["app"])
    seat.act("guess", word="jolly")
    assert seat.host.boards()["app"].caption == "the word was CRANE"


def test_the_world_keeps_gymnasiums_rules(task: Task) -> None:
    check_env(task.environment.gym(tasks=[task]), skip_render_check=True)


def test_a_seed_repeats_the_secret_that_is_drawn(task: Task) -> None:
    replies = []
    for seed in (3, 3, 4):
        env = task.environment.gym()
        env.reset(seed=seed)
        replies.append([env.step(guess(word))[0]["text"] for word in ("tares", "doing", "cloud", "nymph")])
        env.close()
    assert replies[0] == replies[1] != replies[2]


def test_a_model_is_told_how_to_guess(task: Task) -> None:
    (tool,) = task.environment.actions.tools()
    function = tool["function"]
    assert function["name"] == "guess"
    assert function["parameters"]["required"] == ["word"]
    assert "English word of five letters" in function["parameters"]["properties"]["word"]["description"]
    assert "c=- r=y a=g n=- e=-" in function["description"]
