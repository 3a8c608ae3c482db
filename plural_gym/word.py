"""The base of every word that people declare: frozen, closed to unknown fields, and plain in its errors."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo

from plural_gym.errors import DefinitionError, suggest


def _no_truth_value(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"{info.field_name} is a number, not {value}")
    return value


Number = Annotated[float, BeforeValidator(_no_truth_value)]
"""A number; True and False are none."""
WholeNumber = Annotated[int, BeforeValidator(_no_truth_value)]
"""A whole number; True and False are none."""


class Word(BaseModel):
    """A frozen declaration. Wrong fields raise DefinitionError with all that is wrong, in sentences."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True
    )

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            name = data.get("name")
            who = type(self).__name__ + (f" {name!r}" if isinstance(name, str) else "")
            text = explain(error, type(self).model_fields)
            raise DefinitionError(text if text.startswith(f"{who}: ") else f"{who}: {text}") from None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def __copy__(self) -> Self:
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A new word with some fields changed, checked as any other; it belongs to no folder."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**{**given, **(update or {})})


def explain(error: ValidationError, known: Any = ()) -> str:
    """What a ValidationError says, in sentences with places, values and the nearest known field."""
    sentences = []
    for item in error.errors(include_url=False):
        place = ".".join(str(part) for part in item["loc"])
        if item["type"] == "missing":
            sentences.append(f"{place} is missing.")
        elif item["type"] == "extra_forbidden":
            near = suggest(str(item["loc"][-1]), known) if len(item["loc"]) == 1 else "remove it."
            sentences.append(f"{place} is no field; {near}")
        elif item["type"] in ("value_error", "assertion_error"):
            cause = item.get("ctx", {}).get("error")
            text = str(cause if cause is not None else item["msg"])
            sentences.append(text if text.endswith((".", "?")) else text + ".")
        else:
            shown = repr(item["input"])
            shown = shown if len(shown) <= 80 else shown[:77] + "..."
            sentences.append(f"{place}: {item['msg']}, got {shown}.")
    return " ".join(sentences)
