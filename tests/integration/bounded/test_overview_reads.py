"""The overview costs the same whatever the history holds: many deliveries, events and ended generations, many blocked items."""

from __future__ import annotations

from datetime import timedelta

import pytest

from connectors.models import Receipt
from ops_ui.console.overview import input_counts
from ops_ui.console.overview import reads as overview_reads
from projection.database.clock import now
from projection.models import Event, WorkItem
from projection.states import State
from tests.support import factories, rows
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.scale import size
from tests.support.server_work import full_scans, refresh_statistics, server_work, texts_recorded

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale]

MANY = size(20_000, 500_000)
LARGE = (Event._meta.db_table, WorkItem._meta.db_table, Receipt._meta.db_table)


def history() -> None:
    """As many deliveries and ended generations within ten minutes, and blocked items."""
    began = now() - timedelta(minutes=15)
    spread = f"INTERVAL FLOOR(n * 600 / {MANY}) SECOND"
    receipt = factories.receipt(factories.install(), "{}", received_at=began, routed_at=began, state="routed", event_count=1)
    copy_rows(receipt, MANY, ReceivedAt=f"ReceivedAt + {spread}", IdempotencyHash="NULL")
    ended = rows.work_row(rows.event_row(), State.PROCESSED, terminal_at=began)
    copy_rows(ended, MANY, WorkId=hashed("w"), TerminalAt=f"TerminalAt + {spread}", LaneOrdinal="n + 100", LanePosition="n + 100")
    blocked = rows.work_row(rows.event_row(source_id="b"), State.BLOCKED)
    copy_rows(
        blocked,
        MANY,
        WorkId=hashed("b"),
        ProjectionActiveKey="NULL",
        LaneHolderKey="NULL",
        LaneOrdinal="n + 100",
        LanePosition="n + 100",
    )


@pytest.mark.parametrize("statistics", ["old", "new"])
def test_what_the_overview_draws_reads_a_bounded_part(statistics: str) -> None:
    history()
    if statistics == "new":
        refresh_statistics(*LARGE)
    moment = now()

    def look() -> None:
        for window in overview_reads.WINDOWS.values():
            series = {one.kind: one for one in overview_reads.flow(window, moment)}
            if window is overview_reads.HOUR:  # in half an hour the ten minutes are a burst
                assert series["executed"].chart.total == pytest.approx(MANY, rel=0.2)
                assert series["received"].chart.total == pytest.approx(MANY, rel=0.2)
            assert 2 * 500 <= series["executed"].chart.total <= 1.2 * MANY
        input_counts.newest()
        assert overview_reads.longest_blocked(5)[0].items == overview_reads.BLOCKED_LOOKED_AT

    overview_reads.ROWS_A_PART, before = 500, overview_reads.ROWS_A_PART
    try:
        with server_work() as work:
            look()
        with texts_recorded() as texts:
            look()
    finally:
        overview_reads.ROWS_A_PART = before
    assert full_scans(text for text in texts if any(table in text for table in LARGE)) == []
    # ten or eleven minutes and one or two half hours of two series, read from both ends and counted, with what is sampled
    assert (
        work.rows_read
        <= 2 * 2 * 2 * 13 * 500
        + 2 * 11 * 2 * overview_reads.RECEIPTS_A_PART
        + 3 * overview_reads.BLOCKED_LOOKED_AT
        + input_counts.SAMPLE**2
    )
