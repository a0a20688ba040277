"""The panel of a stored text, the same on each page: its window, and where it is downloaded and revealed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from connectors.models import Route
from ops_ui.console.payloads import reads as payload_reads
from ops_ui.console.payloads.reads import MASKED_AT_MOST, Stored
from ops_ui.console.payloads.view import View, view
from projection.models import Event

REVEAL: Final = "projection.reveal_payload"
"""The right to see what routes mask."""


@dataclass(frozen=True, slots=True)
class Panel:
    """What `console/payloads/payload.html` shows. An empty address: there is no such way."""

    view: View
    label: str
    download: str = ""
    reveal: str = ""
    is_hidden: bool = False
    """Whether something is masked for this user: then its hash is not told either, which a guess could be tried on."""

    @property
    def may_copy(self) -> bool:
        """Whether the script offers to copy all of it: it fetches the download for that."""
        return bool(self.download) and not self.view.foreign and self.view.size <= MASKED_AT_MOST


def panel(request: HttpRequest, stored: Stored, label: str, *, download: str = "", reveal: str = "") -> Panel:
    """`stored` as the page's URL asks for it. `reveal`, an address, is offered where something is masked, to those who may."""
    found = view(stored, request.GET)
    may_reveal = request.user.has_perm(REVEAL)
    return Panel(found, label, download, reveal if found.masked and may_reveal else "", found.masked and not may_reveal)


def event_panel(request: HttpRequest, event: Event) -> Panel:
    """The panel of an event's payload, as the page's URL asks for it."""
    return panel(
        request,
        payload_reads.of_event(event),
        "Payload of the event",
        download=reverse("admin:event_payload", args=[event.id]),
        reveal=reverse("admin:reveal_event", args=[event.id]),
    )


def may_see_hashes(request: HttpRequest) -> Callable[[], bool]:
    """Whether a list may tell hashes of texts: to those who may reveal them, or where no route masks anything. One query, when asked."""
    return cache(lambda: request.user.has_perm(REVEAL) or not Route.objects.exclude(masks="[]").exists())


def attachment(content: bytes, name: str) -> HttpResponse:
    """A download that no browser renders: what strangers sent never becomes a page of ours."""
    return HttpResponse(
        content,
        content_type="application/octet-stream",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        },
    )


def masked_file(stored: Stored, name: str) -> HttpResponse:
    """All of it as a file: the exact bytes, or, where its routes mask fields, the masked text."""
    return attachment(stored.masked().text.encode() if stored.masks else stored.raw(), name)
