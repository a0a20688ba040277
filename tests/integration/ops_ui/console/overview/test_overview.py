"""The overview: the flow of an hour and a day, backlog by age, events per generation, lanes that wait, and the last audit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError

from connectors.models import Upkeep
from connectors.operations import audit_results
from ops_ui.console.overview import input_counts
from ops_ui.console.overview import reads as overview_reads
from ops_ui.console.overview.reads import DAY, HOUR
from projection.database.clock import now
from projection.integrity.invariants import AuditReport, Violation
from projection.models import WorkItem
from projection.states import State
from tests.support import console_world, factories, rows
from tests.support.commands import run

pytestmark = pytest.mark.usefixtures("database")


def page(path: str = "/admin/", group: str = "viewer") -> str:
    return console_world.client(group).get(path).content.decode()


def heights(series: overview_reads.Series) -> dict[int, int]:
    return {place: bar.value for place, bar in enumerate(series.chart.bars) if bar.value}


def test_a_day_is_counted_by_half_hours() -> None:
    moment = now()
    pack = factories.install()
    for hours, events in ((0.1, 2), (0.4, 3), (5.2, 1), (23.9, 7), (24.1, 9)):
        at = moment - timedelta(hours=hours)
        factories.receipt(pack, "{}", received_at=at, routed_at=at, state="routed", event_count=events)
    factories.receipt(pack, "{}", received_at=moment - timedelta(hours=5.3), state="rejected")
    received, admitted, executed, failed = overview_reads.flow(DAY, moment)
    assert heights(received) == {47: 2, 37: 2, 0: 1}
    assert heights(admitted) == {47: 5, 37: 1, 0: 7}
    assert (heights(executed), heights(failed)) == ({}, {})
    assert received.sentence == "Received: 5 in the last 24 hours, at most 2 in one half hour."
    assert executed.sentence == "Executed: none in the last 24 hours."


def test_a_row_of_a_clock_ahead_counts_as_now() -> None:
    moment = now()
    factories.receipt(factories.install(), "{}", received_at=moment + timedelta(minutes=3))
    received, *_ = overview_reads.flow(HOUR, moment)
    assert heights(received) == {59: 1}


def test_a_busy_part_is_estimated_from_how_far_its_cap_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview_reads, "ROWS_A_PART", 10)
    monkeypatch.setattr(overview_reads, "RECEIPTS_A_PART", 5)
    moment = now()
    pack = factories.install()
    begin = moment - timedelta(minutes=30)
    for number in range(60):  # one a second, two events each
        at = begin + timedelta(seconds=number + 0.5)
        factories.receipt(pack, "{}", received_at=at, routed_at=at, state="routed", event_count=2)
    received, admitted, *_ = overview_reads.flow(HOUR, moment)
    assert heights(received)[30] == pytest.approx(60, rel=0.1)
    assert heights(admitted)[30] == pytest.approx(120, rel=0.1)
    assert received.is_estimated
    assert received.sentence.startswith("Received: about 6")


def test_busy_ends_and_failed_attempts_are_estimated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview_reads, "ROWS_A_PART", 10)
    moment = now()
    begin = moment - timedelta(minutes=30)
    for number in range(60):
        at = begin + timedelta(seconds=number + 0.5)
        item = rows.work_row(rows.event_row(rows.PAGES, source_id=str(number)), State.PROCESSED, terminal_at=at)
        rows.failure_row(item, created_date=at)
    _, _, executed, failed = overview_reads.flow(HOUR, moment)
    for series in (executed, failed):
        assert heights(series)[30] == pytest.approx(60, rel=0.1)
        assert series.is_estimated


def test_a_burst_is_rather_told_too_small_than_too_large() -> None:
    begin = now()

    def estimated(last: float, first: float) -> int:
        at = [begin + timedelta(seconds=seconds) for seconds in (0, 60, last, first)]
        return overview_reads.estimate(10, (at[0], at[1]), at[2], at[3])

    assert estimated(10, 50) == 60  # one a second throughout
    assert estimated(0.01, 50) == 70  # a burst at the beginning, which may go on
    assert estimated(0.01, 0.02) == 20  # all of it at the beginning
    assert estimated(29.9, 30.1) == 20  # all of it in the middle
    assert estimated(40, 20) == 10  # read twice
    assert estimated(30, 30) == 20


def test_many_rows_of_states_in_no_order_say_that_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview_reads, "ROWS_A_PART", 3)
    moment = now()
    pack = factories.install()
    for _ in range(5):
        factories.receipt(pack, "{}", received_at=moment - timedelta(minutes=2.5), state="rejected")
    received, *_ = overview_reads.flow(HOUR, moment)
    assert (heights(received), received.is_estimated) == ({57: 3}, True)


def test_the_switch_between_hour_and_day_stays_over_a_refresh() -> None:
    client = console_world.client("viewer")
    whole = client.get("/admin/?flow=day").content.decode()
    assert 'hx-get="/admin/?flow=day"' in whole
    part = client.get("/admin/?flow=day", headers={"HX-Request": "true"}).content.decode()
    assert "by half hour" in part
    assert '<a href="?flow=day" aria-current="true">' in part
    assert "by minute" in page("/admin/?flow=nonsense", "operator")


def test_each_part_is_in_the_table_too() -> None:
    factories.receipt(factories.install(), "{}", received_at=now() - timedelta(minutes=2.5))
    text = page()
    assert text.count('<td class="number" data-label="Received">') == HOUR.parts
    assert text.count('<td class="number" data-label="Received">1</td>') == 1


def a_generation(source: str, events: int, state: str = State.PROCESSED) -> WorkItem:
    made = [rows.event_row(source_id=source) for _ in range(events)]
    return rows.work_row(made[-1], state)


def test_events_of_the_newest_ended_generations_are_counted() -> None:
    for source, events in (("a", 1), ("b", 1), ("c", 2), ("d", 4), ("e", 12)):
        a_generation(source, events)
    a_generation("f", 3, State.PENDING)  # not ended
    dead = a_generation("g", 3, State.DEAD)
    rows.replay_row(dead, State.PROCESSED)  # takes what the dead one took
    rows.work_row(rows.event_row(rows.PAGES, source_id="h"), State.PROCESSED)  # of a per-event route
    found = input_counts.newest()
    assert {one.title: one.generations for one in found.buckets if one.generations} == {"1": 2, "2": 1, "3 to 5": 2, "11 to 25": 1}
    assert (found.generations, found.events, found.is_more) == (6, 23, False)


def test_the_second_generation_of_a_source_has_its_own_events_only() -> None:
    a_generation("a", 4)
    a_generation("a", 2)
    assert {one.title: one.generations for one in input_counts.newest().buckets if one.generations} == {"2": 1, "3 to 5": 1}


def test_a_long_range_is_not_counted_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_counts, "COUNTED", 5)
    monkeypatch.setattr(input_counts, "BUCKETS", ((1, 4), (5, 5)))
    a_generation("a", 9)
    found = input_counts.newest()
    assert [(one.title, one.generations) for one in found.buckets] == [("1 to 4", 0), ("over 4", 1)]
    assert "At least 5 events in 1 run: 5.0 or more" in " ".join(page().split())


def test_the_sample_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_counts, "SAMPLE", 3)
    for number in range(5):
        a_generation(str(number), 1)
    assert input_counts.newest().generations == 3


def test_lanes_that_are_blocked_for_longest_come_first() -> None:
    for source in ("old", "new"):
        rows.work_row(rows.event_row(source_id=source), State.PROCESSING)
        for _ in range(2 if source == "old" else 1):
            rows.work_row(rows.event_row(source_id=source), State.BLOCKED)
    found = overview_reads.longest_blocked(5)
    assert [(lane.name, lane.items) for lane in found] == [("contact:old", 2), ("contact:new", 1)]
    assert [lane.name for lane in overview_reads.longest_blocked(1)] == ["contact:old"]
    assert f"/admin/lanes/{found[0].key}/" in page()


def test_an_empty_installation_is_told_its_first_steps_until_a_delivery_came() -> None:
    client = console_world.client("viewer")
    assert "First steps" in client.get("/admin/").content.decode()
    factories.receipt(factories.install(), "{}")
    assert "First steps" not in client.get("/admin/").content.decode()


def test_no_lane_waits() -> None:
    assert overview_reads.longest_blocked(5) == []
    assert "No lanes are held or blocked" in page()


def test_backlog_is_drawn_by_the_age_of_the_oldest() -> None:
    rows.work_row(rows.event_row(source_id="1"), State.PENDING, created_date=now() - timedelta(hours=3))
    response: Any = console_world.client("viewer").get("/admin/")
    ages = {one.card.title: one for one in response.context["ages"]}
    assert set(ages) == {"Queued"}
    assert 60 < ages["Queued"].share < 70
    assert "3 h" in response.content.decode()


def test_an_audit_that_never_ran_is_no_alarm_and_says_how_to_run_it() -> None:
    assert audit_results.last() is None
    response: Any = console_world.client("viewer").get("/admin/")
    assert "No check has run yet." in response.content.decode()
    assert not any("audit" in alert.sentence for alert in response.context["alerts"])


def test_a_clean_audit_is_shown_with_its_age() -> None:
    a_generation("a", 2)
    assert run("audit")[0] == 0
    Upkeep.objects.filter(name="audit").update(finished_at=now() - timedelta(hours=2, minutes=10))
    text = page()
    assert "passed</span> 2 h 10 min ago" in text
    assert "2 events" in text
    assert "last audit" not in text.lower().replace(">last audit<", "")
    assert "passed</span> 2 h 10 min ago" in page("/admin/workers/", "operator")


def test_an_audit_that_found_something_is_an_alert_until_one_is_clean() -> None:
    receipt = factories.receipt(factories.install(), "{}", state="routed", routed_at=now())  # without its counts
    code, answer = run("audit")
    assert (code, answer["ok"]) == (1, False)
    broken = answer["violations"][0]["invariant"]
    assert f"The last integrity check failed ({broken}" in page()
    assert answer["violations"][0]["detail"][:20] in page("/admin/workers/", "operator")
    receipt.delete()
    assert run("audit")[0] == 0
    assert "integrity check failed" not in page("/admin/", "administrator")


def test_an_old_audit_is_an_alert() -> None:
    run("audit")
    for hours, is_old in ((47, False), (49, True)):
        Upkeep.objects.filter(name="audit").update(finished_at=now() - timedelta(hours=hours))
        assert ("The last integrity check is 2 d 1 h old" in page("/admin/", "viewer" if is_old else "operator")) is is_old


def test_the_first_violations_are_kept_not_all() -> None:
    found = [Violation("lease", str(number), "x") for number in range(50)]
    audit_results.keep(AuditReport({"lease": 50}, found), now())
    kept = audit_results.last()
    assert kept is not None
    assert (len(kept.violations), kept.broken, kept.ok) == (audit_results.LISTED, {"lease": 50}, False)


@pytest.mark.parametrize("error", [OperationalError(1290, "read only"), DatabaseError(1142, "INSERT command denied")])
def test_an_audit_that_may_not_write_says_what_it_found_all_the_same(error: DatabaseError, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr(audit_results, "keep", refuse)
    code, answer = run("audit")
    assert (code, answer["ok"]) == (0, True)


def test_retention_does_not_list_the_audit() -> None:
    run("audit")
    assert "Retention has not run yet" in page("/admin/workers/")
