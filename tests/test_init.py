"""Importing the package does nothing but register the shipped ids."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("gymnasium", "pyarrow", "docker", "typer", "pettingzoo", "pydantic", "numpy")
IDS = "assert {'plural/Wordle-v0', 'plural/SupportDesk-v0'} <= set(gymnasium.registry)\n"


def python(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_importing_prints_nothing_writes_nothing_and_loads_nothing_heavy(tmp_path: Path) -> None:
    script = (
        f"import plural_gym, plural, sys\nfound = set({HEAVY}) & set(sys.modules)\nassert not found, found\n"
    )
    done = python(script, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "imports",
    [
        "import gymnasium, plural_gym\n",
        "import plural_gym, gymnasium\n",
        "import plural_gym\nimport gymnasium.spaces\nimport gymnasium\n",
        "from plural import App\nimport gymnasium\n",
        "import plural_gym, importlib\nimport gymnasium\nimportlib.reload(plural_gym)\n",
        "import plural_gym, sys\ndel sys.modules['plural_gym']\nimport plural_gym\nimport gymnasium\n",
    ],
)
def test_the_shipped_ids_are_registered_in_either_order_and_once(imports: str, tmp_path: Path) -> None:
    again = "from plural_gym.rl.registration import register_shipped\nregister_shipped()\n"
    done = python(imports + IDS + again + IDS, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_id_that_somebody_registered_stays_theirs(tmp_path: Path) -> None:
    script = (
        "import gymnasium\n"
        "gymnasium.register('plural/Wordle-v0', entry_point='mine:Env')\n"
        "import plural_gym\n"
        "assert gymnasium.spec('plural/Wordle-v0').entry_point == 'mine:Env'\n"
    )
    done = python(script, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import plural
    import plural_gym

    for module in (plural_gym, plural):
        with pytest.raises(AttributeError, match="has no attribute 'Appp'"):
            _ = module.Appp
    with pytest.raises(AttributeError):
        _ = plural.__path__
    assert not hasattr(plural_gym, "manager") and "App" in dir(plural) and "App" in dir(plural_gym)
