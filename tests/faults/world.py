"""An installation whose routes lead to a flow of each form, and what has to be true of it after any fault."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from time import sleep
from typing import Any, Final

from django.db.models import Sum

from connectors.models import AuditEntry, Receipt
from connectors.operations.ingress_audit import audit_everything
from connectors.routing.router import drain_receipts
from projection.admission import activation
from projection.completion.complete import complete
from projection.database import clock
from projection.execution.attempts import Attempt
from projection.facts import RateLimit, RetryPolicy
from projection.models import Event, WorkItem
from projection.states import NONTERMINAL, State
from tests.faults.children import Nursery
from tests.faults.flows import registered
from tests.support import factories
from tests.support.deliveries import SETTINGS as PACK_SETTINGS
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.workers_by_hand import ByHand, let_leases_run_out

FORMS: Final = ("atomic", "tail", "plain")
"""Flows of `faults.flows`; one route each, so that an item is three events."""
EXACTLY_ONCE: Final = ("atomic", "tail")
LEASE_SECONDS: Final = 0.4
"""Short, so that each kill can be followed by the wait for what its victim had leased."""
SETTINGS: Final = {"HEADRACE_LEASE_SECONDS": LEASE_SECONDS}
AT_ONCE: Final = {"projection.completion.retry_policy.FLOOR_SECONDS": 0.0}
"""A retry is due at once: its wait is not what these tests are about."""
RETRY: Final = RetryPolicy(base=0.0, attempts=5)
LIMIT: Final = RateLimit("faults", 1000, 1.0)
"""Never reached; it makes the claim a transaction of several statements."""
WORK: Final = ("run_worker", "--drain")
ROUTE: Final = ("route_receipts", "--drain")


def item_a_delivery() -> Ingress:
    """An endpoint whose deliveries are one item each, and known by its id."""
    activation.activate("test")
    pack = factories.install("generic", settings={name: text for name, text in PACK_SETTINGS.items() if name != "items"})
    factories.endpoint(pack)
    return Ingress(pack, "main")


class World:
    """What was sent so far, and what must have become of it."""

    def __init__(
        self, nursery: Nursery | None = None, ingress: Ingress | None = None, forms: Sequence[str] = FORMS, *, limited: bool = False
    ) -> None:
        self._nursery = nursery
        self._forms = forms
        self._count = 0
        self.receipts = Counter[str]()
        """Receipts that there must be, by state."""
        self.events = Counter[tuple[str, str]]()
        """Events that there must be: (id of the item, kind)."""
        self.failing: set[str] = set()
        """Contacts whose work does not end as processed: told to fail, or out of budget."""
        self.ingress = ingress or open_ingress()
        for form in self._forms:
            mode = "per_event" if form == "plain" else "projection"
            limit = LIMIT if limited and form == "tail" else None
            self.ingress.route(
                form, flow=f"{form}.write", mode=mode, kind=f"contact.{form}", on=("changed",), retry=RETRY, limit=limit
            )

    def contact(self) -> str:
        """One that nobody has heard of."""
        self._count += 1
        return f"c{self._count}"

    def item(self, contact: str, **more: Any) -> dict[str, Any]:
        """A fresh item about the contact, expected to become events: none where it is poison, an unrouted one of a foreign kind."""
        made = change(contact, **more)
        kinds = {"changed": [f"contact.{form}" for form in self._forms], "poison": []}.get(made["kind"], [made["kind"]])
        self.events += Counter((made["id"], kind) for kind in kinds)
        self.failing |= {contact} if more.get("outcome") in ("dead", "skip") else set()
        return made

    def deliver(self, *contacts: str, **more: Any) -> None:
        """One delivery with an item about each contact."""
        assert self.ingress.send(*(self.item(contact, **more) for contact in contacts)).code == "accepted"
        self.receipts["routed"] += 1

    def route(self) -> None:
        """Admit what was delivered."""
        drain_receipts()

    def abandon(self, *, spent: str = "") -> None:
        """Everything that is due was taken by a worker that died long ago; the contact `spent`, a suspect, had no attempt left."""
        assert self._take()
        let_leases_run_out()
        WorkItem.objects.filter(source_lane=f"contact:{spent}").update(attempts=RETRY.attempts, workers_lost=1)
        self.failing |= {spent}

    def bury(self, *contacts: str) -> None:
        """One dead letter of each contact and form."""
        self.deliver(*contacts)
        self.route()
        self.failing |= set(contacts)
        complete([one.ending(State.DEAD, outcome="dead", error="as the test wants it") for one in self._take()])

    def finish(self, *contacts: str) -> None:
        """One processed generation of each contact and form; no flow ran, so `assert_whole` would miss it."""
        self.deliver(*contacts)
        self.route()
        complete([one.ending(State.PROCESSED) for one in self._take()])

    def _take(self) -> list[Attempt]:
        """Claim what is due, as a worker of this process that has the flows."""
        with registered():
            return ByHand("a worker that died").claim()

    def go_on(self, constants: Mapping[str, Any] = AT_ONCE) -> None:
        """Another process takes over: it waits out the leases of the dead one, and no more, then one pass over everything.

        The state that the fault left is sound as it is, and nothing is leased for longer than one lease time from now.
        """
        report = audit_everything()
        assert report.ok, report.violations
        self._pass_over_everything(constants)
        if WorkItem.objects.filter(state=State.PROCESSING).exists():  # on a busy machine, a lease so short ran out under the pass
            self._pass_over_everything(constants)

    def _pass_over_everything(self, constants: Mapping[str, Any]) -> None:
        leases = WorkItem.objects.filter(state=State.PROCESSING)
        ends = leases.order_by("-lease_expires_at").values_list("lease_expires_at", flat=True).first()
        if ends is not None:
            left = ends - clock.now()
            assert left <= timedelta(seconds=LEASE_SECONDS)
            sleep(max(0.0, left.total_seconds()))  # the database's clock sends no signal
        assert self._nursery is not None
        self._nursery.succeed(ROUTE, WORK, ("audit",), settings=SETTINGS, constants=constants)

    def waits(self) -> bool:
        """Whether there is work that has not ended."""
        return WorkItem.objects.filter(state__in=[state.value for state in NONTERMINAL]).exists()

    def assert_whole(self) -> None:
        """Nothing waits, is lost or doubled: receipts, events, and what the flows wrote."""
        assert Counter(Receipt.objects.values_list("state", flat=True)) == self.receipts
        events = Counter(Event.objects.filter(replay_of_event_id=None).values_list("delivery_id", "event_kind"))
        assert events == self.events
        acknowledged = Receipt.objects.aggregate(events=Sum("event_count"))["events"] or 0
        assert acknowledged == events.total(), "each event is the receipt's that it came by, and no duplicate of itself"
        assert not self.waits()
        for form in self._forms:
            self._assert_took_effect(form)

    def _assert_took_effect(self, form: str) -> None:
        """Every processed generation took effect: once, and a plain one at least once, with the same inputs each time."""
        processed = WorkItem.objects.filter(companion_pack=form, companion_flow="write", state=State.PROCESSED)
        work_ids = set(processed.values_list("work_id", flat=True))
        runs = [(row.target, tuple(json.loads(row.detail)["inputs"])) for row in AuditEntry.objects.filter(action=f"ran.{form}")]
        if form in EXACTLY_ONCE:
            assert Counter(work_id for work_id, _ in runs) == dict.fromkeys(work_ids, 1)
        else:
            assert {work_id for work_id, _ in runs} >= work_ids
        ordinary = set(processed.filter(replay_of_work_id=None).values_list("work_id", flat=True))
        inputs = Counter(ordinal for work_id, several in set(runs) if work_id in ordinary for ordinal in several)
        facts = Event.objects.filter(event_kind=f"contact.{form}", replay_of_event_id=None).exclude(source_id__in=self.failing)
        assert inputs == dict.fromkeys(facts.values_list("enqueue_ordinal", flat=True), 1), "each event, in one generation"
