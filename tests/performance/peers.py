"""Other packages' Wordle, made to play the same game offline: what `bench_vector.py` measures beside ours.

TextArena (`textarena`) and GEM (`gem-llm`) read their words from NLTK's corpora, which they download when an
environment is made. Here the corpora are written into a temporary folder instead, with the words of our
world: all of them as `en`, 850 secrets as `en-basic`, which is how many words that corpus has. TextArena's
tagger is given a dictionary by which every word is a noun. Nothing else of theirs is touched; a package that
is not installed is left out.
"""

import contextlib
import importlib.util
import io
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bare_wordle import SECRETS, WORDS

TEXTARENA, GEM = "textarena", "gem"
"""The modules that are imported."""
BASIC_WORDS = 850


def is_installed(module: str) -> bool:
    """Whether a peer can be measured here."""
    return importlib.util.find_spec(module) is not None and importlib.util.find_spec("nltk") is not None


def write_corpora(folder: Path) -> None:
    """Write what the peers download into a folder, and let NLTK read it from there alone."""
    import nltk

    words = folder / "corpora" / "words"
    words.mkdir(parents=True)
    (words / "en").write_text("\n".join(WORDS), encoding="ascii")
    (words / "en-basic").write_text(
        "\n".join(random.Random(0).sample(SECRETS, BASIC_WORDS)), encoding="ascii"
    )
    (words / "README").write_text("words of a game", encoding="ascii")
    name = "averaged_perceptron_tagger_eng"
    tagger = folder / "taggers" / name
    tagger.mkdir(parents=True)
    nouns = dict.fromkeys([*WORDS, "test"], "NN")
    for part, content in (("weights", {}), ("tagdict", nouns), ("classes", ["NN"])):
        (tagger / f"{name}.{part}.json").write_text(json.dumps(content), encoding="ascii")
    nltk.data.path[:] = [str(folder)]
    nltk.download = lambda *_, **__: True  # it is there


def quietly(make: Callable[[], Any]) -> Any:
    """What a maker makes, without what it prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        return make()


def make_textarena() -> Any:
    """`Wordle-v0` as its users make it."""
    import textarena

    return quietly(lambda: textarena.make("Wordle-v0"))


def make_gem() -> Any:
    """Five letters, six guesses, as ours."""
    import gem

    return gem.make("game:Wordle-v0-hard", max_turns=6)


def make_gem_vector(number: int) -> Any:
    """`make_vec` of as many; it resets a member within the step that ends its episode."""
    import gem

    return quietly(lambda: gem.make_vec(["game:Wordle-v0-hard"] * number, max_turns=6))


def textarena_action(word: str) -> str:
    """A guess as TextArena reads it."""
    return f"[{word}]"


def gem_action(word: str) -> str:
    """A guess as GEM reads it."""
    return f"\\boxed{{{word}}}"


def run_textarena(env: Any, actions: Sequence[str]) -> float:
    """Seconds of processor time for the actions: the loop of TextArena's own readme."""
    env.reset(num_players=1)
    started = time.process_time()
    for action in actions:
        env.get_observation()
        done, _ = env.step(action)
        if done:
            env.close()
            env.reset(num_players=1)
    return time.process_time() - started
