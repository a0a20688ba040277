"""Filters and tags of the console's pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django import template
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from ops_ui.console.base import read_only as read_only_console
from ops_ui.console.base import time_zone
from ops_ui.console.base.glossary import BY_SLUG

register = template.Library()

_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Characters that have no picture or change the direction of what stands beside them."""
_UNDRAWABLE: Final = {0: "\u2400", 0x0D: "\u240d"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
"""HTML replaces these when it parses them, and no page can have half of a character; their pictures stand for them."""
NONE: Final = mark_safe('<span class="none">–</span>')
LONG_TEXT: Final = 28
"""Characters above which a table breaks a text anywhere instead of widening its column for it."""
UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


@register.filter
def exact(text: Any) -> SafeString:
    """The text literally: escaped, isolated from the direction of its surroundings, invisible characters marked and kept."""
    given = "" if text is None else str(text)
    name = "exact long" if len(given) > LONG_TEXT else "exact"
    return mark_safe(f'<bdi class="{name}">{literal(given)}</bdi>')  # noqa: S308  # escaped by `literal`


def literal(text: str) -> str:
    """The text escaped, its invisible characters marked and kept; whoever writes it into a page isolates its direction."""
    return _CONTROL.sub(_marked, str(conditional_escape(text)))


def _marked(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f'<bdi class="control" data-code="U+{code:04X}">{_UNDRAWABLE.get(code, found.group())}</bdi>'


@register.filter
def when(at: datetime | None) -> SafeString:
    """A time in the viewer's zone, to the second; its title has it in UTC with microseconds."""
    if not at:  # also what a template makes of the time of a row that is not there
        return NONE
    at = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>', at.isoformat(), at.strftime("%Y-%m-%d %H:%M:%S.%f"), _local(at)
    )


def _local(at: datetime) -> str:
    """To the second. Within the hour that the clocks go through twice, the offset says which of the two it is.

    At the ends of the calendar, which a provider may name, there is no such time in each zone; it is told in UTC.
    """
    try:
        local = at.astimezone(time_zone.current())
    except OverflowError:
        return f"{at:%Y-%m-%d %H:%M:%S} UTC"
    text = local.strftime("%Y-%m-%d %H:%M:%S")
    if local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset():
        return text
    return f"{text} {local.isoformat()[-6:]}"


@register.simple_tag
def word(slug: str) -> SafeString | str:
    """The small link to what the glossary says of a word; nothing for no word."""
    if not slug:
        return ""
    known = BY_SLUG[slug]
    return format_html(
        '<a class="word" href="{}#{}" title="{}"><span aria-hidden="true">?</span><span class="visually-hidden">What is: {}</span></a>',
        reverse("admin:words"),
        slug,
        known.short,
        known.word,
    )


@register.simple_tag
def zone() -> str:
    """What stands beside the times of this page: `UTC`, or the place of the viewer's zone."""
    return time_zone.label()


@register.simple_tag
def zone_name() -> str:
    """The viewer's zone in full."""
    return time_zone.current().key


@register.filter
def span(length: timedelta | float | None) -> str:
    """A duration (seconds or timedelta) in its two largest units: `3 d 4 h`, `5 min 10 s`, `0.4 s`, `20 ms`."""
    if length is None:
        return "–"
    seconds = length.total_seconds() if isinstance(length, timedelta) else float(length)
    if 0 < abs(seconds) < 0.1:
        return f"{seconds * 1000:.3g} ms".replace("-", "−")
    if abs(seconds) < 60:
        return f"{seconds:.1f} s" if abs(seconds) < 10 and seconds % 1 else f"{seconds:.0f} s"
    parts: list[str] = []
    rest = int(abs(seconds))
    for size, unit in (*UNITS, (1, "s")):
        if rest >= size or parts:
            parts.append(f"{rest // size} {unit}")
            rest %= size
    return ("−" if seconds < 0 else "") + " ".join(part for part in parts[:2] if not part.startswith("0 "))


@register.filter
def span_ms(milliseconds: int | None) -> str:
    """A duration in milliseconds, as `span` writes it."""
    return span(None if milliseconds is None else milliseconds / 1000)


@register.filter
def digits(number: int | None) -> str | SafeString:
    """A number with all of its digits, in groups of three."""
    return NONE if number is None else f"{number:,}"


@register.filter
def badge(state: str | None) -> SafeString:
    """A state as a badge: its colour repeats what its word says."""
    if not state:
        return NONE
    return format_html('<span class="badge badge-{}">{}</span>', re.sub(r"[^a-z_]", "", str(state)), str(state))


@register.filter
def short(key: str | None) -> SafeString:
    """A hashed key, its middle left out; all of it in the title."""
    if not key:
        return NONE
    text = str(key)
    shown = text if len(text) <= 16 else f"{text[:12]}…{text[-4:]}"
    return format_html('<code class="key" title="{}">{}</code>', text, shown)


@register.filter
def cut_words(text: str) -> list[str]:
    """The words of a literal in a template."""
    return text.split()


@register.filter
def at(mapping: Mapping[str, Any], key: str) -> Any:
    """The member of a mapping whose key is a variable."""
    return mapping[key]


@register.simple_tag
def read_only() -> str:
    """Why nothing can be changed in this console; empty: it can."""
    return read_only_console.sentence()


@register.simple_tag
def query(**parameters: Any) -> str:
    """`name=value` for a link, encoded."""
    return urlencode(parameters)


@register.simple_tag(takes_context=True)
def export_url(context: template.Context, kind: str, name: str = "") -> str:
    """The address of all rows of the page's list, with its filter and order, as a file; `name` where a page has several lists."""
    parameters = context["request"].GET.copy()
    for place in ("at", "from", "was", "list"):
        parameters.pop(place, None)
    if name:
        parameters["list"] = name
    parameters["export"] = kind
    return f"?{parameters.urlencode()}"


@register.simple_tag(takes_context=True)
def with_parameter(context: template.Context, name: str, value: Any) -> str:
    """The page's query string with one parameter replaced (a None value removes it)."""
    parameters = context["request"].GET.copy()
    parameters.pop(name, None)
    if value is not None:
        parameters[name] = str(value)
    return f"?{parameters.urlencode()}"
