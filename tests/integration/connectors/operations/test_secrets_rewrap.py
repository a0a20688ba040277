"""`secrets rewrap`: the way from one encryption key to the next."""

from __future__ import annotations

import io
import json

from cryptography.fernet import Fernet
from django.core.management import call_command

from connectors import secrets
from connectors.configuration import connections, endpoints, packs
from connectors.configuration.connections import ConnectionDraft
from connectors.configuration.endpoints import EndpointDraft
from connectors.configuration.stored_secrets import Secret
from connectors.models import AuditEntry, Connection, Endpoint
from projection.database import clock

SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def rewrap() -> tuple[dict, int]:
    out = io.StringIO()
    try:
        call_command("secrets", "rewrap", "--json", stdout=out)
    except SystemExit as end:
        return json.loads(out.getvalue()), int(end.code or 0)
    return json.loads(out.getvalue()), 0


def store() -> None:
    packs.install("default", "github", actor="test")
    endpoints.create("default", EndpointDraft("github", "repo", (Secret("s" * 40),)), actor="test")
    connections.put("default", ConnectionDraft("crm", "https://h", (Secret(SIGNING),)), actor="test")


def test_after_a_rewrap_the_old_key_is_needed_no_more(database, settings):
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.HEADRACE_ENCRYPTION_KEYS = [old]
    store()
    settings.HEADRACE_ENCRYPTION_KEYS = [new, old]
    answer, code = rewrap()
    assert (code, answer["rewrapped"], answer["refused"]) == (0, 2, [])
    settings.HEADRACE_ENCRYPTION_KEYS = [new]
    assert secrets.live(Endpoint.objects.get().secrets, clock.now()) == ["s" * 40]
    assert secrets.live(Connection.objects.get().secrets, clock.now()) == [SIGNING]
    assert AuditEntry.objects.get(action="secrets.rewrap").count == 2


def test_a_secret_that_no_key_opens_is_named_and_left_alone(database, settings):
    store()
    before = Endpoint.objects.get().secrets
    settings.HEADRACE_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    answer, code = rewrap()
    assert code == 1
    assert [(each["id"], each["code"]) for each in answer["refused"]] == [
        ("endpoint default/repo", "unreadable"),
        ("connection crm", "unreadable"),
    ]
    assert Endpoint.objects.get().secrets == before
