"""Reverify: deliveries that were held because they did not verify become receipts, where the endpoint's present secrets verify them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from connectors import audit_log
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.store import store_within
from connectors.ingress.unverified import prune, restored
from connectors.ingress.verify import verify
from projection.database import clock
from projection.database.catalogue import Sender
from projection.database.transactions import run_unit
from projection.logs import log_event
from projection.runtime import wake_up

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Refused:
    """A held delivery that is still not verified, and why."""

    unverified_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """A held delivery that verified: the receipt it became (`accepted`), or repeats (`duplicate`, `conflict`)."""

    unverified_id: int
    receipt_id: int
    code: str


@dataclass(frozen=True, slots=True)
class Reverified:
    """What became of everything that the endpoint held."""

    admitted: tuple[Admitted, ...] = ()
    refused: tuple[Refused, ...] = ()
    not_kept: int = 0
    """Others with a bad signature that found no place since the last rotation: only the provider can send them again."""

    @property
    def loss(self) -> str:
        """What was not kept, in a sentence; empty: nothing."""
        if not self.not_kept:
            return ""
        return (
            f"{self.not_kept} more with a bad signature were not kept since the last rotation, because the endpoint or their sender "
            "had its share; if any of them are the provider's, have it send them again."
        )


def reverify(endpoint: EndpointFacts, *, actor: str, reason: str = "") -> Reverified:
    """Check what the endpoint holds again, with its present secrets, and admit as receipts what verifies.

    A signed time stamp is judged as of the delivery's arrival, not of today: a delivery that was on time stays on time. Each one is
    a transaction of its own, so two operators admit it once; audited. `endpoint` should be fresh (`endpoint_facts.load`).
    """
    prune(endpoint.id)
    ids = [row[0] for row in _sql.fetch("read_unverified_ids", endpoint_id=endpoint.id)]
    results = [run_unit("reverify", partial(_reverify_one, endpoint, one)) for one in ids]
    ((not_kept,),) = _sql.fetch("read_not_kept", endpoint_id=endpoint.id)
    done = Reverified(
        tuple(one for one in results if isinstance(one, Admitted)),
        tuple(one for one in results if isinstance(one, Refused)),
        not_kept,
    )
    if done.admitted:
        wake_up.notify("route")
    target = f"{endpoint.namespace}/{endpoint.slug}"
    audit_log.record(actor, "endpoint.reverify", target, reason, len(done.admitted), {"refused": len(done.refused)})
    return done


def _reverify_one(endpoint: EndpointFacts, unverified_id: int) -> Admitted | Refused | None:
    """The unit: lock, check, store, mark. None: another operator admitted it, or it was pruned."""
    rows = _sql.fetch("lock_unverified_delivery", id=unverified_id)
    if not rows:
        return None
    body, headers, url, evidence, received_at = rows[0]
    request = restored(bytes(body), headers, url, evidence)
    arrived = clock.from_db(received_at)
    verdict = verify(endpoint, request, arrived.timestamp())
    if not verdict.ok:
        return Refused(unverified_id, verdict.sentence)
    outcome = store_within(endpoint, request, arrived)
    receipt_id = outcome.receipt_id or 0
    _sql.execute("admit_unverified_delivery", id=unverified_id, receipt_id=receipt_id)
    log_event("reverify", endpoint=endpoint.slug, receipt_id=receipt_id, state=outcome.code)
    return Admitted(unverified_id, receipt_id, outcome.code)
