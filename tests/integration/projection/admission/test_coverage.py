"""Coverage of known events, row by row: whether retained work represents them, and which delivery stands
(docs/protocol.md#coverage).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from projection.admission import coverage
from projection.admission.coverage import find_known, uncovered, uncovered_events
from projection.database.clock import now
from projection.facts import InboundEvent
from projection.identity import sha256_text
from projection.models import Event, WorkItem
from projection.states import TERMINAL, State
from tests.support.rows import PAGES, event_row, replay_row, work_row
from tests.support.server_work import texts_recorded

pytestmark = pytest.mark.usefixtures("database")


def missing(*events: Event) -> list[int]:
    return uncovered_events(Event.objects.read_known_events([event.id for event in events]))


def inbound(delivery: str, payload: str = "{}", *, siblings: tuple[str, ...] = ()) -> InboundEvent:
    return InboundEvent(
        receipt_id=1, item=0, namespace="default", pack_id=1, pack_name="generic", pack_incarnation="i", route=None,
        provider_kind="k", source_type="contact", source_id="1", source_lane="", target_lane="", delivery_id=delivery,
        delivery_key=delivery, provider_time=None, payload=payload, payload_sha256=sha256_text(payload), sibling_keys=siblings,
    )  # fmt: skip


@pytest.mark.parametrize("state", sorted(State))
def test_a_generation_of_any_state_covers_what_is_not_after_it(state: State) -> None:
    superseded, selected, after = event_row(), event_row(), event_row()
    work_row(selected, state)
    assert missing(superseded, selected, after) == [after.id]


def test_neither_a_replay_nor_another_projection_covers() -> None:
    dead = work_row(event_row(), State.DEAD)
    late, other = event_row(), event_row(source_id="8")
    replay_row(dead)
    assert missing(late, other) == [late.id, other.id]
    work_row(event_row(source_id="8"))
    assert missing(late, other) == [late.id]


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_per_event_item_covers_its_own_event_alone(state: State) -> None:
    first, second = event_row(PAGES), event_row(PAGES)
    work_row(first, state)
    assert missing(first, second) == [second.id]


def test_an_unrouted_event_needs_no_work() -> None:
    with texts_recorded() as texts:
        rows = Event.objects.read_known_events([event_row(None).id])
        before = len(texts)
        assert uncovered_events(rows) == []
        assert uncovered([]) == []
    assert len(texts) == before, "nor a statement"


def test_an_event_without_an_ordinal_is_covered_only_by_what_is_not_before_it_in_time() -> None:
    moment = now()
    early, late = (event_row(enqueue_ordinal=0, created_date=moment + timedelta(hours=hours)) for hours in (-1, 1))
    work_row(event_row(created_date=moment))
    assert missing(early, late) == [late.id]


def test_an_event_is_covered_by_a_later_generation_without_an_ordinal() -> None:
    numbered, late = event_row(), event_row(created_date=now() + timedelta(hours=2))
    work_row(event_row(enqueue_ordinal=0, created_date=now() + timedelta(hours=1)))
    assert missing(numbered, late) == [late.id]


def test_what_ordinals_prove_costs_one_statement_for_each_class_also_for_the_selected_event() -> None:
    projected, single = [event_row(), event_row()], event_row(PAGES)
    work_row(projected[-1])
    work_row(single)
    rows = Event.objects.read_known_events([event.id for event in (*projected, single)])
    with texts_recorded() as texts:
        assert uncovered_events(rows) == []
    assert len(texts) == 2


def test_events_of_several_statements_are_all_judged_and_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "KEYS_A_STATEMENT", 1)
    monkeypatch.setattr(coverage, "DELIVERIES_A_STATEMENT", 1)
    single = [event_row(PAGES) for _ in range(3)]
    projected = [event_row(source_id=str(number)) for number in range(3)]
    work_row(single[1])
    work_row(projected[1])
    expected = [single[0].id, single[2].id, projected[0].id, projected[2].id]
    assert missing(*projected, *single) == expected
    assert missing(*reversed(projected), *reversed(single)) == expected


def test_the_stored_event_stands_before_an_earlier_item_of_the_batch() -> None:
    stored = event_row(None)
    same, other = inbound(stored.delivery_key, stored.payload), inbound(stored.delivery_key, '{"v":2}')
    fresh, known = find_known([same, other])
    assert fresh == []
    assert [(one.inbound, one.event.id if one.event else None, one.is_conflict, one.first) for one in known] == [
        (same, stored.id, False, None),
        (other, stored.id, True, None),
    ]


def test_inside_a_batch_the_first_stands() -> None:
    first, second, third, other = inbound("a"), inbound("a"), inbound("a", '{"v":2}'), inbound("b")
    fresh, known = find_known([first, second, other, third])
    assert fresh == [first, other]
    assert [(one.inbound, one.event, one.is_conflict, one.first) for one in known] == [
        (second, None, False, first),
        (third, None, True, first),
    ]


def test_a_delivery_is_known_by_the_key_of_a_sibling_but_its_own_key_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "DELIVERIES_A_STATEMENT", 1)
    own, sibling = event_row(None), event_row(None)
    by_both = inbound(own.delivery_key, siblings=(sibling.delivery_key,))
    by_sibling = inbound("x", siblings=("y", sibling.delivery_key))
    first = inbound("z")
    in_batch = inbound("w", siblings=("z",))
    fresh, known = find_known([by_both, by_sibling, first, in_batch])
    assert fresh == [first]
    found: list[Any] = [one.event.id if one.event else one.first for one in known]
    assert found == [own.id, sibling.id, first]


def test_only_what_is_stored_can_be_uncovered() -> None:
    stored = event_row()
    _, known = find_known([inbound(stored.delivery_key), inbound("a"), inbound("a")])
    assert uncovered(known) == [stored.id]
    work_row(stored)
    assert uncovered(known) == []
    assert WorkItem.objects.count() == 1
