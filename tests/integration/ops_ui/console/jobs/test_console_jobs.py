"""Replays: the list of bulk jobs, one job with its results, and what operators do to it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from connectors.models import AuditEntry
from connectors.operations import bulk_jobs
from ops_ui.console.jobs import reads as job_reads
from ops_ui.console.jobs.progress import progress, standing
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobKind, JobState
from projection.database.clock import now
from projection.execution.worker import drain_claims
from projection.job_models import Job, JobItem
from projection.models import WorkItem
from projection.states import State
from tests.support import console_world, rows
from tests.support.flows_of_tests import recording
from tests.support.jobs_by_hand import dead_letters, fixed, run, start

pytestmark = pytest.mark.usefixtures("database")

PATH = "/admin/replays/"


@pytest.fixture
def client(database: None) -> Client:
    return console_world.client("operator")


def dead(source: str = "1") -> WorkItem:
    return rows.work_row(rows.event_row(rows.PAGES, source_id=source), State.DEAD, last_error="x")


def many_items(job: Job, count: int) -> None:
    """Items of all states, several in each place."""
    states = [state.value for state in ItemState]
    JobItem.objects.bulk_create(
        JobItem(
            job_id=job.id,
            place=number // 3,
            work_item_id=1000 + number,
            work_id=f"evt:{number:064}",
            namespace="default",
            state=states[number % 5],
        )
        for number in range(count)
    )


def empty_job(**columns: Any) -> Job:
    values = {"kind": "replay", "filter": "{}", "reason": "r", "actor": "ann", "rate": 0, "state": "running"}
    return Job.objects.create(**{**values, "created_date": now(), "fixed_at": now(), "next_step_at": now(), **columns})


class TestList:
    def test_jobs_are_listed_newest_first_with_their_progress(self, client: Client) -> None:
        with recording() as seen:
            dead_letters(seen, 1, 2)
            first = run(start())
            second = start(JobKind.DISCARD, reason="of no use")
        lines = client.get(PATH).context["lines"]
        assert [line.job.id for line in lines] == [second.id, first.id]
        assert lines[1].progress.sentence == "2 of 2: 2 replayed"
        content = client.get(PATH).content.decode()
        assert "all open dead letters" in content
        assert "of no use" in content

    def test_every_job_is_on_one_page(self, client: Client) -> None:
        made = [empty_job().id for _ in range(120)]
        seen: list[int] = []
        at = ""
        while True:
            found = client.get(PATH, {"at": at}).context["found"]
            seen += [job.id for job in found.rows]
            if found.next is None:
                break
            at = str(found.next)
        assert seen == made[::-1]
        assert found.previous is not None

    def test_the_refresh_is_the_rows_alone(self, client: Client) -> None:
        empty_job()
        part = client.get(PATH, headers={"HX-Request": "true"})
        assert b"<html" not in part.content
        assert b"badge-running" in part.content
        assert "HX-Request" in part.headers["Vary"]

    def test_a_filter_of_a_newer_process_is_no_error(self, client: Client) -> None:
        job = empty_job(filter='{"planet": "mars"}')
        assert client.get(PATH).status_code == 200
        assert client.get(f"{PATH}{job.id}/").status_code == 200


class TestJob:
    def test_results_lead_to_the_dead_letter_and_to_its_replay_as_it_stands(self, client: Client) -> None:
        with recording() as seen:
            dead_letters(seen, 1)
            job = run(start())
            replay = WorkItem.objects.exclude(replay_of_work_id=None).get()
            content = client.get(f"{PATH}{job.id}/").content.decode()
            assert "badge-pending" in content
            drain_claims()
        content = client.get(f"{PATH}{job.id}/").content.decode()
        assert f"/admin/dead-letters/{replay.replay_of_work_id}/" in content
        assert f"/admin/generations/{replay.work_id}/" in content
        assert "badge-processed" in content

    def test_every_result_is_on_one_page_in_lane_order(self, client: Client) -> None:
        job = empty_job(total=137)
        many_items(job, 137)
        for outcome in ("", *(state.value for state in ItemState)):
            seen: list[tuple[int, int]] = []
            place = ""
            while True:
                context = client.get(f"{PATH}{job.id}/", {"outcome": outcome, "from": place}).context
                seen += [(one.item.place, one.item.work_item_id) for one, _ in context["items"]]
                if context["next"] is None:
                    break
                place = context["next"]
            expected = JobItem.objects.filter(job_id=job.id, **({"state": outcome} if outcome else {}))
            assert seen == sorted(expected.values_list("place", "work_item_id")), outcome

    @pytest.mark.parametrize(
        "query", [{"outcome": "x"}, {"from": "x"}, {"from": "1-"}, {"from": "9" * 30 + "-1"}, {"outcome": "é", "from": "²-1"}]
    )
    def test_damaged_parameters_give_the_first_page(self, client: Client, query: dict[str, str]) -> None:
        job = empty_job(total=2)
        many_items(job, 2)
        context: Any = client.get(f"{PATH}{job.id}/", query).context
        assert (len(context["items"]), context["at_start"]) == (2, True)

    def test_a_page_reads_as_many_times_whatever_the_job_holds(self, client: Client) -> None:
        counted = []
        for count in (3, 150):
            job = empty_job(total=count)
            many_items(job, count)
            with CaptureQueriesContext(connection) as queries:
                client.get(f"{PATH}{job.id}/")
            counted.append(len(queries))
        assert counted[0] == counted[1]
        assert counted[0] <= 16

    def test_tabs_have_the_counts_of_the_job(self, client: Client) -> None:
        job = empty_job(total=9, done=3, refused=2, deferred=1, skipped=0)
        assert client.get(f"{PATH}{job.id}/").context["tabs"] == [
            ("", "all", 9, True),
            ("waiting", "waiting", 3, False),
            ("done", "done", 3, False),
            ("refused", "refused", 2, False),
            ("deferred", "deferred", 1, False),
        ]
        assert ("skipped", "skipped", 0, True) in client.get(f"{PATH}{job.id}/", {"outcome": "skipped"}).context["tabs"]

    def test_what_is_not_kept_any_more_is_said(self, client: Client) -> None:
        job = empty_job(total=1, done=1)
        JobItem.objects.create(
            job_id=job.id, place=1, work_item_id=9, work_id="evt:gone", namespace="default", state="done", replay_work_id="csp:gone"
        )
        content = client.get(f"{PATH}{job.id}/").content.decode()
        assert "no longer retained" in content
        assert "/dead-letters/evt:gone/" not in content

    def test_an_unknown_job_is_not_found(self, client: Client) -> None:
        for path in ("999999/", f"{'9' * 18}/", f"{'9' * 25}/"):
            assert client.get(f"{PATH}{path}").status_code == 404, path

    def test_the_live_part_ends_with_the_job(self, client: Client) -> None:
        job = start()
        live = {"HX-Request": "true"}
        part = client.get(f"{PATH}{job.id}/", {"was": "running"}, headers=live)
        assert (part.status_code, part.headers.get("HX-Refresh")) == (200, None)
        assert b"<html" not in part.content
        fixed(job)
        part = client.get(f"{PATH}{job.id}/", {"was": "running"}, headers=live)
        assert (part.status_code, part.headers["HX-Refresh"]) == (286, "true")
        assert "data-live hx-get" not in client.get(f"{PATH}{job.id}/").content.decode()

    def test_the_page_goes_on_until_the_replays_have_ended_and_says_how(self, client: Client) -> None:
        job = Job.objects.get(id=empty_job(state="finished", finished_at=now(), total=3, done=3).id)
        originals = [dead(str(number)) for number in range(3)]
        replays = [rows.replay_row(one, state) for one, state in zip(originals, ("processed", "dead", "pending"), strict=True)]
        for place, (one, made) in enumerate(zip(originals, replays, strict=True)):
            JobItem.objects.create(
                job_id=job.id,
                place=place,
                work_item_id=one.id,
                work_id=one.work_id,
                namespace="default",
                state="done",
                replay_work_id=made.work_id,
            )
        path, live = f"{PATH}{job.id}/", {"HX-Request": "true"}
        page = client.get(path).content.decode()
        assert "Of 3 replays: 1 processed, 1 waiting or running, 1 failed again." in page
        assert "Show dead letters" in page
        assert "data-live hx-get" in page
        part = client.get(path, {"was": "finished"}, headers=live)
        assert (part.status_code, part.headers.get("HX-Refresh")) == (200, None)
        WorkItem.objects.filter(id=replays[2].id).delete()
        part = client.get(path, {"was": "finished"}, headers=live)
        assert (part.status_code, part.headers["HX-Refresh"]) == (286, "true")
        page = client.get(path).content.decode()
        assert "Of 3 replays: 1 processed, 1 failed again, 1 no longer retained." in page
        assert "data-live hx-get" not in page

    def test_the_count_of_replays_is_bounded(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        job = empty_job(total=3, done=3)
        for place in range(3):
            made = rows.replay_row(dead(str(place)), "processed")
            JobItem.objects.create(
                job_id=job.id,
                place=place,
                work_item_id=place,
                work_id=f"evt:{place}",
                namespace="default",
                state="done",
                replay_work_id=made.work_id,
            )
        monkeypatch.setattr(job_reads, "REPLAYS_COUNTED", 2)
        monkeypatch.setattr(job_reads, "IDS_AT_ONCE", 1)
        assert job_reads.became(job.id).sentence == "Of the first 2 replays: 2 processed."
        assert job_reads.became(empty_job().id).sentence == ""

    def test_where_it_stands_is_a_sentence(self) -> None:
        job = start(rate=200)
        assert "No router is online" in standing(job, 0)
        assert "Collecting" in standing(job, 1)
        console_world.worker("router")
        dead()
        dead("2")
        job = fixed(start(rate=1))
        assert standing(job, 1) == "Running, at most 1 per second, at least 2 s left."
        assert standing(fixed(start(rate=0)), 1) == "Running, without a rate limit."
        assert "Paused" in standing(_as_job(bulk_jobs.pause(job.id, actor="a", reason="")), 1)
        assert "marked as skipped" in standing(_as_job(bulk_jobs.cancel(job.id, actor="a", reason="")), 1)
        assert standing(run(job), 1) == "Cancelled."

    def test_progress_is_told_in_words_and_shares(self) -> None:
        job = empty_job(kind="discard", total=8, done=4, refused=1, skipped=1, deferred=1)
        told = progress(job)
        assert (
            told.sentence == "6 of 8: 4 discarded, 1 refused, 1 skipped, 1 waiting for an earlier one of the same record, 1 waiting"
        )
        assert [(share.name, share.x, share.width) for share in told.shares] == [
            ("done", 0.0, 50.0),
            ("refused", 50.0, 12.5),
            ("skipped", 62.5, 12.5),
            ("deferred", 75.0, 12.5),
        ]
        assert (told.percent, told.waiting) == (75, 1)
        assert progress(empty_job()).sentence == "0 of 0: none yet"


def _as_job(answer: Any) -> jobs.JobRow:
    assert isinstance(answer, jobs.JobRow)
    return answer


class TestVerbs:
    def post(self, client: Client, job_id: int, verb: str, **form: str) -> list[str]:
        response = client.post(f"{PATH}{job_id}/{verb}/", form, follow=True)
        assert response.redirect_chain == [(f"{PATH}{job_id}/", 302)]
        return [str(message) for message in response.context["messages"]]

    def test_each_changes_the_job_and_leaves_an_entry(self, client: Client) -> None:
        dead()
        job = start()
        for verb, form, state, said in (
            ("pause", {"reason": "look first"}, JobState.PAUSED, "Job paused."),
            ("throttle", {"rate": "7"}, JobState.PAUSED, "The new rate"),
            ("resume", {}, JobState.RUNNING, "Job resumed."),
            ("cancel", {"reason": "wrong filter"}, JobState.CANCELLED, "Job cancelled"),
        ):
            assert said in self.post(client, job.id, verb, **form)[0]
            found = jobs.find(job.id)
            assert found is not None
            assert found.state is state
        assert found.rate == 7
        entries = list(AuditEntry.objects.exclude(action="job.start").order_by("id").values_list("action", "actor", "reason"))
        assert entries == [
            ("job.pause", "operator", "look first"),
            ("job.throttle", "operator", ""),
            ("job.resume", "operator", ""),
            ("job.cancel", "operator", "wrong filter"),
        ]

    def test_a_refusal_is_a_sentence_and_leaves_no_entry(self, client: Client) -> None:
        job = run(start())
        for verb in ("pause", "resume", "cancel"):
            assert self.post(client, job.id, verb, reason="r") == [f"Nothing was changed: job {job.id} is finished."]
        assert self.post(client, job.id, "throttle", rate="5") == [f"Nothing was changed: job {job.id} is finished."]
        assert set(AuditEntry.objects.values_list("action", flat=True)) <= {"job.start", "job.end"}

    def test_a_cancel_needs_a_reason(self, client: Client) -> None:
        job = start()
        assert "enter a reason" in self.post(client, job.id, "cancel")[0]
        assert fixed(job).state is JobState.FINISHED

    @pytest.mark.parametrize("rate", ["", "-1", "x", "²", "1e3", "100001"])
    def test_a_rate_is_a_number(self, client: Client, rate: str) -> None:
        job = start(rate=9)
        assert "whole number" in self.post(client, job.id, "throttle", rate=rate)[0]
        found = jobs.find(job.id)
        assert found is not None
        assert found.rate == 9

    def test_an_unknown_job_is_not_found(self, client: Client) -> None:
        for verb in ("pause", "resume", "cancel", "throttle"):
            assert client.post(f"{PATH}999999/{verb}/", {"reason": "r", "rate": "1"}).status_code == 404

    def test_buttons_are_those_that_make_sense_and_are_allowed(self, client: Client) -> None:
        job = start()

        def buttons(browser: Client) -> set[str]:
            content = browser.get(f"{PATH}{job.id}/").content.decode()
            return {verb for verb in ("pause", "resume", "cancel", "throttle") if f"{PATH}{job.id}/{verb}/" in content}

        assert buttons(client) == {"pause", "cancel", "throttle"}
        assert buttons(console_world.client("viewer")) == set()
        bulk_jobs.pause(job.id, actor="a", reason="")
        assert buttons(client) == {"resume", "cancel", "throttle"}
        bulk_jobs.cancel(job.id, actor="a", reason="")
        assert buttons(client) == set()


def test_places_are_read_back() -> None:
    assert job_reads.parse("12-34") == (12, 34)
    assert job_reads.parse("") == job_reads.START
