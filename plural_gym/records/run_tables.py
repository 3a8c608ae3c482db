"""What a training run told, as `pyarrow` tables with the columns of the ledger.

`run_ledger` gathers the rows and writes the tables; the columns are those of `ledger.TABLES`, so that a run
and a Job have one list of fields.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plural_gym.records.ledger import TABLES

Error = tuple[str, str, str]
"""Type, message, file and line of what a reward function raised."""
RewardRow = tuple[int, int, float, int, int, str | None, str, float | None, Error | None]
"""Numbers of episode and Verifier, time, number of the step in the episode, turn, App, action, value, error.

Plain values alone, so that the garbage collector need not walk through thousands of rows again and again.
"""
VerifierKey = tuple[str, str | None, str | None]
"""Name, version and content hash of a Verifier; None for the latter two where it is a plain function."""


def reward_table(
    rows: Sequence[RewardRow],
    episodes: Mapping[int, Mapping[str, str | None]],
    verifiers: Sequence[VerifierKey],
) -> Any:
    """The table `rewards`.

    Args:
        rows: at least one.
        episodes: the key columns of each episode, by number.
        verifiers: by number.
    """
    # Not by zip: its thousands of iterators would set the garbage collector off.
    columns = (list(map(itemgetter(place), rows)) for place in range(len(rows[0])))
    episode, verifier, times, numbers, turns, apps, actions, values, errors = columns
    keys = _spread(episode, {number: episodes[number] for number in {*episode}})
    graders = _spread(
        verifier,
        {
            number: {
                "verifier": name,
                "verifier_version": version,
                "code_sha256": code,
                "tail": f"step-{name}-live",
            }
            for number, (name, version, code) in enumerate(verifiers)
        },
    )
    events = pc.binary_join_element_wise(keys["trial_id"], pa.array(numbers).cast(pa.string()), "-s")
    failed = any(errors)
    return _table(
        "rewards",
        len(rows),
        {
            "reward_id": pc.binary_join_element_wise(events, graders.pop("tail"), "-"),
            **keys,
            **graders,
            "ts": times,
            "kind": "step",
            "target": "step",
            "event_id": events,
            "turn": turns,
            "app": apps,
            "action": actions,
            "value": values,
            "status": [
                "error" if error is not None else "none" if value is None else "ok"
                for value, error in zip(values, errors, strict=True)
            ],
            "error_type": [error and error[0] for error in errors] if failed else None,
            "error_message": [error and error[1] for error in errors] if failed else None,
            "error_at": [error and error[2] for error in errors] if failed else None,
            "source": "live",
            "run_id": "live",
        },
    )


def episode_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The table `episodes`; rows, at least one, have the same keys, times in seconds since 1970.

    The key "number" is the writer's own and no column.
    """
    names = [name for name in rows[0] if name != "number"]
    return _table("episodes", len(rows), {name: [row[name] for row in rows] for name in names})


def _spread(whose: Sequence[int], known: Mapping[int, Mapping[str, str | None]]) -> dict[str, Any]:
    """Columns of text, by the owner of each row and what is known of each owner."""
    places = {owner: place for place, owner in enumerate(known)}
    taken = pa.array([places[owner] for owner in whose])
    names = next(iter(known.values()))
    return {name: pa.array([row[name] for row in known.values()], pa.string()).take(taken) for name in names}


def _table(name: str, size: int, columns: Mapping[str, Any]) -> Any:
    """A table of the ledger: a column is an array, values, one value for all rows, or missing: nulls."""
    schema = TABLES[name].schema
    unknown = columns.keys() - set(schema.names)
    if unknown:
        raise TypeError(f"table {name!r} has no column {', '.join(sorted(unknown))}")
    return pa.table([_column(field.type, columns.get(field.name), size) for field in schema], schema=schema)


def _column(kind: Any, values: Any, size: int) -> Any:
    if isinstance(values, pa.Array):
        return values
    if not isinstance(values, list | tuple):
        return pa.repeat(pa.scalar(values, kind), size)
    if pa.types.is_timestamp(kind):
        return pa.array((np.array(values) * 1e6).astype(np.int64), kind)
    return pa.array(values, kind)
