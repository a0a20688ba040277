"""What is wrong with a configuration, in sentences for the person who wrote it: where, what, and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError


class BadConfiguration(ValueError):
    """The configuration is not usable; `problems` has one line each: where, what is wrong and what is allowed."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def sentences(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """One line per fault of a `model`, `path: what is wrong`, without pydantic's words and without values that may be secrets."""
    lines = []
    for fault in error.errors(include_url=False):
        where = ".".join(_part(part) for part in fault["loc"] if part != "[key]")
        what = _what(fault["type"], fault.get("ctx", {}), fault["msg"])
        if fault["type"] == "extra_forbidden":
            what = f"is not a known name; use one of: {', '.join(_names(model, fault['loc'][:-1]))}"
        line = f"{where or 'file'}: {what}"
        if line not in lines:
            lines.append(line)
    return lines


def option_sentences(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """As `sentences`, for values that came as options of a command: `--public-url: …`."""
    lines = (sentence.partition(":") for sentence in sentences(error, model))
    return [f"--{where.replace('_', '-')}{colon}{what}" for where, colon, what in lines]


def _names(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The names that the table at `path` takes."""
    annotation: Any = model
    for part in path:
        annotation = annotation.model_fields[part].annotation if _is_model(annotation) else get_args(annotation)[1]
        if get_origin(annotation) is not dict:  # an optional section: `Section | None`
            annotation = next((each for each in get_args(annotation) if _is_model(each)), annotation)
    return [field.alias or name for name, field in annotation.model_fields.items()]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _part(part: str | int) -> str:
    return f"[{part + 1}]" if isinstance(part, int) else part


_TYPES: Final = {
    "string_type": "must be text in quotes",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "tuple_type": "must be a list in square brackets",
    "missing": "is missing",
}

_BOUNDS: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "greater_than_equal": lambda ctx: f"must be at least {ctx['ge']}",
    "less_than_equal": lambda ctx: f"must be at most {ctx['le']}",
    "too_short": lambda ctx: f"must have at least {ctx['min_length']} entries",
    "too_long": lambda ctx: f"must have at most {ctx['max_length']} entries",
    "string_too_long": lambda ctx: f"must have at most {ctx['max_length']} characters",
    "literal_error": lambda ctx: f"must be {ctx['expected']}",
    "value_error": lambda ctx: str(ctx["error"]),
}


def _what(kind: str, ctx: Mapping[str, Any], message: str) -> str:
    if kind in _TYPES:
        return _TYPES[kind]
    if kind in _BOUNDS:
        return _BOUNDS[kind](ctx)
    return message
