"""Resources: an Environment's files, staged fresh for each Trial."""

import shutil
from pathlib import Path

from plural_gym.environment import Environment
from plural_gym.identity import file_digest

NO_RESOURCES = Path("/this-environment-has-no-resources")
"""Where `self.resources` leads in an Environment without Resources: to a clear error."""


def stage(environment: Environment, folder: Path) -> dict[str, str]:
    """Copy every Resource into `folder`; returns name -> content hash.

    Raises:
        DefinitionError: a Resource is no file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hashes = {}
    for resource in environment.resources:
        target = folder / resource.staged_name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(environment.resource_path(resource), target)
        hashes[resource.staged_name] = file_digest(target)
    return hashes
