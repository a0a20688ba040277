"""Actions on a receipt: re-route what waits in quarantine."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from connectors.models import Receipt
from connectors.routing.quarantine import reroute
from ops_ui.console.base.actions import action, actor_of, back, reason_of, tell
from ops_ui.console.base.pages import Urls
from projection.refusals import Refused


@action("connectors.reroute_receipt")
def reroute_receipt(request: HttpRequest, receipt_id: int) -> HttpResponse:
    """Gives a quarantined receipt back to the router, for `reason`, with a fresh budget of attempts."""
    get_object_or_404(Receipt.objects.only("id"), id=receipt_id)
    reason = reason_of(request, "It was not re-routed")
    if reason:
        moved = reroute(receipt_id, actor=actor_of(request), reason=reason)
        refused = None if moved else Refused(str(receipt_id), "not_quarantined", f"receipt {receipt_id} is not in quarantine")
        tell(request, refused, "It waits for the router again.")
    return back(request, "admin:receipt", receipt_id)


URLS: Final[Urls] = (("receipts/<int:receipt_id>/reroute/", reroute_receipt, "reroute_receipt"),)
