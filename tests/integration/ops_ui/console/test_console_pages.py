"""Every page of the console opens: with data, empty, with hostile text; to nobody without its right."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from connectors.flows.record_fold import SetValue, properties_text
from connectors.models import AuditEntry, Endpoint, Pack, Receipt, Record
from projection.database.clock import now
from tests.support import console_world, factories, rows
from tests.support.console_world import BIG, HOSTILE, LISTS, World

pytestmark = pytest.mark.usefixtures("database")

NOWHERE = World(0, 0, 0, "", "", "", 0, 0)
"""Paths of the lists, where the database is empty."""


class Markup(HTMLParser):
    """The elements and event attributes of a page, and its visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page(client: Client, path: str) -> Markup:
    response = client.get(path)
    assert response.status_code == 200, path
    return Markup(response.content.decode())


def test_every_page_opens_with_data() -> None:
    world = console_world.build()
    client = console_world.client("viewer")
    for path in world.paths.values():
        page(client, path)


def test_every_list_opens_empty_and_says_what_to_do() -> None:
    client = console_world.client("viewer")
    for name in ("overview", *LISTS):
        elements = page(client, NOWHERE.paths[name]).elements
        assert any(attributes.get("class") == "empty" for _, attributes in elements), name


def test_hostile_text_is_shown_literally_everywhere() -> None:
    world = console_world.build(HOSTILE)
    client = console_world.client("operator")
    for name, path in world.paths.items():
        found = page(client, path)
        assert not any(tag == "img" and attributes.get("src") == "x" for tag, attributes in found.elements), name
        assert not any(attribute.startswith("on") for _, attributes in found.elements for attribute in attributes), name
        assert not any("style" in attributes for _, attributes in found.elements), name
    for name in ("receipt", "event", "dead-letter", "lane", "record", "route", "unverified-delivery", "audit"):
        text = page(client, world.paths[name]).text
        assert "<svg onload=alert(1)>" in text, name
        assert "{{7*7}}" in text, name


def test_a_hostile_filter_is_echoed_escaped_and_finds_nothing() -> None:
    client = console_world.client("viewer")
    for name in ("receipts", "events", "generations", "dead-letters", "records", "lanes"):
        for field in ("source", "delivery", "state", "route", "work", "fingerprint", "kind", "head", "at"):
            path = NOWHERE.paths[name]
            found = Markup(client.get(path, {field: HOSTILE}).content.decode())
            assert not any(attribute.startswith("on") for _, attributes in found.elements for attribute in attributes), (
                name,
                field,
            )


@pytest.mark.parametrize(
    "at", ["after-x", "after--1", "after-99999999999999999999", "sideways-1", "after-1-2020", "before-1-20200101T000000.000000"]
)
def test_a_damaged_cursor_gives_a_page(at: str) -> None:
    console_world.build()
    client = console_world.client("viewer")
    for name in ("receipts", "events", "generations", "lanes", "dead-letters", "records"):
        assert client.get(NOWHERE.paths[name], {"at": at}).status_code == 200


@pytest.mark.parametrize(
    "path", ["generations/é/", "generations/nothing/", "lanes/é/", "receipts/0/", "events/99999999999999999999/", "dead-letters/x/"]
)
def test_an_unknown_object_is_not_found(path: str) -> None:
    assert console_world.client("viewer").get(f"/admin/{path}").status_code == 404


def test_numbers_keep_all_their_digits() -> None:
    world = console_world.build()
    client = console_world.client("viewer")
    for name in ("receipt", "event", "record"):
        assert BIG in page(client, world.paths[name]).text, name
    assert '"f":1.10' in page(client, world.paths["event"]).text


def test_half_of_a_character_in_stored_json_is_shown_as_such() -> None:
    """JSON may escape a lone surrogate, which no page can carry: in the name of a property, a header or what an audit entry tells."""
    world = console_world.build("plain")
    half = "\ud800"
    Record.objects.update(properties=properties_text({half: SetValue('{"\\udfff":1}', 1)}))
    Receipt.objects.update(headers=json.dumps({half: half}), verdicts=json.dumps([{"item": 1, "code": half, "reason": half}]))
    entry = AuditEntry.objects.create(at=now(), actor="test", action="lane.hold", target="x", detail=json.dumps({half: half}))
    client = console_world.client("administrator")
    for path in ("record", "source", "receipt"):
        assert client.get(world.paths[path]).status_code == 200, path
    content = client.get(f"/admin/audit/{entry.id}/").content.decode()
    assert content.count('<bdi class="control" data-code="U+D800">\ufffd</bdi>') == 2


def test_masked_fields_are_hidden_in_every_view() -> None:
    world = console_world.build(masks=("$.email",))
    client = console_world.client("administrator")
    downloads = (f"{world.paths['receipt']}body", f"{world.paths['event']}payload")
    for path in (*world.paths.values(), *downloads):
        response = client.get(path)
        assert b"ada@example.com" not in response.content, path
    assert "•••" in page(client, world.paths["event"]).text


def test_downloads_are_exact_and_never_rendered() -> None:
    world = console_world.build(HOSTILE)
    client = console_world.client("viewer")
    response = client.get(f"{world.paths['event']}payload")
    assert HOSTILE in response.content.decode().replace('\\"', '"')
    for path in (f"{world.paths['event']}payload", f"{world.paths['receipt']}body"):
        headers = client.get(path).headers
        assert headers["Content-Disposition"].startswith("attachment")
        assert headers["Content-Type"] == "application/octet-stream"
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_secrets_are_never_shown() -> None:
    world = console_world.build()
    client = console_world.client("administrator")
    encrypted = Endpoint.objects.get().secrets
    for path in world.paths.values():
        content = client.get(path).content.decode()
        assert "SECRET" not in content  # the connection's
        assert encrypted not in content


def test_every_page_has_its_right() -> None:
    world = console_world.build()
    nobody = console_world.client(None)
    stranger = Client()
    outsider = Client()
    outsider.force_login(console_world.user("operator", name="outsider", is_staff=False))
    for name, path in world.paths.items():
        assert nobody.get(path).status_code == (200 if name == "overview" else 403), path
        assert stranger.get(path).status_code == 302, path
        assert outsider.get(path).status_code == 302, path
    assert "no permissions yet" in page(nobody, "/admin/").text


def test_no_page_takes_a_post() -> None:
    world = console_world.build()
    client = console_world.client("administrator")
    for path in world.paths.values():
        assert client.post(path).status_code == 405, path


def test_every_page_carries_the_security_headers() -> None:
    world = console_world.build()
    client = console_world.client("viewer")
    for path in (*world.paths.values(), "/admin/login/", "/admin/nothing/", "/healthz"):
        headers = client.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"


@pytest.mark.parametrize("name", ["overview", *LISTS])
def test_a_page_uses_a_fixed_number_of_queries(name: str) -> None:
    world = console_world.build()
    client = console_world.client("viewer")
    counted = []
    for round_of in ("first", "second"):
        client.get(world.paths[name])  # what a process remembers, for seconds or for good, is read
        with CaptureQueriesContext(connection) as queries:
            client.get(world.paths[name])
        counted.append(len(queries))
        _more(round_of)
    assert counted[0] == counted[1]
    assert counted[0] <= 42


def _more(text: str) -> None:
    pack = Pack.objects.get()
    facts = factories.route(pack, text, mode="projection")
    for number in range(20):
        factories.receipt(pack, "{}", state="routed")
        rows.work_row(rows.event_row(facts, source_id=f"{text} {number}"), "dead" if number % 2 else "pending")


def test_a_receipt_whose_items_were_rejected_says_so_in_the_list() -> None:
    factories.receipt(factories.install(), [], state="routed", item_count=3, event_count=1, rejected_count=2)
    assert "items rejected: 2" in console_world.client().get("/admin/receipts/").content.decode()


def test_a_receipt_that_could_not_be_read_shows_no_counts() -> None:
    receipt = factories.receipt(factories.install(), b"no", state="rejected", last_error="NotJson: not JSON")
    assert "not counted" in console_world.client().get(f"/admin/receipts/{receipt.id}/").content.decode()
