"""How far the first delivery of a new or rotated endpoint has come: waiting → received → verified → routed.

One pure decision over what `read` found; a page asks again every two seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from connectors.models import Endpoint, Receipt, UnverifiedDelivery
from ops_ui.console.base import labels
from ops_ui.console.setup import endpoint_reads
from ops_ui.monitoring import counts
from projection.models import Event
from projection.states import ReceiptState

EVENTS_SHOWN: Final = 20
"""Of one receipt; its own page has all."""

Standing = Literal["done", "now", "failed", "ahead"]


@dataclass(frozen=True, slots=True)
class Went:
    """One event of the receipt: its provider kind and the route that took it (empty: none)."""

    event_id: int
    kind: str
    route: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known about deliveries since the watch began; `receipt` and `failure` are the newest of each."""

    since: datetime
    receipt: Receipt | None = None
    failure: UnverifiedDelivery | None = None
    failures: int = 0
    """Deliveries that did not verify, kept or not; told every half minute."""
    events: Sequence[Went] = ()
    routers: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """One of the four, with when it was reached and a sentence."""

    name: str
    standing: Standing
    at: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Watch:
    stages: tuple[Stage, ...]
    seen: Seen

    @property
    def is_over(self) -> bool:
        """Nothing further will change by itself."""
        return self.stages[-1].standing in ("done", "failed")


def read(endpoint: Endpoint, since: datetime, now: datetime) -> Seen:
    """At most six queries, each a row of an index or a few."""
    newest = endpoint_reads.newest_receipts(endpoint.id)  # several: one from a spool comes later than it was received
    receipt = next((one for one in newest if one.received_at >= since), None)
    return Seen(
        since,
        receipt,
        endpoint_reads.newest_failure(endpoint.id, since),
        endpoint_reads.failures(endpoint, since),
        _went(receipt.id) if receipt else (),
        counts.workers_alive(now).get("router", 0),
    )


def _went(receipt_id: int) -> list[Went]:
    rows = Event.objects.filter(receipt_id=receipt_id).order_by("id").values_list("id", "provider_kind", "route_id")[:EVENTS_SHOWN]
    found = list(rows)
    names = labels.routes(route_id for _, _, route_id in found)
    return [Went(event_id, kind, names.get(route_id or 0, "")) for event_id, kind, route_id in found]


def watch(seen: Seen) -> Watch:
    """The four stages of the newest delivery."""
    receipt, failure = seen.receipt, seen.failure
    if failure is not None and (receipt is None or failure.received_at > receipt.received_at):
        return Watch(_failed(failure), seen)
    if receipt is not None:
        return Watch(_received(receipt, seen), seen)
    note = "send a test delivery from the provider, or from the endpoint's page"
    if seen.failures:
        note = (
            f"{seen.failures} failed the signature check; the reasons are only in the web server's log. "
            "To see them here, set Failed signatures of the endpoint to “keep for inspection”"
        )
    ahead = tuple(Stage(name, "ahead") for name in ("received", "verified", "routed"))
    return Watch((Stage("waiting", "now", None, note), *ahead), seen)


def _failed(failure: UnverifiedDelivery) -> tuple[Stage, ...]:
    admitted = failure.admitted_receipt_id is not None
    verified = Stage("verified", "done" if admitted else "failed", failure.received_at, "" if admitted else failure.reason)
    return (Stage("waiting", "done"), Stage("received", "done", failure.received_at), verified, Stage("routed", "ahead"))


def _received(receipt: Receipt, seen: Seen) -> tuple[Stage, ...]:
    at = receipt.received_at
    return (
        Stage("waiting", "done"),
        Stage("received", "done", at, f"receipt {receipt.id}"),
        Stage("verified", "done", at, "signature valid, or none required"),
        _routed(receipt, seen),
    )


def _routed(receipt: Receipt, seen: Seen) -> Stage:
    match receipt.state:
        case ReceiptState.ROUTED:
            return Stage("routed", "done", receipt.routed_at, _destinations(receipt, seen.events))
        case ReceiptState.PARTIAL:
            note = f"rejected {receipt.rejected_count}, conflicts {receipt.conflict_count} of {receipt.item_count} items; open the receipt"
            return Stage("routed", "failed", receipt.routed_at, note)
        case ReceiptState.PENDING:
            note = "waiting for the router" if seen.routers else "no router is online; start script/server"
            return Stage("routed", "now", None, note if not receipt.attempts else f"{note}; last error: {receipt.last_error}")
        case ReceiptState.CONFLICT:
            return Stage(
                "routed",
                "failed",
                None,
                "its delivery id was already used with a different body; only the first delivery is processed",
            )
        case _:
            return Stage("routed", "failed", receipt.routed_at, receipt.last_error or f"receipt {receipt.state}")


def _destinations(receipt: Receipt, events: Sequence[Went]) -> str:
    if not events:
        return "duplicate: its events already exist" if receipt.duplicate_count else "it contains no events"
    lost = sorted({one.kind for one in events if not one.route})
    taken = sorted({one.route for one in events if one.route})
    parts = [f"to {', '.join(taken)}"] if taken else []
    parts += (
        [f"no route matches {', '.join(lost)}: publish one, then run script/manage repair to route stored events"] if lost else []
    )
    return "; ".join(parts)
