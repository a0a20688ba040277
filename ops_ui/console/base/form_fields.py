"""Fields of the configuration forms: what is asked for, what was typed, and what is wrong with it, beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from django.http import QueryDict

Kind = Literal["text", "choice", "lines", "secret"]
"""`lines`: one value a line. `secret` is never filled in again."""


@dataclass(frozen=True, slots=True)
class Field:
    """`name` is the name in the configuration file too, so that the strict reader's sentences find it."""

    name: str
    label: str
    help: str = ""
    kind: Kind = "text"
    value: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    placeholder: str = ""
    suggestions: tuple[str, ...] = ()
    required: bool = False
    wide: bool = False
    problem: str = ""
    group: str = ""
    """Heading above the first field of several."""


def filled(fields: Iterable[Field], form: QueryDict) -> tuple[Field, ...]:
    """The fields with what the form says; what it does not name keeps its value."""
    return tuple(
        replace(field, value=form.get(field.name, "")) if field.name in form and field.kind != "secret" else field
        for field in fields
    )


def typed(form: QueryDict) -> dict[str, str]:
    """The last value of each name of a form."""
    return {name: form.get(name, "") for name in form}


def with_problems(fields: Iterable[Field], sentences: Sequence[str], prefix: str = "") -> tuple[tuple[Field, ...], list[str]]:
    """The fields with the strict reader's sentences (`where: what`) beside them, and those sentences that are about none of them.

    `prefix` stands before the names in them (`routes.contact.`).
    """
    fields = tuple(fields)
    names = {field.name for field in fields}
    of_field: dict[str, list[str]] = {}
    left: list[str] = []
    for sentence in sentences:
        where, colon, what = sentence.removeprefix(prefix).partition(": ")
        name = where.partition(".[")[0]
        if colon and name in names:
            of_field.setdefault(name, []).append(what)
        else:
            left.append(sentence)
    return tuple(replace(field, problem="; ".join(of_field.get(field.name, ()))) for field in fields), left


def lines(text: str) -> list[str]:
    """The values of a `lines` field."""
    return [line.strip() for line in text.splitlines() if line.strip()]
