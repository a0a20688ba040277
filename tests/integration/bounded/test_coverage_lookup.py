"""Whether a duplicate is covered is read from one index, whatever history there is (docs/protocol.md#bounded-coverage)."""

from __future__ import annotations

import pytest

from projection.models import Event, WorkItem
from projection.states import State
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.rows import event_row, work_row
from tests.support.server_work import plan_of, refresh_statistics, server_work, texts_recorded

pytestmark = pytest.mark.usefixtures("database")

KEYS = 128
DEPTH = 5_000


def history() -> list[int]:
    """128 projections with one generation each; the first one has 5,000 more ordinary ones and 5,000 replays."""
    events = [event_row(source_id=str(number)) for number in range(KEYS)]
    items = [work_row(event, State.PROCESSED) for event in events]
    generation = {"WorkId": hashed("old"), "LaneOrdinal": "n + 200", "EventId": "n + 1000000"}
    copy_rows(items[0], DEPTH, **generation)
    copy_rows(
        items[0],
        DEPTH,
        **{
            **generation,
            "WorkId": hashed("again"),
            "LaneOrdinal": "n + 210",
            "EventId": "n + 2000000",
            "ReplayOfWorkId": hashed("old"),
        },
    )  # ten of them are the newest of all
    refresh_statistics("_System_ConnectorEvent", "_System_ConnectorWorkItem")
    return [event.id for event in events]


@pytest.mark.parametrize(
    ("reader", "indexes"),
    [("read_newest_ordinary", {"ix_work_coverage"}), ("read_any_generation", {"ix_work_coverage", "ix_work_current"})],
)
def test_it_is_answered_by_an_index_alone(reader: str, indexes: set[str]) -> None:
    ids = history()
    with texts_recorded() as texts:
        answer = getattr(WorkItem.objects, reader)(ids)
    assert len(answer) == KEYS
    (access,) = [access for access in plan_of(texts[0]) if access["table"] == "g"]
    assert access["key"] in indexes
    assert "Using index" in access["extra"]


def test_replays_do_not_cover_and_history_is_not_read() -> None:
    ids = history()
    with server_work() as work:
        newest = WorkItem.objects.read_newest_ordinary(ids)
    assert newest[ids[0]] == 200 + DEPTH - 1
    others = Event.objects.filter(id__in=ids[1:]).values_list("id", "enqueue_ordinal")
    assert {key: newest[key] for key in ids[1:]} == dict(others)
    assert work.rows_read <= 6 * KEYS, work.counters


def test_the_lower_bound_of_a_generation_is_read_in_one_step_of_the_index() -> None:
    history()
    newest = WorkItem.objects.filter(replay_of_work_id=None).order_by("-lane_ordinal")[:1].get()
    with server_work() as work:
        ((_, _, own, lower, mixed),) = WorkItem.objects.read_lower_bounds([newest.id])
    assert (own, lower, mixed) == (200 + DEPTH - 1, 200 + DEPTH - 2, 0)
    assert work.rows_read <= 10, work.counters
