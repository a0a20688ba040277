"""What a sender or a browser presents as a credential is found nowhere afterwards.

No log, page, export, metric, mail, row or file has it, whatever went wrong with the request that brought it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core import mail
from django.db import connection
from django.test import Client

from connectors import models
from connectors.models import Receipt, UnverifiedDelivery
from connectors.routing import router
from projection.admission import activation
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.models import WorkItem
from projection.states import State
from tests.support import console_world, factories
from tests.support.commands import say
from tests.support.flows_of_tests import recording
from tests.support.running import wait_until
from tests.support.web import Reply, Web, serving

pytestmark = pytest.mark.usefixtures("database")

MARKERS = {
    "Authorization": "Bearer marker-1-authorization",
    "Cookie": "sessionid=marker-2-cookie",
    "X-Api-Key": "marker-3-api-key",
    "PRIVATE-TOKEN": "marker-4-private-token",
    "X-Vendor-Signature": "marker-5-vendor-signature",
}
QUERY = "token=marker-6-query"
NEEDLE = b"marker-"
BODY = b'{"id": "delivery-1", "kind": "changed", "contact": "42", "type": "contact", "lane": "contact:42"}'
SETTINGS = {"delivery_id": "id", "kind": "kind", "source_type": "type", "source_id": "contact", "lane": "lane"}
LONGEST_WALK = 400
COMMANDS = (
    ("trace", "delivery-1"),
    ("trace", "contact:42"),
    ("work", "list"),
    ("dlq", "list"),
    ("lanes", "list"),
    ("jobs", "list"),
    ("endpoints", "list"),
    ("packs", "list"),
    ("routes", "list"),
    ("logins", "list"),
    ("config", "export"),
    ("health",),
    ("audit",),
)


class Site:
    """A pack whose own token is one of the credentials, another whose signature is one, and a real web server in front of them."""

    def __init__(self, web: Web) -> None:
        self.web = web

    def post(self, slug: str, body: bytes = BODY) -> int:
        return self.web.post(f"/ingress/default/{slug}?{QUERY}", body, MARKERS).status

    def browse(self, path: str, method: str = "GET") -> Reply:
        """As a browser of the console, with every credential."""
        lines = [f"{method} {path}?{QUERY} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in MARKERS.items())]
        return self.web.talk(("\r\n".join([*lines, "Content-Length: 0"]) + "\r\n\r\n").encode())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    activation.activate("test")
    token = factories.install(settings=SETTINGS | {"signature": {"kind": "token", "header": "PRIVATE-TOKEN"}})
    factories.endpoint(token, "token", (MARKERS["PRIVATE-TOKEN"],), limits={"spool": True})
    signed = factories.install(settings={"signature": {"kind": "hmac", "header": "X-Vendor-Signature"}}, in_namespace="other")
    factories.endpoint(signed, "signed")
    factories.route(token, "contact", flow="test.record", retry=RetryPolicy(attempts=1), mode="projection")
    with serving(tmp_path) as web:
        yield Site(web)


def moved_away(table: str) -> str:
    return f"{table}_away"


def rename(before: str, after: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"RENAME TABLE `{before}` TO `{after}`")


def everything_goes_wrong(site: Site) -> None:
    """Accepted, refused, unreadable, a database that does not take it, a page that fails."""
    assert site.post("token") == 202
    assert site.web.post(f"/ingress/other/signed?{QUERY}", BODY, MARKERS).status == 401
    assert site.post("nowhere") == 404
    for line in ("Authorization " + MARKERS["Authorization"], "Bad Name: " + MARKERS["X-Api-Key"], "X-Api-Key: \x00marker-3"):
        assert site.web.talk(f"POST /ingress/default/token?{QUERY} HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode()).status == 400
    assert site.web.talk(f"GET /?{QUERY} HTTP/9.9\r\n\r\n".encode()).status in (400, 505)
    assert site.browse("/admin/nowhere/").status in (302, 404)
    assert site.browse("/nowhere").status == 404
    assert site.browse("/admin/login/", "POST").status == 403
    table = models.Receipt._meta.db_table
    rename(table, moved_away(table))
    try:
        assert site.post("token", BODY.replace(b"delivery-1", b"delivery-2")) == 202, "spooled"
    finally:
        rename(moved_away(table), table)
    rename("django_session", moved_away("django_session"))
    try:
        assert site.browse("/admin/").status == 500
    finally:
        rename(moved_away("django_session"), "django_session")
    wait_until(lambda: Receipt.objects.count() == 2, "the spool is drained")


def a_dead_letter_and_its_replay() -> None:
    with recording() as flow:
        flow.raises = [ValueError("the receiver said no")]
        router.drain_receipts()
        drain_claims()
        dead = WorkItem.objects.get(state=State.DEAD)
        assert say("dlq", "show", dead.work_id)[0] == 0
        assert say("dlq", "replay", dead.work_id, "--reason", "again")[0] == 0
        drain_claims()
        assert len(flow.runs) == 2, "the replay works without them"


def pages() -> dict[str, bytes]:
    """Every page of the console that a link leads to, as an administrator sees it."""
    client = console_world.client("administrator")
    found: dict[str, bytes] = {}
    waiting = ["/admin/"]
    while waiting and len(found) < LONGEST_WALK:
        path = waiting.pop()
        response = client.get(path)
        assert response.status_code < 500, path
        found[path] = response.getvalue() if response.streaming else response.content
        for link in found[path].decode("utf-8", "replace").split('href="')[1:]:
            target = link.partition('"')[0].replace("&amp;", "&")
            if target.startswith("/admin/") and "logout" not in target and target not in found and target not in waiting:
                waiting.append(target)
    return found


def stored_rows() -> Iterator[tuple[str, bytes]]:
    """Every row of every table, as text: what a backup holds."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM `{table}`")
            for row in cursor.fetchall():
                yield (
                    table,
                    b"|".join(value if isinstance(value, bytes) else str(value).encode("utf-8", "replace") for value in row),
                )


def test_no_marker_is_found_anywhere(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything_goes_wrong(site)
    a_dead_letter_and_its_replay()
    seen: dict[str, bytes] = {}
    for command in COMMANDS:
        for arguments in (command, (*command, "--json")):
            seen[" ".join(arguments)] = say(*arguments)[1].encode()
    walked = pages()
    assert len(walked) > 20
    seen |= walked
    seen["metrics"] = Client().get("/metrics").content
    seen["metrics of the web server"] = site.browse("/metrics").body
    seen["mail"] = b"\n".join(message.message().as_bytes() for message in mail.outbox)
    written = capsys.readouterr()
    seen["logs"] = (written.err + written.out).encode()
    seen |= {f"file {path.relative_to(tmp_path)}": path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert b'"receive"' in seen["file web.log"]
    assert b"1146" in seen["file web.log"], "the database's error is told"
    assert [place for place, text in seen.items() if NEEDLE in text] == []
    assert [table for table, text in stored_rows() if NEEDLE in text] == []


def test_what_was_stored_is_what_was_sent(site: Site) -> None:
    assert site.post("token") == 202
    receipt = Receipt.objects.get()
    assert bytes(receipt.body) == BODY
    assert set(json.loads(receipt.headers)) <= {"content-type", "content-length", "user-agent"}
    assert receipt.url == "https://hooks.example.com/ingress/default/token"
    assert site.web.post(f"/ingress/other/signed?{QUERY}", BODY, MARKERS).status == 401
    assert bytes(UnverifiedDelivery.objects.get().body) == BODY
