"""Two operators reverify at the same time: each held delivery is admitted once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from connectors import models, secrets
from connectors.models import Receipt
from connectors.operations.reverify import Reverified, reverify
from tests.support import signing
from tests.support.ingress import facts, open_endpoint

pytestmark = pytest.mark.usefixtures("database")


def test_two_operators_admit_a_delivery_without_an_id_once() -> None:
    ingress = open_endpoint(secret="the-wrong-one")
    for number in range(6):
        body = b'{"n":%d}' % number
        ingress.post(body, signing.generic(body, "the-right-one"))
    text = secrets.encrypt([{"secret": "the-right-one", "expires_at": None}])
    models.Endpoint.objects.update(secrets=text)
    endpoint, start = facts(ingress), threading.Barrier(2)

    def reverify_as(actor: str) -> Reverified:
        try:
            start.wait(timeout=30)
            return reverify(endpoint, actor=actor)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(reverify_as, ["a", "b"])
    assert len(one.admitted) + len(two.admitted) == 6
    assert Receipt.objects.count() == 6
