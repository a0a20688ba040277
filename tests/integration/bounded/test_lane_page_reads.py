"""The page of a lane costs the same whatever waits or ended in it."""

from __future__ import annotations

import pytest

from projection.inspection import lane_reads
from projection.models import WorkItem
from projection.states import State
from tests.support import console_world, rows
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.scale import size
from tests.support.server_work import refresh_statistics, server_work

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale]

ENDED = size(10_000, 200_000)
BLOCKED = size(2_000, 20_000)


@pytest.mark.parametrize("statistics", ["old", "new"])
def test_a_deep_lane_with_a_long_history(statistics: str) -> None:
    first = rows.event_row()
    done = rows.work_row(first, State.PROCESSED)
    copy_rows(done, ENDED, WorkId=hashed("e"), LanePosition="n + 10")
    head = rows.work_row(rows.event_row(), State.RETRY, lane_position=ENDED + 50)
    waiting = rows.work_row(rows.event_row(), State.BLOCKED, lane_position=ENDED + 51)
    copy_rows(waiting, BLOCKED, WorkId=hashed("b"), LanePosition=f"n + {ENDED + 60}")
    if statistics == "new":
        refresh_statistics(WorkItem._meta.db_table)
    with server_work() as work:
        front = lane_reads.front(str(head.lane_key), 50)
        ended = lane_reads.ended_last(str(head.lane_key), 20)
    assert [item.id for item in front[:2]] == [head.id, waiting.id]
    assert [item.lane_position for item in front] == sorted(item.lane_position for item in front)
    assert [item.lane_position for item in ended] == list(range(ENDED + 9, ENDED - 11, -1))
    assert (len(front), len(ended)) == (50, 20)
    assert work.rows_read <= 200


def test_the_strip_is_on_the_page_with_its_words() -> None:
    world = console_world.build()
    response = console_world.client("viewer").get(world.paths["lane"])
    text = response.content.decode()
    assert "strip-retry strip-head" in text
    assert "1 retrying" in text
    assert "1 waiting for the active generation" in text
