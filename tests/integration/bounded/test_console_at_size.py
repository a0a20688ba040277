"""Every page, filter, order and deep page of the console on a made history: a fixed number of statements, bounded rows, no scan, and at
full scale (TEST_SCALE=full: 1,000,000 events, 200,000 work items, 50,000 dead letters) less than half a second each.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from connectors.bench import history
from connectors.bench.history_plan import Size
from ops_ui.console.generations import comparison_reads
from tests.support import console_walk, console_world
from tests.support.console_walk import SLOW_MS, Visit
from tests.support.scale import size

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale, pytest.mark.timeout(3000)]

SIZE = Size(size(30_000, 1_000_000), size(6_000, 200_000), size(1_500, 50_000))
IS_FULL = SIZE.events == 1_000_000
STATEMENTS = {"overview": 45, "trace": 40, "audit": 30, "source": 28, "lane": 28, "generation": 28, "dead-letter": 28}
STATEMENTS["comparison"] = 20 + 2 * 4 * comparison_reads.INPUTS
"""Of a page, whatever is stored; 20 of any other one."""
SERVED = frozenset({"receipts", "events", "generations", "records", "unverified"})
"""Lists of which an index serves most filters: such a page reads little more than what it shows."""
ROWS_SERVED = 1_000
ROWS = {
    "overview": 300_000,
    "dead-letters": 150_000,
    "dead-letters by days": 300_000,
    "sources": 80_000,
    "trace": 60_000,
    "audit": 25_000,
}
ROWS |= dict.fromkeys(SERVED, 65_000)
"""Of a page that searches or counts, as far as it may; 10,000 of any other one."""


@pytest.fixture
def made_history(database: None) -> None:
    history.make("history", SIZE, beside=False)


@pytest.mark.usefixtures("made_history")
def test_each_page_is_bounded_and_quick() -> None:
    client = console_world.client("administrator")
    visits = [*console_walk.lists(client, "history", timed=IS_FULL), *console_walk.details(client, "history", timed=IS_FULL)]
    if IS_FULL:
        sys.stderr.write(figures(visits))
    assert len(visits) > 300
    assert [one.url for one in visits if one.status != 200] == []
    assert [(one.url, one.scans) for one in visits if one.scans] == []
    assert [(one.url, one.statements) for one in visits if one.statements > STATEMENTS.get(one.page, 20)] == []
    assert [(one.url, one.rows_read) for one in visits if one.rows_read > most_rows(one)] == []
    assert [(one.url, round(one.ms)) for one in visits if one.ms >= SLOW_MS] == []


def most_rows(one: Visit) -> int:
    return ROWS_SERVED if one.page in SERVED and not one.searches else ROWS.get(one.page, 10_000)


def figures(visits: Sequence[Visit]) -> str:
    """A table for docs/measuring.md: of each page the visits, the slowest, and the most statements and rows."""
    lines = ["", "| page | visits | slowest, ms | statements | rows read |", "| --- | --- | --- | --- | --- |"]
    for page in dict.fromkeys(one.page for one in visits):
        own = [one for one in visits if one.page == page]
        slowest, statements, rows = (max(getattr(one, name) for one in own) for name in ("ms", "statements", "rows_read"))
        lines.append(f"| {page} | {len(own)} | {slowest:.0f} | {statements} | {rows:,} |")
    return "\n".join([*lines, ""])
