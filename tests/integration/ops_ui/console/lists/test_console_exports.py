"""Each list as CSV and as JSON lines: all rows of its filter, streamed, with the right of its page, and told in the audit trail."""

from __future__ import annotations

import csv
import gc
import io
import json
import tracemalloc
from collections.abc import Iterable
from pkgutil import walk_packages
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, reverse

import ops_ui.console
from connectors.models import AuditEntry, Endpoint, Receipt
from ops_ui.console.base import navigation
from ops_ui.console.lists import exports
from projection.models import WorkItem
from projection.states import State
from tests.support import console_world, factories, rows
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.console_world import BIG, HOSTILE, LISTS, World
from tests.support.scale import size

pytestmark = pytest.mark.usefixtures("database")

NOWHERE = World(0, 0, 0, "", "", "", 0, 0)
EXPORTED = (*LISTS, "job", "trace-found", "limits")
NO_LIST = {
    "index": "counts, each with a link to its list",
    "trace": "a form, until something is looked for; then it is `trace-found` here",
    "source": "one record, named by its parameters",
    "new_endpoint": "a form",
    "publish_route": "a form",
    "words": "texts of ours",
    "keys": "texts of ours",
}
"""Pages of the console without a key in their address that have no rows to export, and why."""


PAGES = {found.name for found in walk_packages(ops_ui.console.__path__, "ops_ui.console.")} - {"ops_ui.console.site"}
"""Modules of the console that have pages of their own; the site's are Django's."""


def pages() -> list[str]:
    """Names of our pages that need no key: whatever is a list is among them. Django's own pages of users and groups are not ours."""
    found = [one for one in admin.site.get_urls() if isinstance(one, URLPattern) and not one.pattern.converters]
    pages = [one for one in found if one.callback.__module__ in PAGES and not hasattr(one.callback, "permission")]
    return sorted(str(one.name) for one in pages)


KINDS = ("receipt", "event", "work_item", "failure")


def content(response: Any) -> str:
    assert response.status_code == 200
    assert response.streaming
    return b"".join(response.streaming_content).decode()


def get(client: Client, path: str, kind: str, **query: str) -> Any:
    """The export of a page, whose address may have parameters already."""
    bare, _, given = path.partition("?")
    return client.get(bare, {**dict(parse_qsl(given)), **query, "export": kind})


def exported(client: Client, path: str, **query: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content(get(client, path, "json", **query)).split("\n") if line]


def as_csv(client: Client, path: str, **query: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content(get(client, path, "csv", **query)), newline="")))


def path_of(world: World, name: str) -> str:
    return "/admin/destinations/?list=limits" if name == "limits" else world.paths[name]


@pytest.mark.parametrize("name", pages())
def test_no_list_of_the_console_is_without_an_export(name: str) -> None:
    """Over the addresses of the site, so that a new list has one too, or a reason here."""
    console_world.build()
    client = console_world.client("administrator")
    path = reverse(f"admin:{name}")
    if name in NO_LIST:
        assert not getattr(client.get(path, {"export": "csv"}), "streaming", False)
        return
    offered = client.get(path).content.decode()
    for kind, is_of in (("csv", "text/csv"), ("json", "application/x-ndjson")):
        assert f"?export={kind}" in offered
        response = client.get(path, {"export": kind})
        assert response.headers["Content-Type"].startswith(is_of)
        assert content(response).count("\n") >= 1


def test_the_entries_of_the_navigation_are_among_the_pages() -> None:
    assert {one.name for one in navigation.ENTRIES} <= {*pages(), "index"}
    assert NO_LIST.keys() <= {*pages(), "index"}


@pytest.mark.parametrize("name", EXPORTED)
def test_each_list_has_its_rows_in_both_forms(name: str) -> None:
    world = console_world.build()
    client = console_world.client("administrator")
    path = path_of(world, name)
    assert "export=csv" in client.get(path).content.decode(), name
    lines, table = exported(client, path), as_csv(client, path)
    assert lines
    assert len(table) - len(lines) == (2 if name == "audit" else 0)  # the first export is in the audit trail itself
    assert list(lines[0]) == list(table[0])


@pytest.mark.parametrize("name", EXPORTED)
def test_hostile_text_is_exact_and_no_formula(name: str) -> None:
    world = console_world.build(f"={HOSTILE}")
    client = console_world.client("administrator")
    for line in as_csv(client, path_of(world, name)):
        assert not any(value.startswith(exports.FORMULA) for value in line.values()), line
    if name in ("sources", "records"):  # names of providers are told apart by nothing but their text
        assert f"contact:={HOSTILE}" in {line.get("source") or line.get("id") for line in exported(client, world.paths[name])}


@pytest.mark.parametrize("name", LISTS)
def test_an_empty_list_has_a_head_and_no_rows(name: str) -> None:
    client = console_world.client("administrator")
    if name == "workers":
        return  # this very process is none, and tests of others may have left some
    assert exported(client, NOWHERE.paths[name]) == [] or name == "audit"
    assert content(client.get(NOWHERE.paths[name], {"export": "csv"})).count("\r\n") >= 1


def test_a_trace_exports_what_it_shows() -> None:
    world = console_world.build()
    lines = exported(console_world.client("viewer"), world.paths["trace-found"])
    assert [line["row"] for line in lines] == sorted((line["row"] for line in lines), key=KINDS.index)
    assert {line["row"] for line in lines} == set(KINDS)
    dead = next(line for line in lines if line["row"] == "work_item" and line["work_id"] == world.dead)
    assert (dead["state"], dead["attempts"], dead["outcome"]) == ("dead", 2, None)
    assert [line["attempt"] for line in lines if line["row"] == "failure"] == [1, 2]
    assert exported(console_world.client("operator"), "/admin/destinations/?list=limits")[0]["per_microseconds"] == 10_000_000


def test_a_trace_of_nothing_is_the_page() -> None:
    assert not console_world.client().get("/admin/trace/", {"q": "nothing", "export": "csv"}).streaming


def test_the_filter_and_the_order_hold() -> None:
    facts = factories.route(factories.install(), "orders", mode="projection")
    made = [rows.work_row(rows.event_row(facts, source_id=str(n)), State.DEAD if n % 2 else State.PROCESSED) for n in range(6)]
    client = console_world.client("viewer")
    dead = [item.work_id for item in made if item.state == State.DEAD]
    assert [line["work_id"] for line in exported(client, "/admin/generations/", state="dead")] == dead[::-1]
    assert [line["work_id"] for line in exported(client, "/admin/generations/", state="dead", sort="turned")] == dead
    assert [line["work_id"] for line in exported(client, "/admin/generations/", route="orders", state="dead")] == dead[::-1]
    assert [line["route_id"] for line in exported(client, "/admin/generations/", work=dead[0])] == ["orders v1"]
    assert exported(client, "/admin/generations/", state="dead", at=f"after-{made[0].id}") != []


def test_more_rows_than_a_piece_are_all_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "CHUNK", 7)
    facts = factories.route(factories.install(), "orders", mode="projection")
    first = rows.work_row(rows.event_row(facts, source_id="0"), State.PROCESSED)
    copy_rows(first, 30, WorkId=hashed("w"), LaneHolderKey="NULL")
    client = console_world.client("viewer")
    everything = list(WorkItem.objects.order_by("-id").values_list("work_id", flat=True))
    for query in ({}, {"state": "processed"}, {"route": "orders"}):
        lines = [line["work_id"] for line in exported(client, "/admin/generations/", **query)]
        assert lines == everything, query
    assert len(as_csv(client, "/admin/generations/")) == 31


def test_numbers_keep_all_their_digits() -> None:
    receipt = factories.receipt(factories.install(), {}, delivery_id=BIG)
    rows.event_row(receipt_id=receipt.id, source_id=BIG, enqueue_ordinal=int(BIG))
    client = console_world.client("viewer")
    (line,) = exported(client, "/admin/events/")
    assert (line["enqueue_ordinal"], line["source"]) == (int(BIG), f"contact:{BIG}")
    assert as_csv(client, "/admin/events/")[0]["enqueue_ordinal"] == BIG


def test_an_export_needs_the_right_of_its_page() -> None:
    world = console_world.build()
    stranger, nobody = Client(), console_world.client(None)
    for name in EXPORTED:
        for kind in exports.FORMATS:
            assert get(nobody, path_of(world, name), kind).status_code == 403, name
            assert get(stranger, path_of(world, name), kind).status_code == 302, name
    assert not AuditEntry.objects.filter(action__startswith="list.").exists()


def test_secrets_and_masked_fields_are_in_no_export() -> None:
    world = console_world.build(masks=("$.email",))
    encrypted = Endpoint.objects.get().secrets
    client = console_world.client("administrator")
    for name in EXPORTED:
        text = content(get(client, path_of(world, name), "json"))
        for secret in ("ada@example.com", "SECRET", encrypted):
            assert secret not in text, name


def test_an_export_is_told_when_it_begins_and_when_it_ends() -> None:
    for n in range(3):
        rows.work_row(rows.event_row(source_id=str(n)), State.DEAD)
    client = console_world.client("operator")
    response: Any = client.get("/admin/generations/", {"state": "dead", "export": "csv", "at": "after-9"})
    begun = AuditEntry.objects.get()
    assert (begun.actor, begun.action, begun.target, begun.count) == ("operator", "list.export", "generations", 0)
    assert json.loads(begun.detail) == {"format": "csv", "filter": {"state": "dead"}}
    content(response)
    ended = AuditEntry.objects.latest("id")
    assert (ended.action, ended.target, ended.count) == ("list.exported", "generations", 3)
    assert json.loads(ended.detail) == {"export": begun.id, "whole": True}


def test_an_export_that_nobody_reads_on_is_told_as_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "CHUNK", 2)
    for n in range(5):
        rows.work_row(rows.event_row(source_id=str(n)), State.DEAD)
    response: Any = console_world.client().get("/admin/generations/", {"export": "json"})
    pieces = iter(response.streaming_content)
    next(pieces)
    response.close()
    ended = AuditEntry.objects.latest("id")
    assert (ended.action, ended.count, json.loads(ended.detail)["whole"]) == ("list.exported", 2, False)


def test_the_file_has_a_name_and_is_never_rendered() -> None:
    response = console_world.client().get("/admin/receipts/", {"export": "csv"})
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Disposition"].startswith('attachment; filename="headrace-receipts-2')
    content(response)
    assert not getattr(console_world.Client().get("/healthz"), "streaming", True)


@pytest.mark.parametrize("kind", ["", "xml", "CSV", HOSTILE])
def test_another_format_is_the_page(kind: str) -> None:
    response = console_world.client().get("/admin/receipts/", {"export": kind})
    assert "<html" in response.content.decode()


def _pieces(response: Any) -> Iterable[bytes]:
    yield from response.streaming_content


@pytest.mark.scale
def test_memory_stays_flat_over_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the rows need no more memory (but for garbage that waits to be collected)."""
    monkeypatch.setattr(exports, "CHUNK", size(50, exports.CHUNK))
    receipt = factories.receipt(factories.install(), {}, state="routed")
    client = console_world.client("viewer")
    peaks = []
    for more in (size(500, 300_000), size(1_000, 600_000)):
        copy_rows(receipt, more, IdempotencyHash="NULL")
        gc.collect()
        tracemalloc.start()
        lines = sum(piece.count(b"\n") for piece in _pieces(client.get("/admin/receipts/", {"export": "json"})))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert lines == Receipt.objects.count()
    assert peaks[1] < peaks[0] * 2


def test_each_piece_is_read_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "CHUNK", 10)
    receipt = factories.receipt(factories.install(), {}, state="routed")
    copy_rows(receipt, 95, IdempotencyHash="NULL")
    client = console_world.client("viewer")
    with CaptureQueriesContext(connection) as queries:
        assert len(exported(client, "/admin/receipts/")) == 96
    texts = [query["sql"] for query in queries if "FROM `_System_ConnectorReceipt`" in query["sql"]]
    assert len(texts) == 10
    assert not any("OFFSET" in text or "COUNT(" in text for text in texts)
