"""Case C54: a server without time-zone tables. No page, filter, chart or export asks the server to convert a time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ops_ui import exports
from tests import console_world
from tests.console_world import LISTS, World

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
OF_DJANGO = (
    "/admin/auth/user/",
    "/admin/auth/user/?o=-1",
    "/admin/auth/user/?date_joined__gte=2026-01-01",
    "/admin/auth/user/?date_joined__year=2026",
    "/admin/auth/group/",
)


def paths(world: World) -> list[tuple[str, dict[str, str]]]:
    """Each page, each list with each filter that has a time in it, and each export."""
    found: list[tuple[str, dict[str, str]]] = [(path, {}) for path in world.paths.values()]
    found += [(world.paths[name], query) for name in ("overview", *LISTS) for query in OF_LISTS]
    found += [(world.paths[name], {"export": kind, "since": "2h"}) for name in LISTS for kind in exports.FORMATS]
    return found + [(path, {}) for path in OF_DJANGO]


def test_c54_no_page_needs_time_zone_tables(settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Madrid"
    world = console_world.build()
    client = console_world.client("administrator")
    with CaptureQueriesContext(connection) as queries:
        for path, query in paths(world):
            response: Any = client.get(path, query)
            assert response.status_code in (200, 302), (path, query)
            if response.streaming:
                b"".join(response.streaming_content)
    asked = [one["sql"] for one in queries if ZONES.search(one["sql"])]
    assert asked == []


def test_c54_the_servers_of_the_suite_have_no_such_tables() -> None:
    """So that a page which asked for them would have shown it: a conversion gives NULL there."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONVERT_TZ('2026-01-31 10:00:00', 'UTC', 'Europe/Madrid')")
        if cursor.fetchone()[0] is not None:
            pytest.skip("this server has its time-zone tables loaded; the test of the texts says all the same")


def test_c54_times_are_the_same_in_every_zone(settings: Any) -> None:
    world = console_world.build()
    client = console_world.client("administrator")
    shown = []
    for zone in ("UTC", "Europe/Madrid"):
        settings.TIME_ZONE = zone
        response: Any = client.get(world.paths["events"], {"export": "json"})
        shown.append(b"".join(response.streaming_content))
    assert shown[0] == shown[1]
    assert b'Z"' in shown[0]
