"""`endpoints reverify`: deliveries held after a botched rotation come in once the secret is right."""

from __future__ import annotations

import hashlib
import hmac
import io
import json

from django.core.management import call_command

from connectors.configuration import endpoints, packs
from connectors.configuration.endpoints import EndpointDraft
from connectors.configuration.stored_secrets import Secret
from connectors.delivery import Headers, IngressRequest
from connectors.ingress import endpoint_facts
from connectors.ingress.receive import receive
from connectors.models import AuditEntry, Receipt, UnverifiedDelivery

BODY = b'{"zen": "Design for failure.", "hook_id": 1}'


def reverify(slug: str = "repo") -> tuple[dict, int]:
    out = io.StringIO()
    try:
        call_command("endpoints", "reverify", slug, "--json", stdout=out)
    except SystemExit as end:
        return json.loads(out.getvalue()), int(end.code or 0)
    return json.loads(out.getvalue()), 0


def test_held_deliveries_are_admitted_once_the_secret_is_right(database):
    packs.install("default", "github", actor="test")
    endpoints.create("default", EndpointDraft("github", "repo", (Secret("the wrong secret"),)), actor="test")
    signature = "sha256=" + hmac.new(b"the right secret", BODY, hashlib.sha256).hexdigest()
    headers = Headers({"X-GitHub-Event": "ping", "X-GitHub-Delivery": "g-1", "X-Hub-Signature-256": signature})
    request = IngressRequest("POST", "https://h/ingress/default/repo", headers, BODY)
    assert receive(endpoint_facts.load(("default", "repo")), request).status == 401

    answer, code = reverify()
    assert (code, answer["admitted"], [each["code"] for each in answer["refused"]]) == (1, [], ["unverified"])

    endpoints.rotate("default", "repo", Secret("the right secret"), actor="test")
    answer, code = reverify()
    assert (code, [each["code"] for each in answer["admitted"]], answer["refused"]) == (0, ["accepted"], [])
    assert bytes(Receipt.objects.get().body) == BODY
    assert Receipt.objects.get().received_at == UnverifiedDelivery.objects.get().received_at, (
        "it keeps its place in the order of receipt"
    )
    assert reverify() == ({"admitted": [], "refused": [], "not_kept": 0}, 0)
    assert AuditEntry.objects.filter(action="endpoint.reverify").count() == 3


def test_an_endpoint_that_is_not_there_ends_with_1(database):
    answer, code = reverify("nope")
    assert (code, answer["refused"][0]["code"]) == (1, "not_found")
