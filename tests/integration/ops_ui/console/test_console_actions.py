"""What operators do to one thing: retry now, cancel, discard, hold, release, re-route, pause, resume, try a destination."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from connectors.models import AuditEntry, Namespace, Pack, Receipt, Route
from projection.database.clock import now
from projection.limits import circuit_breaker
from projection.models import Destination, LaneHold, WorkItem
from projection.states import State
from tests.support import console_world, factories, rows

pytestmark = pytest.mark.usefixtures("database")

BECAUSE = "the ticket says so"


@pytest.fixture
def client(database: None) -> Client:
    return console_world.client("operator")


def act(client: Client, path: str, **form: Any) -> list[str]:
    """The messages of an action."""
    response = client.post(path, {"reason": BECAUSE, **form}, follow=True)
    assert response.status_code == 200
    assert response.redirect_chain
    return [str(message) for message in response.context["messages"]]


def entries() -> list[tuple[str, str, str, str]]:
    return list(AuditEntry.objects.order_by("id").values_list("action", "target", "actor", "reason"))


def item(state: str, route: Any = rows.PAGES, **columns: Any) -> WorkItem:
    return rows.work_row(rows.event_row(route), state, **columns)


class TestWork:
    def test_the_wait_of_a_retry_is_ended(self, client: Client) -> None:
        waiting = item(State.RETRY)
        (message,) = act(client, f"/admin/generations/{waiting.work_id}/retry-now/", next=f"/admin/generations/{waiting.work_id}/")
        assert message == "Retry is due now; the next free worker runs it."
        waiting.refresh_from_db()
        assert waiting.run_after <= now()
        assert entries() == [("work.retry_now", waiting.work_id, "operator", BECAUSE)]

    @pytest.mark.parametrize("state", [State.PENDING, State.BLOCKED, State.RETRY])
    def test_waiting_work_is_cancelled(self, client: Client, state: State) -> None:
        waiting = item(state)
        (message,) = act(client, f"/admin/generations/{waiting.work_id}/cancel/")
        assert message.startswith("Cancelled.")
        waiting.refresh_from_db()
        assert waiting.state == State.CANCELLED
        assert entries() == [("work.cancel", waiting.work_id, "operator", BECAUSE)]

    def test_a_dead_letter_is_discarded(self, client: Client) -> None:
        dead = item(State.DEAD)
        (message,) = act(client, "/admin/dead-letters/discard/", work=[dead.work_id])
        assert message.startswith("Discarded. Until its retention period ends, you can restore")
        dead.refresh_from_db()
        assert (dead.state, dead.discarded_by, dead.discard_reason) == (State.DEAD, "operator", BECAUSE)
        assert entries() == [("work.discard", dead.work_id, "operator", BECAUSE)]

    def test_discarded_dead_letters_are_restored(self, client: Client) -> None:
        gone = [rows.work_row(rows.event_row(rows.PAGES, source_id=str(n)), State.DEAD, discarded_at=now()) for n in range(2)]
        assert "Restore selected" in client.get("/admin/dead-letters/?show=discarded").content.decode()
        page = client.get(f"/admin/dead-letters/{gone[0].work_id}/").content.decode()
        assert "Restore" in page
        assert "Replay</button>" not in " ".join(page.split())
        (message,) = act(client, "/admin/dead-letters/restore/", work=[one.work_id for one in gone])
        assert message == "Restored 2 dead letters. You can replay them again."
        assert not WorkItem.objects.exclude(discarded_at=None).exists()
        assert sorted(entries()) == sorted(("work.restore", one.work_id, "operator", BECAUSE) for one in gone)
        (message,) = act(client, "/admin/dead-letters/restore/", work=[gone[0].work_id])
        assert message.endswith("was not restored: " + gone[0].work_id + " is not discarded.")
        (message,) = act(client, "/admin/dead-letters/restore/", work=[])
        assert message.startswith("Nothing was restored")

    def test_several_are_the_work_of_a_job(self, client: Client) -> None:
        one, two = (rows.work_row(rows.event_row(rows.PAGES, source_id=str(n)), State.DEAD) for n in range(2))
        (message,) = act(client, "/admin/dead-letters/discard/", work=[one.work_id, two.work_id])
        assert "select one dead letter" in message
        assert WorkItem.objects.exclude(discarded_at=None).count() == 0
        (message,) = act(client, "/admin/dead-letters/discard/", work=["nothing"])
        assert message == "nothing was not discarded: there is no work item nothing"

    def test_refusals_are_sentences_and_change_nothing(self, client: Client) -> None:
        running, done = item(State.PROCESSING), rows.work_row(rows.event_row(rows.PAGES, source_id="2"), State.PROCESSED)
        for work_id, verb, said in (
            (running.work_id, "cancel", "is running"),
            (done.work_id, "cancel", "has already ended as processed"),
            (done.work_id, "retry-now", "is not waiting to retry"),
            ("nothing", "cancel", "there is no work item nothing"),
            ("nothing", "retry-now", "is not waiting to retry"),
        ):
            (message,) = act(client, f"/admin/generations/{work_id}/{verb}/")
            assert message.startswith("Nothing was changed: ")
            assert said in message
        assert entries() == []
        assert set(WorkItem.objects.values_list("state", flat=True)) == {"processing", "processed"}

    @pytest.mark.parametrize("path", ["generations/{}/retry-now/", "generations/{}/cancel/"])
    def test_without_a_reason_nothing_happens(self, client: Client, path: str) -> None:
        waiting = item(State.RETRY)
        before = waiting.run_after
        (message,) = act(client, f"/admin/{path.format(waiting.work_id)}", reason=" ")
        assert "enter a reason" in message
        waiting.refresh_from_db()
        assert (waiting.state, waiting.run_after) == (State.RETRY, before)
        assert entries() == []

    def test_a_page_offers_what_its_state_allows(self, client: Client) -> None:
        facts = factories.route(factories.install(), "contact", mode="projection")

        def offered(state: str, browser: Client = client, **columns: Any) -> list[str]:
            source = f"{state} {len(columns)}"
            made = rows.work_row(rows.event_row(facts, source_id=source), state, **columns)
            content = browser.get(f"/admin/generations/{made.work_id}/").content.decode()
            WorkItem.objects.all().delete()
            return re.findall(r'<button type="submit"\s+formaction="[^"]*"[^>]*>\s*([^<]*?)\s*</button>', content)

        assert offered(State.DEAD) == ["Replay", "Discard"]
        assert offered(State.DEAD, discarded_at=now()) == ["Restore"]
        assert offered(State.RETRY) == ["Retry now", "Cancel"]
        assert offered(State.PENDING) == ["Cancel"]
        assert offered(State.BLOCKED) == ["Cancel"]
        assert offered(State.PROCESSING) == offered(State.PROCESSED) == offered(State.CANCELLED) == []
        viewer = console_world.client("viewer")
        assert offered(State.DEAD, viewer) == offered(State.RETRY, viewer) == []

    def test_a_replaced_route_offers_its_current_version(self, client: Client) -> None:
        pack = factories.install()
        facts = factories.route(pack, "contact", mode="projection")
        dead = rows.work_row(rows.event_row(facts), State.DEAD)
        path = f"/admin/dead-letters/{dead.work_id}/"
        assert 'name="retarget"' not in client.get(path).content.decode()
        second = factories.route(pack, "contact", mode="projection", version=2)
        assert 'name="retarget"' in client.get(path).content.decode()
        act(client, "/admin/dead-letters/replay/", work=[dead.work_id], retarget="1")
        assert WorkItem.objects.get(replay_of_work_id=dead.work_id).route_id == second.id


class TestLanes:
    def test_a_lane_is_held_and_released(self, client: Client) -> None:
        waiting = item(State.PENDING)
        path = f"/admin/lanes/{waiting.lane_key}/"
        assert act(client, f"{path}hold/") == ["Lane contact:42 held. Running work will finish."]
        hold = LaneHold.objects.get()
        assert (hold.held_by, hold.reason, hold.release_at, hold.lane) == ("operator", BECAUSE, None, "contact:42")
        assert act(client, f"{path}hold/") == ["Nothing was changed: lane contact:42 is already held."]
        assert act(client, f"{path}release/") == ["Lane contact:42 released."]
        assert act(client, f"{path}release/") == ["Nothing was changed: lane contact:42 is not held."]
        assert [entry[0] for entry in entries()] == ["lane.hold", "lane.release"]

    def test_a_hold_may_end_by_itself(self, client: Client) -> None:
        waiting = item(State.PENDING)
        act(client, f"/admin/lanes/{waiting.lane_key}/hold/", until="2h")
        ends = LaneHold.objects.get().release_at
        assert ends is not None
        assert timedelta(minutes=119) < ends - now() <= timedelta(hours=2)
        content = client.get(f"/admin/lanes/{waiting.lane_key}/").content.decode()
        assert "automatic" in content
        assert "/release/" in content

    @pytest.mark.parametrize(
        ("until", "said"),
        [("soon", "write a duration"), ("2020-01-01T00:00Z", "is in the past"), ("2030-01-01", "the time zone is missing")],
    )
    def test_an_end_that_is_none_holds_nothing(self, client: Client, until: str, said: str) -> None:
        waiting = item(State.PENDING)
        (message,) = act(client, f"/admin/lanes/{waiting.lane_key}/hold/", until=until)
        assert message.startswith(("The lane was not held: ", "Nothing was changed: "))
        assert said in message
        assert not LaneHold.objects.exists()

    def test_an_unknown_lane_is_not_found(self, client: Client) -> None:
        for key in ("x", "a" * 64, "contact:42"):
            for verb in ("hold", "release"):
                assert client.post(f"/admin/lanes/{key}/{verb}/", {"reason": "r"}).status_code == 404
        assert not LaneHold.objects.exists()


class TestReceipts:
    def test_a_quarantined_receipt_is_re_routed(self, client: Client) -> None:
        receipt = factories.receipt(factories.install(), "{}", state="quarantined", attempts=9)
        path = f"/admin/receipts/{receipt.id}/"
        assert "reroute/" in client.get(path).content.decode()
        assert "reroute/" not in console_world.client("viewer").get(path).content.decode()
        assert act(client, f"{path}reroute/") == ["The receipt is queued for the router again."]
        receipt.refresh_from_db()
        assert (receipt.state, receipt.attempts) == ("pending", 0)
        assert entries() == [("receipt.reroute", str(receipt.id), "operator", BECAUSE)]
        assert act(client, f"{path}reroute/") == [f"Nothing was changed: receipt {receipt.id} is not quarantined."]
        assert "reroute/" not in client.get(path).content.decode()

    def test_an_unknown_receipt_is_not_found(self, client: Client) -> None:
        assert client.post("/admin/receipts/999999/reroute/", {"reason": "r"}).status_code == 404

    def test_it_needs_a_reason(self, client: Client) -> None:
        receipt = factories.receipt(factories.install(), "{}", state="quarantined")
        assert "enter a reason" in act(client, f"/admin/receipts/{receipt.id}/reroute/", reason="")[0]
        assert Receipt.objects.get().state == "quarantined"


class TestPauses:
    def test_each_kind_is_paused_and_resumed(self, client: Client) -> None:
        pack = factories.install()
        factories.route(pack, "contact")
        for kind, name, row in (
            ("namespace", "default", Namespace.objects.get),
            ("pack", "default/generic", Pack.objects.get),
            ("route", "default/contact", Route.objects.get),
        ):
            (message,) = act(client, f"/admin/pauses/{kind}/pause/", name=name, until="2h")
            assert message == f"Paused {kind} {name.rpartition('/')[2]}. No work is waiting."
            assert (row().is_paused, row().paused_by, row().pause_reason) == (True, "operator", BECAUSE)
            page = client.get("/admin/pauses/")
            (stopped,) = page.context["stopped"]
            assert (stopped.kind, stopped.reason, stopped.may_resume) == (kind, BECAUSE, True)
            (message,) = act(client, f"/admin/pauses/{kind}/resume/", name=name)
            assert message.startswith("Resumed ")
            assert not row().is_paused
        actions = [entry[0] for entry in entries()]
        assert actions == [f"{kind}.{verb}" for kind in ("namespace", "pack", "route") for verb in ("pause", "resume")]

    def test_the_work_that_waits_is_counted(self, client: Client) -> None:
        facts = factories.route(factories.install(), "contact")
        item(State.PENDING, facts)
        (message,) = act(client, "/admin/pauses/route/pause/", name="default/contact")
        assert message == "Paused route contact. Waiting work: 1."

    def test_refusals_are_sentences(self, client: Client) -> None:
        factories.install()
        for path, form, said in (
            ("pack/resume", {"name": "default/generic"}, "the pack generic is not paused"),
            ("pack/pause", {"name": "default/nothing"}, "there is no pack 'nothing'"),
            ("route/pause", {"name": "nowhere/contact"}, "there is no namespace 'nowhere'"),
            ("route/resume", {"name": ""}, "there is no namespace ''"),
            ("namespace/pause", {"name": "é"}, "there is no namespace"),
            ("pack/pause", {"name": "default/generic", "until": "2020-01-01T00:00Z"}, "is in the past"),
            ("pack/pause", {"name": "default/generic", "until": "x"}, "write a duration"),
            ("pack/pause", {"name": "default/generic", "reason": ""}, "enter a reason"),
            ("pack/resume", {"name": "default/generic", "reason": ""}, "enter a reason"),
        ):
            (message,) = act(client, f"/admin/pauses/{path}/", **form)
            assert said in message
        assert entries() == []

    def test_the_page_lists_each_name_once_and_no_pause_that_is_over(self, client: Client) -> None:
        pack = factories.install()
        for version in (1, 2):
            factories.route(pack, "contact", version=version)
        Route.objects.update(paused_at=now(), paused_by="ada")
        Pack.objects.update(paused_at=now(), resume_at=now() - timedelta(seconds=1))
        (stopped,) = client.get("/admin/pauses/").context["stopped"]
        assert (stopped.kind, stopped.namespace, stopped.name) == ("route", "default", "contact")
        assert stopped.row_id == Route.objects.get(version=2).id

    def test_forms_are_for_those_who_may(self, client: Client) -> None:
        factories.route(factories.install(), "contact")
        assert [kind for kind, _ in client.get("/admin/pauses/").context["forms"]] == ["namespace", "pack", "route"]
        viewer = console_world.client("viewer")
        assert viewer.get("/admin/pauses/").context["forms"] == []


class TestDestinations:
    def destination(self, name: str, state: str = circuit_breaker.OPEN, minutes: float = 5) -> Destination:
        return Destination.objects.create(
            name_key=circuit_breaker.key_of(name),
            name=name,
            state=state,
            failures=5,
            openings=1,
            parked_at=now(),
            parked_until=now() + timedelta(minutes=minutes),
            last_error="HTTP 503",
        )

    def test_a_parked_destination_is_tried(self, client: Client) -> None:
        row = self.destination("crm")
        assert "Try now" in client.get("/admin/destinations/").content.decode()
        assert act(client, "/admin/destinations/retry/", name="crm") == ["The next item tries destination crm now."]
        row.refresh_from_db()
        assert row.parked_until is not None
        assert row.parked_until <= now()
        assert entries() == [("destination.retry", "crm", "operator", BECAUSE)]
        for name in ("crm", "nothing", "é"):
            assert act(client, "/admin/destinations/retry/", name=name) == [
                f"Nothing was changed: destination {name} is not parked."
            ]

    def test_parked_ones_come_first_and_well_ones_apart(self, client: Client) -> None:
        self.destination("a", circuit_breaker.FAILING, -5)
        self.destination("b")
        self.destination("c", circuit_breaker.CLOSED, -5)
        context = client.get("/admin/destinations/").context
        assert [(line.row.name, line.word) for line in context["troubled"]] == [("b", "parked (circuit open)"), ("a", "failing")]
        assert [line.row.name for line in context["well"]] == ["c"]
        assert "destinations/retry/" not in console_world.client("viewer").get("/admin/destinations/").content.decode()
