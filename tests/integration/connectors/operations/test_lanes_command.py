"""`lanes list / show / hold / release`."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError

from connectors.models import AuditEntry
from projection.completion import lanes
from projection.database.clock import now
from projection.models import LaneHold, WorkItem
from tests.support.commands import run, say
from tests.support.rows import CONTACTS, PAGES, event_row, route_of, work_row

pytestmark = pytest.mark.usefixtures("database")


def test_the_list_shows_what_is_live_and_who_holds_it() -> None:
    work_row(event_row(PAGES, source_id="gone"), "processed")
    busy = work_row(event_row(PAGES, source_id="1"), "retry")
    work_row(event_row(PAGES, source_id="1"), "blocked")
    work_row(event_row(CONTACTS, source_id="2"), "processing")
    work_row(event_row(CONTACTS, source_id="2"), "blocked")
    code, answer = run("lanes", "list")
    assert code == 0
    assert [(row["lane"], row["depth"], row["blocked"], row["running_state"]) for row in answer["lanes"]] == [
        ("contact:1", 2, 1, "retry"),
        ("contact:2", 1, 0, "processing"),
    ]
    assert answer["lanes"][0]["running"] == busy.work_id
    assert [row["lane"] for row in run("lanes", "list", "--blocked")[1]["lanes"]] == ["contact:1"]
    assert run("lanes", "list", "--limit", "1")[1]["truncated"] is True
    assert "contact:1" in say("lanes", "list")[1]


def test_a_lane_is_held_shown_and_released_by_its_name() -> None:
    item = work_row(event_row(PAGES))
    assert run("lanes", "list", "--held")[1]["lanes"] == []
    code, answer = run("lanes", "hold", "contact:42", "--reason", "outage")
    assert code == 0
    assert answer["held"] == [{"namespace": "default", "lane_key": item.lane_key, "lane": "contact:42", "account": ""}]
    assert LaneHold.objects.get().reason == "outage"
    (held,) = run("lanes", "list", "--held")[1]["lanes"]
    assert (held["lane"], held["depth"], held["hold"]["reason"]) == ("contact:42", 1, "outage")
    code, answer = run("lanes", "hold", "contact:42")
    assert (code, answer["refused"][0]["code"]) == (1, "already_held")
    (shown,) = run("lanes", "show", "contact:42")[1]["lanes"]
    assert shown["why"]["code"] == "held"
    assert [one["work_id"] for one in shown["items"]] == [item.work_id]
    assert run("lanes", "release", "contact:42")[0] == 0
    assert run("lanes", "release", "contact:42")[0] == 1
    assert [entry.action for entry in AuditEntry.objects.order_by("id")] == ["lane.hold", "lane.release"]


def test_a_reason_that_is_no_text_is_kept_escaped() -> None:
    """A shell hands bytes that are no UTF-8 over as lone surrogates."""
    work_row(event_row(PAGES))
    assert run("lanes", "hold", "contact:42", "--reason", "ra\udcffson")[0] == 0
    assert LaneHold.objects.get().reason == "ra\\udcffson"


def test_a_hold_that_would_be_over_already_is_refused() -> None:
    work_row(event_row(PAGES))
    code, answer = run("lanes", "hold", "contact:42", "--until", "2020-01-01T00:00:00Z")
    assert (code, answer["refused"][0]["code"]) == (1, "in_the_past")
    assert not LaneHold.objects.exists()


def test_a_held_lane_without_work_is_still_listed_and_released() -> None:
    LaneHold.objects.create(namespace="default", lane_key="a" * 64, lane="contact:9", reason="r", held_by="ann", held_at=now())
    (held,) = run("lanes", "list", "--held")[1]["lanes"]
    assert (held["lane"], held["depth"]) == ("contact:9", 0)
    assert run("lanes", "show", "contact:9")[1]["lanes"][0]["why"]["code"] == "idle"
    assert run("lanes", "release", "contact:9")[0] == 0


def test_a_lane_is_found_by_its_key_and_by_a_target_mutation_lane() -> None:
    item = work_row(event_row(PAGES, target_mutation_lane="invoice:7"))
    assert item.lane_key is not None
    for text in (item.lane_key, "invoice:7"):
        (shown,) = run("lanes", "show", text)[1]["lanes"]
        assert (shown["lane_key"], shown["lane"], shown["depth"]) == (item.lane_key, "invoice:7", 1)
    assert [row["lane"] for row in run("lanes", "list")[1]["lanes"]] == ["invoice:7"]


def test_the_queue_is_in_lane_order_and_gives_the_reason_of_its_head() -> None:
    settling = work_row(event_row(CONTACTS), run_after=now() + timedelta(hours=1))
    first = work_row(event_row(PAGES), "retry")
    second = work_row(event_row(PAGES), "blocked")
    (shown,) = run("lanes", "show", "contact:42")[1]["lanes"]
    assert [one["work_id"] for one in shown["items"]] == [settling.work_id, first.work_id, second.work_id]
    assert shown["why"]["blocking_work_id"] == first.work_id
    assert "retrying" in say("lanes", "show", "contact:42")[1].lower()


def test_a_change_never_guesses_among_several_lanes() -> None:
    work_row(event_row(PAGES))
    work_row(event_row(route_of("other", mode="per_event", id=9, companion_pack="crm")))
    assert len(run("lanes", "show", "contact:42")[1]["lanes"]) == 2
    code, answer = run("lanes", "hold", "contact:42")
    assert (code, answer["error"]["code"]) == (2, "usage")
    assert not LaneHold.objects.exists()


@pytest.mark.parametrize("text", ["contact:43", "contact:42 ", "b" * 64])
def test_an_unknown_lane_is_exit_code_1(text: str) -> None:
    work_row(event_row(PAGES))
    for verb in ("show", "hold", "release"):
        assert run("lanes", verb, text)[0] == 1


def test_the_list_has_idle_lanes_on_hold_too() -> None:
    idle, busy = work_row(event_row(PAGES)), work_row(event_row(PAGES, source_id="43"))
    assert run("lanes", "hold", "contact:42", "--reason", "r")[0] == 0
    WorkItem.objects.filter(id=idle.id).update(state="processed", terminal_at=now())
    found = run("lanes", "list")[1]
    assert [(one["lane"], one["depth"]) for one in found["lanes"]] == [("contact:43", 1), ("contact:42", 0)]
    assert found["lanes"][1]["hold"]["reason"] == "r"
    code, answer = run("lanes", "list", "--limit", "1")
    assert (code, [one["lane_key"] for one in answer["lanes"]], answer["truncated"]) == (0, [busy.lane_key], True)


def test_a_hold_that_cannot_be_stored_is_no_lane_that_is_held() -> None:
    item = work_row(event_row(PAGES))
    with pytest.raises(IntegrityError):
        lanes.hold("default", str(item.lane_key), None, actor="ann", reason="r")
    assert not LaneHold.objects.exists()
