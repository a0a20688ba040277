"""A server without time-zone tables. No page, filter, chart or export asks the server to convert a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connectors.models import AuditEntry
from ops_ui.console.base import time_zone
from ops_ui.console.base.tags import when
from ops_ui.console.lists import exports
from projection.models import Event
from tests.support import console_world
from tests.support.commands import run
from tests.support.console_world import LISTS, World

pytestmark = pytest.mark.usefixtures("database")

ZONES = re.compile(r"(?i:CONVERT_TZ|@@\w*time_zone|mysql\.time_zone|AT TIME ZONE|FROM_UNIXTIME)|'[A-Z][a-z]+/[A-Z][A-Za-z_]+'")
"""What would need the tables of named zones, or the zone of the session."""
TIMES = ("2h", "2026-01-31", "2026-03-29T02:30+01:00")
OF_LISTS: tuple[dict[str, str], ...] = (
    *({"since": time} for time in TIMES),
    *({"until": time} for time in TIMES),
    {"at": "after-9-20260131T100000.000000", "state": "dead"},
    {"at": "before-9-20260131T100000.000000", "state": "routed", "sort": "turned"},
    {"by": "days"},
    {"by": "hours"},
    {"flow": "day"},
    {"flow": "hour"},
)
OF_USERS = (
    "/admin/users/",
    "/admin/users/?sort=turned",
)


def paths(world: World) -> list[tuple[str, dict[str, str]]]:
    """Each page, each list with each filter that has a time in it, and each export."""
    found: list[tuple[str, dict[str, str]]] = [(path, {}) for path in world.paths.values()]
    found += [(world.paths[name], query) for name in ("overview", *LISTS) for query in OF_LISTS]
    found += [(world.paths[name], {"export": kind, "since": "2h"}) for name in LISTS for kind in exports.FORMATS]
    return found + [(path, {}) for path in OF_USERS]


@pytest.mark.parametrize("viewer", ["", "America/New_York"])
def test_no_page_needs_time_zone_tables(settings: Any, viewer: str) -> None:
    settings.TIME_ZONE = "Europe/Madrid"
    world = console_world.build()
    client = console_world.client("administrator")
    client.cookies[time_zone.COOKIE] = viewer
    with CaptureQueriesContext(connection) as queries:
        for path, query in paths(world):
            response: Any = client.get(path, query)
            assert response.status_code in (200, 302), (path, query)
            if response.streaming:
                b"".join(response.streaming_content)
    asked = [one["sql"] for one in queries if ZONES.search(one["sql"])]
    assert asked == []


def test_the_servers_of_the_suite_have_no_such_tables() -> None:
    """So that a page which asked for them would have shown it: a conversion gives NULL there."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONVERT_TZ('2026-01-31 10:00:00', 'UTC', 'Europe/Madrid')")
        if cursor.fetchone()[0] is not None:
            pytest.skip("this server has its time-zone tables loaded; the test of the texts says all the same")


def test_times_are_the_same_in_every_zone(settings: Any) -> None:
    world = console_world.build()
    client = console_world.client("administrator")
    shown = []
    for zone in ("UTC", "Europe/Madrid"):
        settings.TIME_ZONE = zone
        response: Any = client.get(world.paths["events"], {"export": "json"})
        shown.append(b"".join(response.streaming_content))
    assert shown[0] == shown[1]
    assert b'Z"' in shown[0]


def test_times_are_in_the_zone_of_the_viewer_and_in_utc_on_hover() -> None:
    world = console_world.build()
    AuditEntry.objects.create(
        at=datetime(2026, 7, 1, 10, 0, 0, 5, tzinfo=UTC), actor="ada", action="lane.hold", target="x", reason="y"
    )
    client = console_world.client("administrator")
    for zone, shown, name in (
        ("Europe/Madrid", "2026-07-01 12:00:00", "Madrid"),
        ("Asia/Kolkata", "2026-07-01 15:30:00", "Kolkata"),
        ("America/Argentina/Buenos_Aires", "2026-07-01 07:00:00", "Buenos Aires"),
        ("UTC", "2026-07-01 10:00:00", "UTC"),
        ("", "2026-07-01 10:00:00", "UTC"),
    ):
        client.cookies[time_zone.COOKIE] = zone
        page = client.get(world.paths["audit"]).content.decode()
        assert f'title="2026-07-01 10:00:00.000005 UTC">{shown}<' in page
        assert f"When ({name})" in page
        assert f"Times: {name}</button>" in " ".join(page.split())


def test_a_zone_holds_for_its_own_request_only() -> None:
    world = console_world.build()
    first, second = console_world.client("administrator"), console_world.client("viewer")
    first.cookies[time_zone.COOKIE] = "Asia/Tokyo"
    assert b"(Tokyo)" in first.get(world.paths["receipts"]).content
    assert b"(UTC)" in second.get(world.paths["receipts"]).content
    assert time_zone.label() == "UTC"


def test_every_page_names_the_zone_of_its_times() -> None:
    """A page that still says UTC beside a time of the viewer's zone would be wrong by hours."""
    world = console_world.build()
    client = console_world.client("administrator")
    client.cookies[time_zone.COOKIE] = "Asia/Tokyo"
    for path in world.paths.values():
        page = client.get(path).content.decode()
        assert not re.search(r"</time>[^<]{0,3}UTC|\(UTC\)</th>|\(UTC\)\"", page), path


@pytest.mark.parametrize(
    "damaged", ["Nowhere/Town", "Europe", "../../etc/passwd", "/etc/passwd", "x" * 300, "Ümlaut", "posixrules\x00"]
)
def test_a_damaged_zone_is_utc(damaged: str) -> None:
    assert time_zone.parse(damaged).key == "UTC"


def test_the_hour_that_comes_twice_tells_its_halves_apart() -> None:
    @contextmanager
    def zone(name: str) -> Iterator[None]:
        before = time_zone._current.set(time_zone.parse(name))
        yield
        time_zone._current.reset(before)

    with zone("Europe/Madrid"):
        first, second = (when(datetime(2026, 10, 25, hour, 30, tzinfo=UTC)) for hour in (0, 1))
    assert ">2026-10-25 02:30:00 +02:00<" in first
    assert ">2026-10-25 02:30:00 +01:00<" in second


@pytest.mark.parametrize(
    ("at", "zone"),
    [(datetime.max.replace(tzinfo=UTC), "Europe/Madrid"), (datetime(1, 1, 1, tzinfo=UTC), "America/New_York")],
)
def test_a_time_that_the_viewers_zone_does_not_have_is_told_in_utc(at: datetime, zone: str) -> None:
    """A provider may name the last second of the year 9999, and an operator may hold a lane until then."""
    world = console_world.build()
    Event.objects.update(provider_timestamp=at)
    client = console_world.client("administrator")
    client.cookies[time_zone.COOKIE] = zone
    for name in ("event", "source", "trace-found"):
        assert client.get(world.paths[name]).status_code == 200, name
    assert f"{at:%m-%d %H:%M:%S} UTC</time>" in client.get(world.paths["event"]).content.decode()


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00+14:00"])
def test_a_time_outside_of_the_calendar_is_refused_by_name(time: str) -> None:
    world = console_world.build()
    client = console_world.client("administrator")
    for name, field in (("dead-letters", "since"), ("dead-letters", "until"), ("audit", "since"), ("audit", "until")):
        for query in ({field: time}, {field: time, "export": "csv"}):
            response: Any = client.get(world.paths[name], query)
            assert response.status_code == 200, (name, query)
            content = b"".join(response.streaming_content) if response.streaming else response.content
            assert ("is not in the years" in content.decode()) is not response.streaming
    held = {"until": time, "reason": "why"}
    pause = client.post("/admin/pauses/namespace/pause/", {**held, "name": "default"})
    assert pause.status_code == 302
    assert run("dlq", "list", "--since", time)[0] == 2
