"""Filters of the pages on which operators act: dead letters, previews, jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from ops_ui.console.base.tags import exact, when

register = template.Library()

THOUSAND: Final = 1_000
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z")
_APART: Final = re.compile(rf"({_TIME.pattern}|`[^`\n]+`)")
"""Times as `iso` writes them, and what is to be typed."""


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
def sentence(text: str) -> SafeString:
    """A sentence of ours, which may quote foreign text: literal (`exact`), its times readable, its `commands` set apart."""
    parts = (_part(part) for part in _APART.split(text) if part)
    return mark_safe("".join(parts))  # noqa: S308  # each part is escaped


def _part(text: str) -> SafeString:
    if _TIME.fullmatch(text):
        with suppress(ValueError):  # digits that are no time
            return when(datetime.fromisoformat(text))
    if text.startswith("`") and text.endswith("`") and len(text) > 2:
        return format_html("<code>{}</code>", exact(text[1:-1]))
    return exact(text)


@register.filter
def as_query(parameters: Mapping[str, str]) -> str:
    """The parameters as a query string."""
    return urlencode(parameters)


@register.filter
def job_target(job_id: int) -> str:
    """What audit entries of a job call it."""
    return f"job {job_id}"
