"""What routes mask, shown once or given as a file to those who have the right, for a reason: an audit entry each time.

The entry is committed before anything is shown. The answer is kept by no cache, and a reload asks before it posts again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.cache import never_cache

from connectors import audit_log
from connectors.models import Pack, Receipt
from ops_ui.console.actions import action, actor_of, back, reason_of
from ops_ui.console.pages import Urls, show
from ops_ui.console.payloads import reads as payload_reads
from ops_ui.console.payloads.panels import REVEAL, attachment
from ops_ui.console.payloads.reads import Stored
from ops_ui.console.payloads.view import view
from projection.models import Event

WINDOW: Final = ("as", "at", "part")
"""Parameters of the form that say which window is shown."""
PLACE_CHARACTERS: Final = 40
"""Of such a parameter that are looked at: the audit entry keeps them for good."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A stored text with masks: what the audit trail calls it, its page, and the name of its file."""

    stored: Stored
    verb: str
    number: int
    page: str
    file: str

    @property
    def title(self) -> str:
        return f"{self.page} {self.number}"


@action(REVEAL)
@never_cache
def reveal_receipt(request: HttpRequest, receipt_id: int) -> HttpResponse:
    """The body of a receipt without masks, for `reason`; `how`: `show` (a window of it) or `download`."""
    receipt = get_object_or_404(Receipt.objects.defer("body"), id=receipt_id, erasure_id=None)
    stored = payload_reads.of_receipt(receipt, Pack.objects.filter(id=receipt.pack_id).first())
    return _reveal(request, Masked(stored, "receipt.reveal", receipt.id, "receipt", f"receipt-{receipt.id}.body"))


@action(REVEAL)
@never_cache
def reveal_event(request: HttpRequest, event_id: int) -> HttpResponse:
    """The payload of an event without masks, for `reason`; `how`: `show` (a window of it) or `download`."""
    event = get_object_or_404(Event.objects.defer("payload"), id=event_id, erasure_id=None)
    return _reveal(request, Masked(payload_reads.of_event(event), "event.reveal", event.id, "event", f"event-{event.id}.json"))


def _reveal(request: HttpRequest, one: Masked) -> HttpResponse:
    reason = reason_of(request, "Nothing was revealed")
    if not reason:
        return back(request, f"admin:{one.page}", one.number)
    if not one.stored.masks:
        messages.info(request, "Nothing is masked here; the raw text is shown.")
        return HttpResponseRedirect(reverse(f"admin:{one.page}", args=[one.number]))
    whole = replace(one.stored, masks=())
    how = "download" if request.POST.get("how") == "download" else "show"
    parameters = QueryDict(mutable=True)
    parameters.update({name: request.POST[name][:PLACE_CHARACTERS] for name in WINDOW if name in request.POST})
    entry = audit_log.record(
        actor_of(request),
        one.verb,
        str(one.number),
        reason,
        detail={"how": how, "masks": list(one.stored.masks), **parameters.dict()},
    )
    if how == "download":
        return attachment(whole.raw(), one.file)
    address = reverse(f"admin:{one.page}", args=[one.number])
    context = {
        "back": address,
        "view": view(whole, parameters),
        "of": one,
        "entry": entry,
        "reason": reason,
        "label": f"Unmasked: {one.title}",
    }
    return show(request, "console/payloads/revealed.html", f"Unmasked: {one.title}", **context)


URLS: Final[Urls] = (
    ("receipts/<int:receipt_id>/reveal/", reveal_receipt, "reveal_receipt"),
    ("events/<int:event_id>/reveal/", reveal_event, "reveal_event"),
)
