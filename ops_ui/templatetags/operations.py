"""Filters of the pages on which operators act: dead letters, previews, jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from django import template

register = template.Library()

THOUSAND: Final = 1_000


@register.filter
def compact(number: int) -> str:
    """A number for a narrow cell: `950`, `1.2k`, `48k`, `3M`. Whoever needs all digits gets them elsewhere."""
    if number < THOUSAND:
        return str(number)
    for size, unit in ((THOUSAND**2, "M"), (THOUSAND, "k")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + unit if number < 10 * size else f"{number // size}{unit}"
    return str(number)


@register.filter
def as_query(parameters: Mapping[str, str]) -> str:
    """The parameters as a query string."""
    return urlencode(parameters)


@register.filter
def job_target(job_id: int) -> str:
    """What audit entries of a job call it."""
    return f"job {job_id}"
