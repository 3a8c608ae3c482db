"""Resources: an Environment's files, staged fresh."""

from pathlib import Path

import pytest

from plural_gym.environment import Environment, Resource
from plural_gym.errors import DefinitionError
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.identity import file_digest


def test_files_are_copied_under_their_names_and_hashed(tmp_path: Path) -> None:
    source = tmp_path / "policy.md"
    source.write_text("be kind")
    environment = Environment(name="e", resources=[source, Resource(path=source, name="docs/more.md")])
    hashes = stage(environment, tmp_path / "staged")
    assert hashes == dict.fromkeys(("policy.md", "docs/more.md"), file_digest(source))
    (tmp_path / "staged" / "docs" / "more.md").write_text("changed")
    assert source.read_text() == "be kind"
    source.unlink()
    with pytest.raises(DefinitionError, match="is no file"):
        stage(environment, tmp_path / "again")


def test_without_resources_a_path_leads_to_a_clear_error() -> None:
    with pytest.raises(FileNotFoundError, match="this-environment-has-no-resources"):
        (NO_RESOURCES / "policy.md").read_text()
