"""A receiver that bears three requests at once gets three at once, from all workers together, and never a fourth."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.fernet import Fernet

from connectors import http_client
from connectors.routing.router import drain_receipts
from connectors.testing import configure, deliver
from projection.execution.worker import claim_loop
from projection.models import WorkFailure, WorkItem
from tests.support.receiver import Receiver, Reply, receiving
from tests.support.rivals import Rival

pytestmark = pytest.mark.usefixtures("sound_database")

AT_ONCE, ITEMS = 3, 60
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
limit = { name = "api", concurrency = 3 }
"""


class Narrow(Receiver):
    """Answers once three are in, and refuses whoever comes besides."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.lock, self.together = threading.Lock(), threading.Barrier(AT_ONCE)
        self.inside = self.refused = self.taken = 0

    def next_reply(self) -> Reply:
        with self.lock:
            if self.inside >= AT_ONCE:
                self.refused += 1
                return Reply(503)
            self.inside += 1
        self.together.wait(60)
        with self.lock:
            self.inside -= 1
            self.taken += 1
        return Reply()


@pytest.fixture
def api(settings: Any) -> Iterator[Narrow]:
    settings.HEADRACE_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    http_client.close_clients()
    with receiving(kind=Narrow) as running:
        yield running
    http_client.close_clients()


def test_http_forward_keeps_to_the_concurrency_of_its_limit(api: Narrow) -> None:
    configure(CONFIGURATION.replace("URL", api.url()).replace("SECRET", SECRET))
    deliver("shop", json.dumps({"events": [{"id": n, "kind": "k"} for n in range(ITEMS)]}))
    drain_receipts("default")

    def work() -> None:
        claim_loop(stop=lambda: not WorkItem.objects.exclude(state="processed").exists())

    for worker in [Rival(work), Rival(work)]:
        worker.result(240)
    assert (api.taken, api.refused) == (ITEMS, 0)
    assert set(WorkItem.objects.values_list("state", "attempts")) == {("processed", 1)}
    assert not WorkFailure.objects.exists()
