"""What others' limits and outages do to us, shown with two workers and a real HTTP server: nothing is lost, nobody is hammered.

Time is scaled: the API allows a hundred a second where the task says ten, and three hours pass in the database's rows.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.db.models import F

from connectors import http_client
from connectors.routing.router import drain_receipts
from connectors.testing import configure, deliver
from projection.execution.worker import claim_loop, drain_claims
from projection.models import Destination, RateBucket, WorkItem
from tests.support.receiver import Receiver, Reply, receiving

pytestmark = pytest.mark.usefixtures("sound_database")

A_SECOND = 100
OK, TOO_MANY, AWAY = Reply(200), Reply(429, {"retry-after": "1"}), Reply(502)
SECRET = "whsec_" + base64.b64encode(b"a secret of the suite's receiver").decode()
CONFIGURATION = """
[packs.generic]
settings = { signature = { kind = "none" }, items = "events", kind = "kind", source_type = "'order'", \
source_id = "to_string(id)", lane = "join(':', ['order', to_string(id)])" }
[packs.generic.endpoint.shop]
[connections.api]
url = "URL"
secret = "plain:SECRET"
[routes.forward]
pack = "generic"
on = ["*"]
kind = "order.changed"
mode = "per_event"
flow = "http_forward"
connection = "api"
limit = { name = "api", rate = "RATE/s" }
retry = { base = "1s", cap = "10s", attempts = 3 }
"""


class LimitedApi(Receiver):
    """Takes `A_SECOND` requests in any second, answers 429 to what is above, and may be away."""

    is_away = False

    def next_reply(self) -> Reply:
        with self.lock:
            if self.is_away:
                self.failed += 1
                return AWAY
            now = monotonic()
            while self.window and self.window[0] <= now - 1.0:
                self.window.popleft()
            if len(self.window) >= A_SECOND:
                self.refused += 1
                return TOO_MANY
            self.window.append(now)
            self.taken += 1
            if self.taken == self.expected:
                self.all_taken.set()
            return OK

    def expect(self, items: int) -> None:
        self.lock, self.window, self.all_taken = threading.Lock(), deque[float](), threading.Event()
        self.expected, self.taken, self.refused, self.failed = items, 0, 0, 0


@pytest.fixture
def api(settings: Any) -> Iterator[LimitedApi]:
    settings.HEADRACE_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    http_client.close_clients()
    with receiving(kind=LimitedApi) as running:
        yield running
    http_client.close_clients()


def deliver_items(api: LimitedApi, items: int) -> None:
    api.expect(items)
    configure(CONFIGURATION.replace("URL", api.url()).replace("SECRET", SECRET).replace("RATE", str(A_SECOND)))
    deliver("shop", json.dumps({"events": [{"id": n, "kind": "k"} for n in range(items)]}))
    drain_receipts("default")
    assert WorkItem.objects.count() == items


def two_workers_until_all_is_taken(api: LimitedApi, patience: float) -> None:
    stopped = threading.Event()

    def work() -> None:
        try:
            claim_loop(stop=stopped.is_set)
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    done = api.all_taken.wait(patience)
    stopped.set()
    for worker in workers:
        worker.join(30)
    assert done, (api.taken, api.refused)


def time_passes(minutes: float) -> None:
    """In every row that waits for it."""
    past = timedelta(minutes=minutes)
    WorkItem.objects.update(
        run_after=F("run_after") - past, first_claimed_at=F("first_claimed_at") - past, claimed_at=F("claimed_at") - past
    )
    Destination.objects.update(parked_until=F("parked_until") - past, parked_at=F("parked_at") - past)
    RateBucket.objects.update(next_slot_at=F("next_slot_at") - past)


def test_a_thousand_items_for_an_api_with_a_limit_meet_it_without_a_dead_letter(api: LimitedApi) -> None:
    deliver_items(api, 1000)
    two_workers_until_all_is_taken(api, 120)
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}
    sys.stdout.write(f"429s: {api.refused} of {1000 + api.refused} requests\n")
    assert api.refused <= 0.05 * 1000
    assert WorkItem.objects.filter(attempts__gt=1).count() == 0, "a 429 uses nothing of the budget"


def test_three_hours_without_the_api_leave_no_dead_letter_and_are_caught_up_under_the_limit(api: LimitedApi) -> None:
    deliver_items(api, 300)
    api.is_away = True
    for _ in range(36):
        drain_claims()
        time_passes(minutes=5)
    assert set(WorkItem.objects.values_list("state", flat=True)) <= {"pending", "retry"}
    assert max(WorkItem.objects.values_list("attempts", flat=True)) <= 1
    assert api.failed <= 36 + 20, "about one request in five minutes, after those that found out"
    assert Destination.objects.get(name="default/api").state == "open"
    api.is_away = False
    time_passes(minutes=5)
    two_workers_until_all_is_taken(api, 120)
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}
    assert api.refused <= 0.05 * 300
    assert Destination.objects.get().state == "closed"
