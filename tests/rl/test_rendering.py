"""What a person who watches is shown: in text, in HTML, and in a notebook."""

import re
import subprocess
import sys
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from plural_gym import (
    App,
    Board,
    Cell,
    Environment,
    GymEnv,
    Limits,
    State,
    Step,
    Task,
    VerifierOutput,
    action,
)
from plural_gym.verifiers.deterministic import DeterministicVerifier

EVIL = "<script>alert('x')</script>"


class Shelf(State):
    taken: list[str] = []
    secret: str = "the secret"


class Store(App):
    """Shows what was taken as tiles."""

    state: Shelf

    @action
    def take(self, what: str) -> str:
        """Take something."""
        if not what:
            raise ValueError(f"take something, not {what!r}")
        self.state.taken.append(what)
        return f"took {what}"

    @action
    def roll(self) -> int:
        """Roll a die."""
        return int(self.rng.integers(1_000_000))

    @action
    def fall(self) -> str:
        """Fail."""
        raise KeyError(self.state.secret)

    def terminated(self) -> bool:
        return len(self.state.taken) >= 3

    def board(self) -> Board | None:
        return Board([[Cell(what, "green") for what in self.state.taken]], title="Shelf", tiles=True)


class Broken(Store):
    """Its board fails once something was taken."""

    def board(self) -> Board | None:
        return Board([[{}[what] for what in self.state.taken]])


class Blank(Store):
    """Has no board."""

    def board(self) -> Board | None:
        return None


def paid(step: Step) -> float | None:
    return None if step.error else 0.5


def fails(step: Step) -> float:
    raise RuntimeError(EVIL)


def made(app: type[App] = Store, verifiers: Any = (paid,), **options: Any) -> Any:
    environment = Environment(name="store", title="Store", apps={"shop": app}, limits=Limits(turns=9))
    task = Task(
        name="the-name",
        instructions="Take three.",
        environment=environment,
        verifiers=(DeterministicVerifier(name="full", check=full),),
    )
    return environment.gym(tasks=[task], verifiers=verifiers, **options)


def full(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=1.0)


def begun(**options: Any) -> Any:
    env = made(**options)
    env.reset(seed=0)
    return env


def plain(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def seen(page: str) -> str:
    """The text of an HTML page."""
    return re.sub("<[^>]*>", " ", page)


# --- text ---


def test_ansi_is_the_transcript_and_the_board() -> None:
    env = begun(render_mode="ansi")
    assert plain(env.render()) == "Take three.\n\nShelf\n"
    env.step("take", what="tea")
    env.step("take", what="")
    shown = env.render()
    assert plain(shown) == (
        "Take three.\n"
        "> take(what='tea')\ntook tea\nreward +0.5\n"
        "> take(what='')\nrejected: take something, not ''\n"
        "\nShelf\n tea \n"
    )
    assert "48;2;83;141;78m tea" in shown


def test_the_end_and_failed_rewards_are_told() -> None:
    env = begun(render_mode="ansi", verifiers=[paid, fails], app=Blank)
    for what in ("a", "b", "c"):
        env.step("take", what=what)
    said = env.render()
    assert "no reward from fails: verifier fails reward: RuntimeError" in said
    assert said.endswith("over: environment_terminated")


def test_the_score_counts_where_it_is_added_to_the_reward() -> None:
    graded = [DeterministicVerifier(name="full", check=full, reward=paid)]
    env = begun(render_mode="ansi", score_as_reward=True, verifiers=graded)
    for what in ("a", "b", "c"):
        env.step("take", what=what)
    assert env._scene().reward == pytest.approx(2.5)
    env.reset()
    assert env._scene().reward == 0.0
    assert begun(verifiers=[])._scene().reward is None


def test_human_prints_as_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    env = begun(render_mode="human")
    assert capsys.readouterr().out == "Take three.\n\nShelf\n\n"
    env.step("take", what="tea")
    assert capsys.readouterr().out == "> take(what='tea')\ntook tea\nreward +0.5\n\nShelf\n tea \n\n"
    assert env.render() is None and capsys.readouterr().out == ""


def test_nothing_that_was_said_moves_the_cursor() -> None:
    env = begun(render_mode="ansi", app=Blank)
    env.step("take", what="\x1b[2J\x07\u202e")
    assert "\x1b" not in env.render() and "\\x1b[2J" in env.render()


def test_lists_of_what_was_rendered_come_from_make() -> None:
    env = gym.make("plural_gym:plural/Wordle-v0", task="crane", render_mode="ansi_list")
    env.reset(seed=0)
    env.step({"action": "guess", "arguments": {"word": "slate"}})
    frames: Any = env.render()
    assert [plain(frame).count("\n>") for frame in frames] == [0, 1]


def test_hidden_state_is_in_no_transcript() -> None:
    env = begun(render_mode="ansi", app=Blank, on_fault="truncate")
    env.step("take", what="tea")
    env.step("fall")
    told = env.render() + env._repr_html_()
    assert "the action failed" in told and "the secret" not in told and "the-name" not in told


def test_rendering_changes_nothing() -> None:
    def course(mode: str | None, look: bool) -> list[Any]:
        env = made(render_mode=mode)
        seen = [env.reset(seed=3)]
        for _ in range(3):
            seen.append(env.step("roll"))
            if look:
                env.render()
        return seen

    unseen = course(None, False)
    assert str(course("ansi", True)) == str(course("rgb_array", True)) == str(unseen)


def test_a_restored_episode_shows_its_own_past() -> None:
    env = begun(render_mode="ansi")
    env.step("take", what="tea")
    here = env.checkpoint()
    shown = env.render()
    env.step("take", what="milk")
    env.restore(here)
    assert env.render() == shown
    env.reset()
    assert "tea" not in env.render()


# --- boards ---


def test_a_board_that_fails_costs_the_board_alone() -> None:
    env = begun(app=Broken, render_mode="ansi")
    *_, terminated, truncated, info = env.step("take", what="tea")
    assert not terminated and not truncated and info["error"] == ""
    assert re.search(
        r"shop: no board\napp shop board: KeyError: 'tea' \(at test_rendering.py:\d+\)", plain(env.render())
    )


def test_several_boards_carry_the_names_of_their_apps() -> None:
    class Other(Store):
        def board(self) -> Board:
            return Board([["tea", "3"]], caption="left")

    environment = Environment(name="stores", apps={"one": Other, "two": Other})
    env = environment.gym(render_mode="ansi")
    env.reset(seed=0)
    assert plain(env.render()) == "\none\ntea  3\nleft\n\n\ntwo\ntea  3\nleft\n"


def test_an_action_cannot_be_named_board() -> None:
    class Chess(App):
        @action
        def board(self) -> str:  # type: ignore[override]
            """Show the board."""
            return ""

    with pytest.raises(ValueError, match="an action cannot be named 'board': the host calls that"):
        Environment(name="chess", apps={"chess": Chess}).gym()


# --- which modes there are ---


def test_every_mode_passes_gymnasiums_check() -> None:
    assert GymEnv.metadata["render_modes"] == ["ansi", "human", "rgb_array"]
    check_env(made(app=Blank, on_fault="truncate", render_mode="rgb_array"))


def test_a_mode_that_is_none_is_answered() -> None:
    with pytest.raises(ValueError, match="render_mode 'rgb_arry' is unknown; did you mean 'rgb_array'"):
        made(render_mode="rgb_arry")


def test_without_pillow_pictures_are_not_offered() -> None:
    script = (
        "import sys\n"
        "sys.modules['PIL'] = None\n"
        "import gymnasium, plural_gym\n"
        "assert plural_gym.GymEnv.metadata['render_modes'] == ['ansi', 'human']\n"
        "gymnasium.make('plural_gym:plural/Wordle-v0', render_mode='ansi').close()\n"
        "for mode in ('rgb_array', 'rgb_array_list'):\n"
        "    try:\n"
        "        gymnasium.make('plural_gym:plural/Wordle-v0', render_mode=mode)\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 2 and all("pip install plural-gym[render]" in line for line in said)


def test_pillow_is_loaded_by_the_first_picture() -> None:
    script = (
        "import sys, gymnasium\n"
        "env = gymnasium.make('plural_gym:plural/Wordle-v0', render_mode='rgb_array')\n"
        "env.reset(seed=0)\n"
        "assert 'PIL' not in sys.modules\n"
        "env.render()\n"
        "assert 'PIL' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_rendering_needs_an_episode_and_a_mode() -> None:
    with pytest.raises(gym.error.ResetNeeded):
        made(render_mode="ansi").render()
    with pytest.warns(UserWarning, match="render.. needs a render_mode"):
        assert begun().render() is None


# --- notebooks ---


def test_a_notebook_shows_the_latest_step() -> None:
    env = begun(verifiers=[paid, fails])
    page = env._repr_html_()
    assert "Store" in page and "Take three." in page and "turn 0 of 9" in page
    env.step("take", what="tea")
    text = seen(env._repr_html_())
    assert "took tea" in text and "take(what=&#x27;tea&#x27;)" in text and "Shelf" in text
    assert re.search(r"paid\s+\+0.5", text) and "turn 1 of 9" in text and "+0.5 in all" in text
    assert re.search(r"fails\s+failed: verifier fails reward: RuntimeError", text)
    env.step("take", what="")
    text = seen(env._repr_html_())
    assert "rejected" in text and re.search(r"paid\s+no signal", text)


def test_a_notebook_shows_an_environment_that_has_no_episode() -> None:
    env = made()
    assert "call reset()" in env._repr_html_()
    env.reset(seed=0)
    env.close()
    assert "call reset()" in env._repr_html_()


def test_a_notebook_shows_an_episode_that_could_not_begin() -> None:
    class Stillborn(Store):
        def reset(self, task: Any) -> None:
            raise OSError("no paper")

    env = made(app=Stillborn, render_mode="ansi")
    with pytest.raises(RuntimeError):
        env.reset(seed=0)
    assert "the episode could not be set up" in env.render()
    assert "the episode could not be set up" in env._repr_html_()


def test_whatever_was_said_is_escaped() -> None:
    env = begun(verifiers=[paid, fails])
    env.step("take", what=EVIL)
    for page in (env._repr_html_(), env.episode._repr_html_()):
        assert "<script" not in page and page.count("&lt;script&gt;") >= 2


def test_a_notebook_shows_an_episode() -> None:
    env = begun()
    env.step("take", what="tea")
    env.step("take", what="")
    text = seen(env.episode._repr_html_())
    assert "Episode of the-name" in text and "Take three." in text and "goes on" in text
    assert re.search(r"1\s+take\(what=&#x27;tea&#x27;\)\s+took tea", text)
    assert "rejected: take something" in text
    assert "State of shop" in text and "the secret" in text, "the record is for whoever may see State"


def test_a_very_long_text_is_cut_in_a_notebook() -> None:
    env = begun(app=Blank)
    env.step("take", what="x" * 300_000)
    page = env._repr_html_()
    assert len(page) < 60_000 and "characters in all]" in page
