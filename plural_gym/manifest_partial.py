"""What can be read of a manifest although some of it is wrong, so that the rest is checked all the same.

`project_files.py` asks for it where `Document.parse` refuses, and `project_tasks.py` for a row. Wrong values
and unknown keys are left out one by one until the rest validates.
"""

import copy
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError, create_model, model_validator

from plural_gym.errors import Problem, ProjectError
from plural_gym.manifest import Document, Loc
from plural_gym.manifest_errors import explain
from plural_gym.manifest_models import MODEL_RULE

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Partial(Generic[M]):
    """What could be read of a manifest."""

    manifest: M
    """With a key's default where its value was wrong, and None where a key that is needed was."""
    document: Document
    """What `manifest` was read from: its locs are this document's, its lines the file's."""
    problems: tuple[Problem, ...]
    """Everything that is wrong in the file by itself, in the order of lines."""
    dropped: frozenset[str]
    """Keys at the top whose value, or a part of it, was left out."""


def read(document: Document, model: type[M]) -> Partial[M]:
    """The manifest as `model`, as far as it goes.

    Raises:
        ProjectError: nothing of it can be told apart from what is wrong.
    """
    try:
        manifest = model.model_validate(document.data)
        return Partial(manifest, document, document.faults, frozenset())
    except ValidationError as error:
        problems = document.problems(error, model)
    ruled = _lenient(model, rules=True)
    kept, emended, silenced = document, set[Loc](), False
    while True:
        try:
            manifest = ruled.model_validate(kept.data)
            break
        except ValidationError as error:
            told, wrong, emended = _sorted_out(kept, error, model, emended)
            problems += told
            if () in wrong:
                ruled = _lenient(model, rules=False)
            wrong.discard(())
            if not wrong and silenced:
                raise ProjectError(problems) from None
            silenced = silenced or ruled is _lenient(model, rules=False)
            kept = kept.without(wrong)
    dropped = frozenset(str(loc[0]) for loc in emended if loc)
    ordered = sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0)
    return Partial(manifest, kept, tuple(ordered), dropped)


def read_row(file: str, line: int | None, row: dict[str, Any], model: type[M]) -> Partial[M]:
    """As `read`, of one row of a data file."""
    return read(Document.of(file, Path(file), row, line or 0), model)


def _sorted_out(
    document: Document, error: ValidationError, model: type[BaseModel], emended: set[Loc]
) -> tuple[list[Problem], set[Loc], set[Loc]]:
    """The rules of a mapping that show only now, what is to be left out, and where values were so far.

    A rule about keys of which one was wrong itself is not told: it might hold once that is right.
    """
    told: list[Problem] = []
    wrong: set[Loc] = set()
    values = set(emended)
    for detail in error.errors(include_url=False):
        place = document.place(detail["loc"])
        wrong.add(place)
        if detail["type"] == MODEL_RULE and not any(loc[:-1] == place for loc in emended if loc):
            told += [document.problem(*one) for one in explain(error, model, only=detail["loc"])]
        if detail["type"] != "extra_forbidden":
            values.add(place)
    return told, wrong, values


def _as_it_is(self: Any) -> Any:
    return self


@functools.cache
def _lenient(model: type[M], rules: bool) -> type[M]:
    """`model` without needed keys; and where `rules` is False, without its own rules about several keys."""
    fields: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if info.is_required():
            loose = copy.copy(info)
            loose.default = None
            fields[name] = (info.annotation, loose)
    validators = model.__pydantic_decorators__.model_validators
    silent: dict[str, Any] = {}
    if not rules:
        after = [name for name, one in validators.items() if one.info.mode == "after"]
        silent = {name: model_validator(mode="after")(_as_it_is) for name in after}
    return create_model(model.__name__, __base__=model, __validators__=silent, **fields)
