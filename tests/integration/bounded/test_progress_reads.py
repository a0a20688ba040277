"""A look at progress costs the same whatever waits and whatever was: rows read, and no table read from end to end."""

from __future__ import annotations

import pytest

from connectors.models import Receipt
from ops_ui.monitoring import progress
from projection.execution.worker import drain_claims
from projection.limits.queue_classes import WEIGHTS
from projection.models import LaneHold, WorkItem
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import Ingress, change, changes, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.scale import size
from tests.support.server_work import full_scans, server_work, texts_recorded

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale]

MANY = size(20_000, 200_000)
FOR_EACH_CLASS_AND_STATE = 6 * 50
"""Of at most 50 rows: the step, the row itself, its hold, its holder, and twice through a temporary table."""
ROWS = 2 * (len(WEIGHTS) + 1) * FOR_EACH_CLASS_AND_STATE + 6 * 100 + 100


def history(site: Ingress) -> None:
    """Many receipts and items that ended, and as many that wait: due, each in a lane of its own that is held."""
    site.route(mode="per_event")
    site.admit(*changes(1, 1))
    with recording():
        drain_claims()
    copy_rows(WorkItem.objects.get(), MANY, WorkId=hashed("ended"), LaneHolderKey="NULL")
    copy_rows(Receipt.objects.get(), MANY, IdempotencyHash=hashed("routed"))
    site.route("bulk", mode="per_event", queue_class="bulk", on=("bulk",))
    site.admit(change(2, kind="bulk"))
    item = WorkItem.objects.get(queue_class="bulk")
    run_after = "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR - INTERVAL n MICROSECOND"
    copy_rows(item, MANY, WorkId=hashed("due"), LaneKey=hashed("lane"), RunAfter=run_after)
    hold = LaneHold.objects.create(namespace="default", lane_key="x", lane="x", reason="", held_by="op", held_at=item.created_date)
    copy_rows(hold, MANY, LaneKey=hashed("lane"), Lane="CONCAT('lane ', n)")
    site.send(change(3))
    copy_rows(
        Receipt.objects.get(state="pending"),
        MANY,
        IdempotencyHash=hashed("put off"),
        NextAttemptAt="UTC_TIMESTAMP(6) + INTERVAL 1 HOUR",
    )


def test_a_look_reads_a_bounded_number_of_rows() -> None:
    site = open_ingress()
    history(site)
    progress.findings()
    with server_work() as work:
        progress.findings()
    assert work.rows_read <= ROWS
    with texts_recorded() as texts:
        progress.findings()
    scanned = [text for text in full_scans(texts) if "ConnectorRoute" not in text and "ConnectorWorker" not in text]
    assert scanned == []


def test_one_due_item_is_found_beside_what_ended() -> None:
    site = open_ingress()
    history(site)
    LaneHold.objects.all().delete()
    assert {due.queue_class: due.since is not None for due in progress.due_ages()}["bulk"]
