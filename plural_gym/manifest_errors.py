"""What pydantic finds wrong in a manifest, as sentences with the value and the remedy."""

import re
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from plural_gym.errors import suggest
from plural_gym.manifest_models import FIELD_RULE, MODEL_RULE

Loc = tuple[int | str, ...]


_WANTED = {
    "string_type": "be text",
    "int_type": "be a whole number",
    "float_type": "be a number",
    "bool_type": "be true or false",
    "dict_type": "be a mapping",
    "model_type": "be a mapping",
    "list_type": "be a list",
    "finite_number": "be a finite number",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_LABEL = "[key]"
_PRIVATE = frozenset({"auth", "credentials", "secrets"})


def explain(error: ValidationError, model: type[BaseModel], only: Loc | None = None) -> list[tuple[Loc, str]]:
    """What is wrong where, one sentence each with its value and what would do.

    `model` is the one that was validated. Locs are pydantic's, as `Document.line` takes them. `only`: of one
    of them alone.
    """
    found: dict[tuple[Loc, str], None] = {}
    for detail in error.errors(include_url=False):
        loc, kind = detail["loc"], detail["type"]
        if only is not None and loc != only:
            continue
        if kind == MODEL_RULE:
            for key, sentence in detail["ctx"]["rules"]:
                path = _subject(_trace(model, loc)[0])
                where = f" (in {path})" if path else ""
                found[(*loc, key) if key else loc, sentence[:-1] + where + sentence[-1]] = None
        else:
            found[loc, _sentence(detail, model)] = None
    return list(found)


def _sentence(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, loc, ctx = detail["type"], detail["loc"], detail.get("ctx", {})
    if kind == "extra_forbidden" or (loc[-1:] == (_LABEL,) and kind in ("literal_error", "enum")):
        return _unknown_key(detail, model)
    clean, _ = _trace(model, loc)
    subject = _subject(clean) or "the file"
    if kind == "missing":
        return f"{subject} is missing."
    came = "" if _PRIVATE.intersection(clean) else f", not {shown(detail['input'])}"
    if kind == FIELD_RULE:
        return f"{subject} must {ctx['must']}{came}{ctx['remedy'] if came else ''}."
    if kind in _WANTED:
        return f"{subject} must {_WANTED[kind]}{came}{_remedy(kind, detail['input'], clean)}."
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"{subject} must be {words} {ctx[key]:g}{came}."
    if kind in ("literal_error", "enum"):
        allowed = re.findall(r"'([^']*)'", ctx["expected"])
        near = suggest(detail["input"], allowed) if isinstance(detail["input"], str) else ""
        return f"{subject} must be {ctx['expected']}{came}" + (f"; {near}" if near.startswith("did") else ".")
    if kind == "too_short":
        return f"{subject} must hold at least {ctx['min_length']} entry, and holds {ctx['actual_length']}."
    return f"{subject}: {detail['msg'][:1].lower()}{detail['msg'][1:]}{came}."


def _unknown_key(detail: ErrorDetails, model: type[BaseModel]) -> str:
    loc = detail["loc"]
    if loc[-1] == _LABEL:
        key, outer = str(loc[-2]), _trace(model, loc[:-2])[0]
        known = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
    else:
        key = str(loc[-1])
        outer, models = _trace(model, loc[:-1])
        known = sorted({name for each in models for name in _fields(each)})
    where = f" in {_subject(outer)}" if outer else ""
    return f"unknown key {shown(key)}{where}; {suggest(key, known).replace('it has:', 'known keys:', 1)}"


def _remedy(kind: str, value: Any, loc: Loc) -> str:
    if value is None:
        return "; give it a value or remove the key"
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "; put it in quotes"
    if kind == "list_type" and isinstance(value, str) and not _PRIVATE.intersection(loc):
        return f"; write [{shown(value, quoted=False)}]"
    return ""


def _subject(loc: Loc) -> str:
    """`'limits.turns'`, `'tasks[0].from'`, `key 'x' in 'apps'`; "" for the whole file."""
    if loc[-1:] == (_LABEL,):
        outer = _subject(loc[:-2])
        return f"key {shown(loc[-2])}" + (f" in {outer}" if outer else "")
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return repr(text.removeprefix(".")) if text else ""


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """Annotation by the name a manifest writes."""
    return {info.alias or name: info.annotation for name, info in model.model_fields.items()}


def _trace(model: type[BaseModel], loc: Loc) -> tuple[Loc, list[type[BaseModel]]]:
    """`loc` without the labels of unions, and the models that may stand there."""
    here: list[Any] = [model]
    clean: list[int | str] = []
    for part in loc:
        below = [kind for annotation in here for kind in _below(annotation, part)]
        if below or part == _LABEL or any(annotation is Any for annotation in here):
            clean.append(part)
            here = below or [Any]
    return tuple(clean), [kind for kind in here if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _below(annotation: Any, part: int | str) -> Iterable[Any]:
    """The types that `part` of a value of type `annotation` may have; none where it has no such part."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = _fields(annotation)
        return _members(fields[part]) if isinstance(part, str) and part in fields else []
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(part, str):
        return _members(arguments[1])
    if origin in (list, tuple) and isinstance(part, int):
        return _members(arguments[0])
    return []


def _members(annotation: Any) -> list[Any]:
    """A type's alternatives, without `Annotated` and aliases."""
    if hasattr(annotation, "__value__"):
        return [Any]
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [member for each in get_args(annotation) for member in _members(each)]
    return [annotation]


def shown(value: Any, *, quoted: bool = True, max_chars: int = 80) -> str:
    """A value as messages show it, shortened."""
    """A value as people write it in YAML, at most 80 characters."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = value if isinstance(value, str) and not quoted else repr(value)
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
