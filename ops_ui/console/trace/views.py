"""Trace: paste an id, see the whole way of what it names and where the time went."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from connectors.models import Receipt
from connectors.operations.trace import WAYS, Trace
from connectors.operations.trace import trace as trace_of
from ops_ui.console.base import labels, navigation
from ops_ui.console.base.why_links import Told, told
from ops_ui.console.lists import exports
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from ops_ui.console.trace import export
from ops_ui.console.trace import steps as trace_steps
from projection.database import clock
from projection.inspection.why import why_each
from projection.models import WorkItem
from projection.states import NONTERMINAL

SHOWN: Final = 100
"""Newest rows of each kind."""
WHY_SHOWN: Final = 20
"""Waiting work whose reason is told (some five queries together)."""
EXAMPLES_SHOWN: Final = 5
EXAMPLES_LOOKED_AT: Final = 20


@page(navigation.TRACE)
def trace(request: HttpRequest) -> HttpResponseBase:
    """The form alone, or what `q` names; `as` narrows to one way of naming. Some thirty queries, whatever the history holds."""
    text = request.GET.get("q", "")
    only = request.GET.get("as") or None
    only = only if only in WAYS else None
    context: dict[str, Any] = {
        "text": text,
        "only": only,
        "ways_of_naming": WAYS.values(),
        "days": settings.HEADRACE_RETENTION_DAYS,
    }
    if text.strip():
        text, found = _found(text, only)
        found = _permitted(request, found)
        wanted = exports.requested(request)
        if wanted is not None and found.matches:
            rows = exports.whole(export.traced(found))
            return exports.answer(request, Export("trace", rows, export.trace), wanted)
        context |= {"text": text, "trace": found, **_facts(found)}
    else:
        context["examples"] = _examples(request)
    return show(request, "console/trace/trace.html", "Trace", **context)


def _found(text: str, only: str | None) -> tuple[str, Trace]:
    """What was pasted exactly, or else without the spaces around it."""
    found = trace_of(text, SHOWN, only=only)
    bare = text.strip()
    return (text, found) if found.found or bare == text else (bare, trace_of(bare, SHOWN, only=only))


def _permitted(request: HttpRequest, found: Trace) -> Trace:
    """Without what this person may not see."""
    kinds = {"event"}
    if request.user.has_perm(navigation.RECEIPTS.permission):
        kinds.add("receipt")
    if request.user.has_perm(navigation.GENERATIONS.permission):
        kinds.add("work_item")
    return replace(
        found,
        receipts=found.receipts if "receipt" in kinds else [],
        work_items=found.work_items if "work_item" in kinds else [],
        failures=found.failures if "work_item" in kinds else [],
        matches=[match for match in found.matches if match.kind in kinds],
    )


def _facts(found: Trace) -> dict[str, Any]:
    ways = trace_steps.ways(found, clock.now())
    states: dict[str, int] = {}
    for item in found.work_items:
        states[item.state] = states.get(item.state, 0) + 1
    return {
        "ways": ways,
        "reasons": _reasons(found),
        "ways_cut": len(ways) == trace_steps.WAYS_SHOWN,
        "states": sorted(states.items()),
        "endpoints": defaultdict(str, labels.endpoints(receipt.endpoint_id for receipt in found.receipts)),
    }


def _reasons(found: Trace) -> dict[str, Told]:
    """WorkId → why the newest waiting items do not run."""
    waiting = [item.id for item in reversed(found.work_items) if item.state in NONTERMINAL][:WHY_SHOWN]
    items = {item.id: item for item in WorkItem.objects.filter(id__in=waiting)}
    return {items[id].work_id: told(why, items[id]) for id, why in why_each(list(items.values())).items()}


def _examples(request: HttpRequest) -> list[Receipt]:
    """The newest deliveries that have an id, to try with."""
    if not request.user.has_perm(navigation.RECEIPTS.permission):
        return []
    newest = Receipt.objects.only("id", "idempotency_key", "received_at", "state").order_by("-id")[:EXAMPLES_LOOKED_AT]
    return [receipt for receipt in newest if receipt.idempotency_key][:EXAMPLES_SHOWN]


URLS: Final[Urls] = (("trace/", trace, "trace"),)
