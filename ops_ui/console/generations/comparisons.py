"""The inputs of a generation beside those of another one of the same source. Fields that a route masks stay masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.safestring import SafeString

from ops_ui.console.base import navigation
from ops_ui.console.generations import comparison_reads, range_reads
from ops_ui.console.generations.comparison_reads import ALL, FIRST, LAST
from ops_ui.console.pages import Urls, page, show
from ops_ui.console.payloads.diff import Row, compare
from ops_ui.console.payloads.marks import json_piece
from projection.models import WorkItem

WAYS: Final = ((LAST, "the last input of each"), (FIRST, "the first input of each"), (ALL, "all inputs of each"))


@dataclass(frozen=True, slots=True)
class Line:
    """A row with its text as HTML."""

    row: Row
    html: SafeString


@page(navigation.GENERATIONS)
def comparison(request: HttpRequest, work_id: str) -> HttpResponseBase:
    """From the inputs of `with` (a WorkId; without it, the generation before) to those of this one; `inputs`: last, first or all."""
    if not request.user.has_perm(navigation.EVENTS.permission):
        raise PermissionDenied(
            f"You do not have permission to open this page ({navigation.EVENTS.permission}). Ask an administrator for a role that has it."
        )
    item = get_object_or_404(WorkItem, work_id=work_id)
    other = _other(request, item)
    asked = request.GET.get("inputs", "")
    which = asked if asked in (FIRST, ALL) else LAST
    choices = comparison_reads.neighbours(item)
    if other is not None and all(one.id != other.id for one in choices):
        choices = [*choices, other]
    context: dict[str, Any] = {"item": item, "other": other, "choices": choices, "ways": WAYS, "which": which}
    if other is not None:
        old, new = comparison_reads.side(other, which), comparison_reads.side(item, which)
        found = compare(old.lines, new.lines)
        rows = [Line(row, json_piece(row.text, 0, 0, len(row.text), ())) for row in found.rows]
        context |= {"old": old, "new": new, "difference": found, "rows": rows}
    return show(request, "console/generations/comparison.html", "Compare inputs", **context)


def _other(request: HttpRequest, item: WorkItem) -> WorkItem | None:
    """Raises Http404 where `with` names no work of the same source."""
    asked = request.GET.get("with", "")
    if not asked:
        return range_reads.before(item) if item.projection_key else None
    other = WorkItem.objects.filter(work_id=asked).first() if asked.isascii() else None
    if other is None or not comparison_reads.is_same_source(item, other):
        raise Http404("no generation of this source has the work id given in the URL as `with`")
    return other


URLS: Final[Urls] = (("generations/<ascii:work_id>/compare/", comparison, "comparison"),)
