"""From a choice of dead letters to a preview, and from there to a durable job with a result for each item."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from connectors.models import AuditEntry
from connectors.operations import bulk_jobs
from connectors.operations.work_filters import WorkFilter, from_json
from projection.bulk import jobs, membership
from projection.bulk.job_rows import ItemState, JobKind, JobRow, JobState
from projection.database.clock import now
from projection.execution.worker import drain_claims
from projection.job_models import Job, JobItem
from projection.models import WorkItem
from projection.replay.replay import replay
from projection.states import State
from tests.support import console_world, rows
from tests.support.deliveries import change, generations
from tests.support.flows_of_tests import recording
from tests.support.jobs_by_hand import codes, dead_letters, run_with_workers

pytestmark = pytest.mark.usefixtures("database")

LIST = "/admin/dead-letters/"


@pytest.fixture
def client(database: None) -> Client:
    return console_world.client("operator")


def dead(source: str, **columns: Any) -> WorkItem:
    return rows.work_row(rows.event_row(rows.PAGES, source_id=source), State.DEAD, **columns)


def preview(client: Client, verb: str = "replay", **form: Any) -> JobRow:
    """The preview that a form leads to."""
    response = client.post(f"{LIST}{verb}-preview/", form)
    assert response.status_code == 302, response.content
    found = re.fullmatch(r"/admin/dead-letters/previews/(\d+)/", response["Location"])
    assert found, response["Location"]
    return found_job(int(found[1]))


def found_job(job_id: int) -> JobRow:
    job = jobs.find(job_id)
    assert job is not None
    return job


def refused(client: Client, verb: str = "replay", **form: Any) -> str:
    """The message of a form that leads to no preview."""
    response = client.post(f"{LIST}{verb}-preview/", form, follow=True)
    assert response.redirect_chain == [(LIST, 302)]
    assert not Job.objects.exists()
    (message,) = response.context["messages"]
    return str(message)


def start(client: Client, made: JobRow, verb: str = "replay", **form: Any) -> JobRow:
    """The job that a confirmed preview becomes."""
    response = client.post(f"{LIST}{verb}-start/", {"preview": made.id, "reason": "fixed", **form})
    found = re.fullmatch(r"/admin/replays/(\d+)/", response["Location"])
    assert found, response["Location"]
    return found_job(int(found[1]))


class TestChoice:
    def test_ticked_rows_are_named(self, client: Client) -> None:
        one, two = dead("1"), dead("2")
        made = preview(client, what="chosen", work=[two.work_id, two.work_id, one.work_id])
        assert from_json(made.filter).work == (two.work_id, one.work_id)
        assert (made.actor, made.kind, made.retarget) == ("operator", "replay", False)

    def test_all_that_match_are_the_open_ones_of_the_filter(self, client: Client) -> None:
        for number in range(3):
            dead(str(number), last_error="Timeout")
        rows.replay_row(dead("4", last_error="Timeout"), "processed")
        dead("5", last_error="Timeout", discarded_at=now())
        dead("6", last_error="other")
        for verb in ("replay", "discard"):
            made = preview(client, verb, what="matching", filter="error=Timeout&at=after-1&by=days")
            assert made.expected.total == 3

    def test_a_discard_of_everything_shown_takes_replayed_ones_too(self, client: Client) -> None:
        rows.replay_row(dead("4"), "processed")
        made = preview(client, "discard", what="matching", filter="show=all")
        assert made.expected.possible == 1

    def test_what_dies_after_the_preview_is_left_out(self, client: Client) -> None:
        dead("1")
        made = preview(client, what="matching", filter="")
        dead("2")
        job = start(client, made)
        assert run_with_workers(job).total == 1

    def test_a_bound_of_the_filter_is_kept(self, client: Client) -> None:
        dead("1", terminal_at=now() - timedelta(hours=2))
        dead("2")
        made = preview(client, what="matching", filter="until=1h")
        assert made.expected.total == 1
        assert "Failed before" in client.get(f"{LIST}previews/{made.id}/").content.decode()

    @pytest.mark.parametrize(
        ("form", "said"),
        [
            ({}, "Select dead letters"),
            ({"what": "chosen"}, "Select dead letters"),
            ({"what": "chosen", "work": [str(number) for number in range(501)]}, "at most 500"),
            ({"what": "matching", "filter": "since=nonsense"}, "contains an invalid value"),
            ({"what": "matching", "filter": "route=unknown"}, "contains an invalid value"),
            ({"what": "matching", "filter": "show=discarded"}, "already replayed or discarded"),
            ({"what": "matching", "filter": "show=replayed"}, "already replayed or discarded"),
            ({"what": "refused", "job": "7"}, "refused no dead letters"),
            ({"what": "refused", "job": "x" * 30}, "refused no dead letters"),
        ],
    )
    def test_an_unclear_choice_makes_no_preview(self, client: Client, form: dict[str, Any], said: str) -> None:
        assert said in refused(client, **form)

    def test_names_of_nothing_are_told(self, client: Client) -> None:
        made = preview(client, work=["nothing", "é", dead("1").work_id])
        assert "2 of the selected are not dead" in client.get(f"{LIST}previews/{made.id}/").content.decode()


class TestCounting:
    def test_many_are_counted_part_by_part(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("projection.bulk.membership.PAGE", 4)
        for number in range(10):
            rows.work_row(rows.event_row(rows.CONTACTS, source_id=str(number % 5)), State.DEAD)
        made = preview(client, what="matching")
        page = f"{LIST}previews/{made.id}/"
        seen = []
        for _ in range(4):
            context: Any = client.get(page).context
            seen.append((context["counts"].possible, context["counts"].deferred, context["preview"].fixed is not None))
            response = client.post(f"{page}count/", headers={"HX-Request": "true"})
            assert b"<html" not in response.content
        assert seen == [(4, 0, False), (5, 3, False), (5, 5, True), (5, 5, True)]
        assert found_job(made.id).step == 3
        assert client.post(f"{page}count/")["Location"] == page

    def test_one_part_costs_the_same_whatever_was_counted(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("projection.bulk.membership.PAGE", 3)
        for number in range(18):
            dead(str(number))
        made = preview(client, what="matching")
        asked = []
        for _ in range(4):
            with CaptureQueriesContext(connection) as queries:
                client.post(f"{LIST}previews/{made.id}/count/", headers={"HX-Request": "true"})
            asked.append(len(queries))
        assert len(set(asked)) == 1
        assert asked[0] <= 30

    def test_dead_letters_that_do_not_match_are_looked_through_in_bounded_parts(self, client: Client) -> None:
        for number in range(5):
            dead(str(number))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(membership, "PAGE", 1)
            patch.setattr(membership, "PAGES_A_PART", 2)
            made = preview(client, what="matching", filter="error=nothing")
        assert (made.expected.looked_at, made.fixed, made.total) == (2, None, 0)

    def test_two_windows_count_each_part_once(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(membership, "PAGE", 1)
        for number in range(3):
            dead(str(number))
        made = preview(client, what="matching")
        bulk_jobs.count(made)
        assert bulk_jobs.count(made).total == 2, "the other window was faster"
        assert bulk_jobs.count_all(made).expected.possible == 3

    def test_a_preview_that_nobody_confirms_is_kept_for_a_day(self, client: Client) -> None:
        made, second, confirmed = (preview(client, what="matching") for _ in range(3))
        start(client, confirmed)
        Job.objects.exclude(id=second.id).update(created_date=now() - timedelta(hours=25))
        JobItem.objects.create(job_id=made.id, place=1, work_item_id=1, work_id="x", namespace="default", state="waiting")
        assert jobs.prune_jobs(now() - timedelta(days=30), dry_run=True) == 1
        assert jobs.prune_jobs(now() - timedelta(days=30)) == 1
        assert set(Job.objects.values_list("id", flat=True)) == {second.id, confirmed.id}
        assert not JobItem.objects.exists()

    def test_a_preview_is_in_no_list_of_jobs(self, client: Client) -> None:
        made = preview(client, what="matching")
        assert jobs.newest(9) == []
        assert f"/admin/replays/{made.id}/" not in client.get("/admin/replays/").content.decode()
        assert client.get(f"/admin/replays/{made.id}/")["Location"] == f"{LIST}previews/{made.id}/"
        job = start(client, made)
        assert client.get(f"{LIST}previews/{job.id}/")["Location"] == f"/admin/replays/{job.id}/"
        assert client.post(f"{LIST}previews/{job.id}/count/", headers={"HX-Request": "true"})["HX-Refresh"] == "true"

    def test_a_preview_is_seen_by_everybody_and_confirmed_by_those_who_may(self, client: Client) -> None:
        dead("1")
        made = preview(client, what="matching")
        page = f"{LIST}previews/{made.id}/"
        assert "replay-start/" in client.get(page).content.decode()
        viewer = console_world.client("viewer")
        assert "replay-start/" not in viewer.get(page).content.decode()
        assert viewer.post(f"{page}count/").status_code == 403
        assert viewer.get(f"{LIST}previews/999999/").status_code == 404

    def test_reasons_of_refusal_are_sentences(self, client: Client) -> None:
        replayed = dead("1")
        rows.replay_row(replayed, "processed")
        made = preview(client, work=[replayed.work_id, dead("2", discarded_at=now()).work_id])
        content = client.get(f"{LIST}previews/{made.id}/").content.decode()
        assert "already replayed, and that replay has not failed" in content
        assert "discarded; restore it first" in content

    def test_an_order_that_could_suffer_is_a_warning(self, client: Client) -> None:
        with recording() as seen:
            ingress = dead_letters(seen, 1)
            ingress.admit(change(1))
            drain_claims()
        made = preview(client, what="matching")
        content = client.get(f"{LIST}previews/{made.id}/").content.decode()
        assert made.expected.after_newer == 1
        assert "would run after newer work of the same record has succeeded" in " ".join(content.split())

    def test_counting_under_current_versions_is_another_preview(self, client: Client) -> None:
        with recording() as seen:
            dead_letters(seen, 1, on=("changed",)).route(version=2, kind="contact.other", on=("changed",))
        made = preview(client, what="matching")
        again = preview(client, what="again", preview=made.id, retarget="1")
        assert again.retarget
        assert again.filter == made.filter
        assert again.expected.refused == {"kind_change": 1}
        job = start(client, again)
        assert job.retarget
        assert codes(run_with_workers(job)) == {"kind_change": 1}


class TestStart:
    def test_a_confirmed_preview_becomes_one_job_with_reason_rate_and_audit_entry(self, client: Client) -> None:
        for number in range(3):
            dead(str(number))
        made = preview(client, what="matching")
        job = start(client, made, reason=" the vendor is back ", rate="50")
        assert (job.kind, job.reason, job.actor, job.rate, job.state) == (
            JobKind.REPLAY,
            "the vendor is back",
            "operator",
            50,
            JobState.FINISHED,
        )
        entry = AuditEntry.objects.get(action="job.start")
        assert (entry.actor, entry.target, entry.reason) == ("operator", f"job {job.id}", "the vendor is back")
        assert start(client, made).id == job.id
        assert len(jobs.newest(9)) == 1

    def test_a_request_that_starts_a_long_job_acts_on_nothing(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bulk_jobs, "ITEMS_A_STEP", 2)
        for number in range(3):
            dead(str(number))
        made = preview(client, what="matching")
        with CaptureQueriesContext(connection) as queries:
            job = start(client, made)
        assert len(queries) <= 25
        assert (job.state, job.waiting) == (JobState.RUNNING, 3)

    def test_named_ones_are_done_with_the_confirmation_and_a_conflict_is_a_row(self, client: Client) -> None:
        """The source of one is active, another was replayed by somebody else a moment ago."""
        with recording() as seen:
            ingress = dead_letters(seen, 1, 2, 3, 4, 5)
            ingress.admit(change(4))
            items = [generations(contact)[0] for contact in (1, 2, 3, 4, 5)]
            made = preview(client, what="chosen", work=[item.work_id for item in items])
            replay(items[4].work_id, actor="bob", reason="a second earlier")
            job = start(client, made)
        assert job.state is JobState.FINISHED
        assert codes(job) == {"done": 3, "active_generation": 1, "already_replayed": 1}
        page = client.get(f"/admin/replays/{job.id}/").content.decode()
        assert page.count("badge-done") == 3
        assert "already replayed as" in page
        assert "is already open for the same record" in page
        assert WorkItem.objects.filter(state=State.DEAD).count() == 5

    def test_refused_ones_are_asked_for_again(self, client: Client) -> None:
        with recording() as seen:
            ingress = dead_letters(seen, 1, 2)
            ingress.admit(change(2))
            items = [generations(contact)[0] for contact in (1, 2)]
            job = start(client, preview(client, work=[item.work_id for item in items]))
            drain_claims()
            again = start(client, preview(client, what="refused", job=job.id))
        assert [item.work_id for item in jobs.items(again.id, limit=9)] == [items[1].work_id]
        assert codes(again) == {"done": 1}

    def test_a_discard_is_a_job_too(self, client: Client) -> None:
        items = [dead(str(number)) for number in range(3)]
        job = run_with_workers(start(client, preview(client, "discard", what="matching"), "discard", reason="test data"))
        assert codes(job) == {"done": 3}
        assert set(WorkItem.objects.values_list("discarded_by", "discard_reason")) == {("operator", "test data")}
        assert len(items) == AuditEntry.objects.get(action="work.discard").count

    @pytest.mark.parametrize(
        ("form", "said"),
        [
            ({"reason": " "}, "enter a reason"),
            ({"rate": "-1"}, "enter the rate as a whole number"),
            ({"rate": "many"}, "enter the rate as a whole number"),
            ({"rate": "100001"}, "enter the rate as a whole number"),
            ({"rate": "²"}, "enter the rate as a whole number"),
        ],
    )
    def test_an_incomplete_confirmation_starts_nothing(self, client: Client, form: dict[str, str], said: str) -> None:
        made = preview(client, what="matching")
        response = client.post(f"{LIST}replay-start/", {"preview": made.id, "reason": "x", **form}, follow=True)
        assert response.redirect_chain == [(f"{LIST}previews/{made.id}/", 302)]
        assert said in str(next(iter(response.context["messages"])))
        assert jobs.newest(1) == []

    def test_what_is_not_counted_to_the_end_is_not_started(self, client: Client) -> None:
        dead("1")
        dead("2")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(membership, "PAGE", 1)
            made = preview(client, what="matching")
        response = client.post(f"{LIST}replay-start/", {"preview": made.id, "reason": "x"}, follow=True)
        assert "counting is not complete" in str(next(iter(response.context["messages"])))
        assert jobs.newest(1) == []

    def test_a_preview_of_a_discard_starts_no_replay(self, client: Client) -> None:
        made = preview(client, "discard", what="matching")
        assert client.post(f"{LIST}replay-start/", {"preview": made.id, "reason": "x"}).status_code == 404
        for given in ("", "x", "0", "²", "9" * 40):
            assert client.post(f"{LIST}discard-start/", {"preview": given, "reason": "x"}).status_code == 404

    def test_items_wait_where_another_of_their_source_goes_first(self, client: Client) -> None:
        with recording() as seen:
            dead_letters(seen, 1, 1)
            items = generations(1)
            job = start(client, preview(client, work=[item.work_id for item in items]))
        assert (job.done, job.deferred, job.state) == (1, 1, JobState.RUNNING)
        assert jobs.items(job.id, (ItemState.DEFERRED,), limit=9)[0].work_id == items[1].work_id


def test_the_stored_filter_says_what_the_list_showed() -> None:
    client = console_world.client("operator")
    made = preview(client, what="matching", filter="error=Timeout&fingerprint=" + "a" * 64)
    assert from_json(made.filter) == WorkFilter(error="Timeout", fingerprint="a" * 64, unreplayed=True)
    link = re.search(r'href="(/admin/dead-letters/\?[^"]*)"', client.get(f"{LIST}previews/{made.id}/").content.decode())
    assert link
    assert link[1].replace("&amp;", "&") == f"{LIST}?error=Timeout&fingerprint={'a' * 64}"
