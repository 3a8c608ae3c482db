"""The shipped worlds: a Plural project that comes with this package.

In the repository it is the root beside the package, in a wheel the folder `shipped` inside it. The registered
ids and the notebooks find it here.
"""

import functools
from pathlib import Path

from plural_gym.errors import MachineError
from plural_gym.project import Project

_PACKAGE = Path(__file__).resolve().parent


def root() -> Path:
    """The folder of the shipped project.

    Raises:
        MachineError: this installation carries none.
    """
    for folder in (_PACKAGE.parent, _PACKAGE / "shipped"):
        if (folder / "project.yaml").is_file() and (folder / "envs").is_dir():
            return folder
    raise MachineError(
        f"the shipped worlds are missing beside {_PACKAGE}; install plural-gym again from a wheel."
    )


@functools.cache
def project() -> Project:
    """The shipped project, opened once."""
    return Project(root())
