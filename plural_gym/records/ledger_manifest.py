"""The manifest of a Job's ledger: which parts count, and how far each Trial is in.

It is the commit of a seal. Parts are written as dot files; the manifest that names them is put in place in
one step; then they are renamed. A kill before that step leaves dot files that the next seal removes, a kill
after it leaves dot files that the next seal renames. Readers of `*.parquet` see whole parts, each row once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from plural_gym.errors import RecordError
from plural_gym.records.atomic import clean, read_json, sync_folder, write_json
from plural_gym.records.ledger_rows import Mark

VERSION = "ledger/1"


class Manifest:
    """`ledger/manifest.json`, for the holder of the ledger's lock; `load` for those who only read."""

    def __init__(self, root: Path, content: dict[str, Any]) -> None:
        self.root = root
        self.content = content

    @classmethod
    def load(cls, root: Path) -> "Manifest | None":
        """The manifest as it is, or None if nothing was sealed. RecordError if it is damaged."""
        path = root / "manifest.json"
        return cls(root, read_json(path)) if path.exists() else None

    @classmethod
    def settle(cls, root: Path, versions: Mapping[str, str]) -> "Manifest":
        """The manifest after what a kill interrupted is finished or removed.

        `versions`: the schema of each table. A ledger of other versions, or one whose parts are gone or
        changed, is begun anew: the Trials' folders have everything.
        """
        for folder in (root, *(root / table for table in versions)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        clean(root)
        manifest = cls._sound(root, versions)
        if manifest is None:
            (root / "manifest.json").unlink(missing_ok=True)
            sync_folder(root)
            tables = {table: {"schema": version, "parts": []} for table, version in versions.items()}
            manifest = cls(root, {"schema": VERSION, "next_part": 0, "tables": tables, "trials": {}})
        counted = {root / part["file"] for table in versions for part in manifest.parts(table)}
        for table in versions:
            clean(root / table)
            for stray in set((root / table).glob("part-*.parquet")) - counted:
                stray.unlink()
        return manifest

    @classmethod
    def _sound(cls, root: Path, versions: Mapping[str, str]) -> "Manifest | None":
        try:
            manifest = cls.load(root)
            if manifest is None or manifest.content["schema"] != VERSION:
                return None
            if {name: table["schema"] for name, table in manifest.content["tables"].items()} != versions:
                return None
            return (
                manifest if all(_placed(root, part) for t in versions for part in manifest.parts(t)) else None
            )
        except (RecordError, KeyError, TypeError, AttributeError):
            return None

    def parts(self, table: str) -> Iterator[dict[str, Any]]:
        """The lines of a table's parts, oldest first: `file`, `rows`, `bytes`, `sha256`, `trials`, times."""
        yield from self.content["tables"][table]["parts"]

    @property
    def next_part(self) -> int:
        return int(self.content["next_part"])

    def mark(self, trial_id: str) -> Mark | None:
        """How far a Trial is in; None if it is not."""
        mark = self.content["trials"].get(trial_id)
        return None if mark is None else Mark(**mark)

    def commit(self, marks: Mapping[str, Mark], parts: Mapping[str, dict[str, Any]]) -> None:
        """Counts `parts` (table → line; their dot files are written and synced) and puts them in place."""
        if not parts and all(self.mark(trial_id) == mark for trial_id, mark in marks.items()):
            return
        self.content["trials"].update({trial_id: asdict(mark) for trial_id, mark in marks.items()})
        self.content["next_part"] += 1 if parts else 0
        for table, part in parts.items():
            self.content["tables"][table]["parts"].append(part)
            sync_folder(self.root / table)
        write_json(self.root / "manifest.json", self.content)
        for table, part in parts.items():
            path = self.root / part["file"]
            unplaced(path).replace(path)
            sync_folder(self.root / table)


def unplaced(path: Path) -> Path:
    """Where a part lies before it is counted and renamed."""
    return path.with_name(f".{path.name}.tmp")


def _placed(root: Path, part: Mapping[str, Any]) -> bool:
    """Whether a counted part is whole and in place; puts it there if the kill came before its rename."""
    path = root / part["file"]
    if not path.exists() and unplaced(path).exists():
        unplaced(path).replace(path)
        sync_folder(path.parent)
    return path.exists() and bool(path.stat().st_size == part["bytes"])
