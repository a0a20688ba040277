"""Erasure: nothing of a person is left in any table, what is left is a sound tombstone, and nothing brings the data back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from connectors.models import AuditEntry, Receipt, Record, UnverifiedDelivery
from connectors.operations import verbs
from connectors.operations.ingress_audit import audit_everything
from connectors.operations.retarget import replay_retargeted
from connectors.operations.trace import trace
from connectors.retention import erase
from connectors.retention.erase import Erased, erase_receipt, erase_source, examine
from connectors.retention.erased_bodies import Source
from connectors.retention.erased_sources import EVENTS_A_UNIT, find_source
from connectors.retention.prune import retain
from connectors.routing import router
from connectors.routing.sweep import sweep
from projection.database import clock
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.integrity.repair import repair
from projection.models import Event, WorkFailure, WorkItem
from projection.refusals import Refused
from projection.replay.decision import Replayed
from projection.replay.preview import preview_replays
from projection.replay.replay import replay
from tests.support import commands, console_world
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("sound_database")

SECRET = "ada@example.com"
"""Her id, and in every payload of hers."""


def hers(**more: Any) -> dict[str, Any]:
    return change(SECRET, name="Lovelace", **more)


def source(of: str = SECRET) -> Source:
    found = find_source(f"contact:{of}", "default")
    assert isinstance(found, Source), found
    return found


def erased(**more: Any) -> Erased:
    return erase_source(source(), actor="me", reason="she asked", **more)


def tables_that_say(text: str) -> list[str]:
    """Tables with the text in any column, the audit trail included."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            columns = [f"`{column.name}`" for column in connection.introspection.get_table_description(cursor, table)]
            likes = " OR ".join(f"CAST({column} AS CHAR CHARACTER SET utf8mb4) LIKE %s" for column in columns)
            cursor.execute(f"SELECT COUNT(*) FROM `{table}` WHERE {likes}", [f"%{text}%"] * len(columns))
            if cursor.fetchone()[0]:
                found.append(table)
    return found


def run(*, die: int = 0) -> None:
    with recording() as seen:
        seen.raises += [DeadLetter(f"no contact {SECRET}")] * die
        drain_claims()


@pytest.fixture
def ingress() -> Ingress:
    """A record, a projection and a per-event route, all fed with two deliveries of hers and one shared with contact 2."""
    made = open_ingress()
    made.route("table", flow="record_table")
    made.route("single", mode="per_event")
    made.admit(hers())
    made.admit(hers(), change(2))
    run()
    return made


def test_nothing_of_her_is_left_and_the_rest_is_sound(ingress: Ingress) -> None:
    ingress.send_body(json.dumps({"events": [hers(), {"type": "contact"}]}).encode())
    ingress.send(change(2))
    router.drain_receipts()
    run(die=1)
    dead = WorkItem.objects.get(state="dead")
    assert verbs.discard(dead.work_id, actor="me", reason="no such contact")
    before = {row.id: row for row in Event.objects.all()}
    plan = examine(source())
    done = erased()
    assert tables_that_say(SECRET) == tables_that_say("Lovelace") == []
    assert (done.events, done.receipts, done.records, done.lost_items, done.refused) == (6, 3, 1, 1, ())
    assert (plan.events, plan.receipts, plan.records) == (6, 3, 1)
    for row in Event.objects.exclude(erasure_id=None):
        old = before[row.id]
        for name in (
            "delivery_id",
            "delivery_key",
            "payload_sha256",
            "source_key",
            "projection_key",
            "enqueue_ordinal",
            "receipt_id",
        ):
            assert getattr(row, name) == getattr(old, name), name
        assert (row.payload, row.source_id) == ("", f"erased:{row.source_key}")
    others = Event.objects.filter(source_id="2", erasure_id=None)
    assert [json.loads(row.payload)["contact"] for row in others] == ["2"] * 4
    assert Receipt.objects.filter(erasure_id=None).count() == 1
    assert WorkFailure.objects.get().error == WorkItem.objects.get(state="dead").last_error == "erased"
    assert [row.source_id for row in Record.objects.all()] == ["2"]


def test_the_audit_trail_says_who_and_why_and_not_whom(ingress: Ingress) -> None:
    erased()
    (entry,) = AuditEntry.objects.filter(action="source.erase")
    assert (entry.actor, entry.reason, entry.count) == ("me", "she asked", 7)
    assert entry.target == Event.objects.exclude(erasure_id=None)[0].source_id
    assert set(Event.objects.values_list("erasure_id", flat=True)) == {entry.id, None}


def test_it_is_done_once_however_often_it_is_asked(ingress: Ingress) -> None:
    assert erased().total
    assert erased() == Erased()
    assert AuditEntry.objects.filter(action="source.erase").count() == 1


def test_work_that_still_needs_the_data_is_named(ingress: Ingress) -> None:
    ingress.admit(hers())
    live = set(WorkItem.objects.filter(terminal_at=None).values_list("work_id", "state"))
    done = erased()
    assert {(one.id, one.code) for one in done.refused} == {(work_id, "nonterminal") for work_id, _ in live}
    assert done.total == 0
    assert not AuditEntry.objects.exists()
    run()
    assert not erased().refused


def test_dead_letters_are_replayed_or_discarded_first(ingress: Ingress) -> None:
    ingress.admit(hers())
    run(die=1)
    dead = WorkItem.objects.get(state="dead")
    assert [(one.id, one.code) for one in erased().refused] == [(dead.work_id, "dead")]
    done = erased(discard=True)
    assert (done.refused, done.events) == ((), 6)
    dead.refresh_from_db()
    assert (dead.discarded_by, AuditEntry.objects.filter(action="work.discard").count()) == ("me", 1)


@pytest.mark.parametrize("mode", ["projection", "per_event"])
def test_a_replay_of_what_was_erased_is_refused(mode: str) -> None:
    ingress = open_ingress()
    ingress.route(mode=mode)
    ingress.admit(hers())
    run(die=1)
    dead = WorkItem.objects.get()
    assert isinstance(replay(dead.work_id, actor="me", reason="again"), Replayed)
    run(die=1)
    again = WorkItem.objects.exclude(id=dead.id).get()
    assert not erased(discard=True).refused
    assert WorkItem.objects.get(id=again.id).discarded_at is not None
    outcome = replay(dead.work_id, actor="me", reason="once more")
    assert isinstance(outcome, Refused)
    assert (outcome.code, preview_replays([dead.work_id])[0]) == ("erased", {dead.work_id: outcome})


def test_a_range_with_a_tombstone_in_it_is_not_replayed() -> None:
    """Two sources in one lane: the dead generation selects the one, and has the other among its inputs."""
    ingress = open_ingress()
    ingress.route()
    ingress.admit(hers(lane="shared"), change(2, lane="shared"))
    run(die=1)
    assert erased(discard=True).events == 1
    WorkItem.objects.update(discarded_at=None, discarded_by=None)
    outcome = replay(WorkItem.objects.get().work_id, actor="me", reason="again")
    assert isinstance(outcome, Refused)
    assert (outcome.code, WorkItem.objects.get().last_error, WorkItem.objects.get().source_lane) == ("erased", "erased", "shared")


def two_receipts(**route: Any) -> tuple[Ingress, WorkItem, list[int]]:
    """A dead generation of two inputs, each of a receipt of its own."""
    ingress = open_ingress()
    ingress.route(**route)
    ingress.send(hers())
    ingress.send(hers())
    router.drain_receipts()
    run(die=1)
    return ingress, WorkItem.objects.get(), list(Receipt.objects.order_by("id").values_list("id", flat=True))


def test_what_a_replay_under_another_route_still_needs_is_not_erased() -> None:
    """A retarget gives the replay another projection; its inputs are those of the first one all the same."""
    ingress, dead, receipts = two_receipts()
    ingress.route(version=2, masks=("$.note",))
    (again,) = replay_retargeted([dead.work_id], actor="me", reason="again")
    assert isinstance(again, Replayed)
    assert WorkItem.objects.get(work_id=again.replay_work_id).projection_key != dead.projection_key
    for receipt in receipts:
        refused = erase_receipt(receipt, actor="me", reason="asked").refused
        assert [(one.id, one.code) for one in refused] == [(again.replay_work_id, "nonterminal")]
    run(die=1)
    assert [one.code for one in erase_receipt(receipts[0], actor="me", reason="asked").refused] == ["dead"]
    verbs.discard(again.replay_work_id, actor="me", reason="asked")
    assert erase_receipt(receipts[0], actor="me", reason="asked").events == 1


@pytest.mark.parametrize("numbered", [True, False])
def test_a_replay_is_not_replayed_once_an_input_of_its_origin_is_erased(numbered: bool) -> None:
    """The replay's own event is still there, and its place in the order has no other input."""
    _, dead, receipts = two_receipts()
    if not numbered:
        Event.objects.filter(receipt_id=receipts[0]).update(enqueue_ordinal=0)
    again = replay(dead.work_id, actor="me", reason="again")
    assert isinstance(again, Replayed)
    run(die=1)
    verbs.discard(again.replay_work_id, actor="me", reason="asked")
    assert erase_receipt(receipts[0], actor="me", reason="asked").events == 1
    outcome = replay(dead.work_id, actor="me", reason="once more")
    assert isinstance(outcome, Refused)
    assert (outcome.code, preview_replays([dead.work_id])[0]) == ("erased", {dead.work_id: outcome})
    other = erase_receipt(receipts[1], actor="me", reason="asked")
    assert other.events == 2, "the fact and its replay"


def test_what_is_erased_of_one_generation_keeps_no_other_from_its_replay() -> None:
    """Rows from before ordinals beside numbered ones: what counts is which generation represents the tombstone."""
    ingress, dead, receipts = two_receipts()
    Event.objects.filter(receipt_id=receipts[0]).update(enqueue_ordinal=0)
    verbs.discard(dead.work_id, actor="me", reason="asked")
    assert [erase_receipt(one, actor="me", reason="asked").events for one in receipts] == [1, 1]
    ingress.admit(hers(), hers())
    run(die=1)
    later = WorkItem.objects.order_by("-id")[0]
    assert isinstance(replay(later.work_id, actor="me", reason="again"), Replayed)


def test_names_that_only_a_collation_takes_for_hers_are_not_hers() -> None:
    """More rows than one page holds of an id that differs in its trailing spaces, before and behind hers."""
    ingress = open_ingress()
    ingress.route(mode="per_event")
    near = [change(f"{SECRET} ", lane=f"lane-{n}") for n in range(EVENTS_A_UNIT + 20)]
    ingress.admit(*near)
    ingress.admit(hers())
    ingress.admit(*[{**one, "id": f"{one['id']} again"} for one in near], *near[:1])
    run()
    assert erased().events == 1
    assert Event.objects.filter(erasure_id=None).count() == 2 * len(near)


def test_a_delivery_that_comes_again_brings_nothing_back(ingress: Ingress) -> None:
    event = hers()
    ingress.admit(event)
    run()
    count = Event.objects.count()
    erased()
    report = ingress.admit(event)
    assert (report.duplicates, report.conflicts, report.events) == (2, 0, 0)
    ingress.admit({**event, "name": "A. Lovelace"}, change(2))
    assert Event.objects.count() == count + 2, "what is fresh in the same body is admitted"
    assert tables_that_say(SECRET) == tables_that_say("Lovelace") == []
    run()


def test_bodies_that_had_brought_it_again_are_found(ingress: Ingress) -> None:
    event = hers()
    ingress.admit(event)
    ingress.admit(event, change(3))
    ingress.admit(change(3), change(2, id=event["id"]))
    run()
    done = erased()
    assert done.receipts == 4
    assert tables_that_say(SECRET) == []
    assert Receipt.objects.filter(erasure_id=None).count() == 1


def test_what_comes_later_about_her_is_news(ingress: Ingress) -> None:
    erased()
    ingress.admit(hers())
    with recording() as seen:
        drain_claims()
    assert len(seen.inputs) == 1
    assert erased().events == 2
    assert tables_that_say(SECRET) == []


def test_an_unrouted_fact_is_erased_and_stays_unrouted() -> None:
    ingress = open_ingress()
    ingress.admit(hers())
    erased()
    ingress.route()
    assert sweep().copies == 0
    repair()
    assert not WorkItem.objects.exists()


def test_a_fact_and_its_routed_copy_under_a_folded_name_are_one_source() -> None:
    ingress = open_ingress()
    ingress.admit(change("ADA@example.com", lane="contact:ADA@example.com"))
    ingress.route(source_id_case="fold")
    assert sweep().copies == 1
    run()
    assert erased().events == 2
    assert tables_that_say(SECRET) == []


def test_a_task_that_is_missing_is_made_first(ingress: Ingress) -> None:
    item = WorkItem.objects.filter(projection_key=None).first()
    assert item is not None
    item.delete()
    assert [one.code for one in erased().refused] == ["missing_task"]
    repair()
    run()
    assert not erased().refused


def test_what_waits_to_be_routed_is_named(ingress: Ingress) -> None:
    waiting = ingress.send(hers()).receipt_id
    assert [(one.id, one.code) for one in erased().refused] == [(str(waiting), "pending_receipt")]
    ingress.send(change(5))
    Receipt.objects.filter(id=waiting).update(state="quarantined")
    assert [one.code for one in erased().refused] == ["quarantined_receipt"]
    assert erase_receipt(int(waiting or 0), actor="me", reason="she asked").receipts == 1
    assert Receipt.objects.get(id=waiting).state == "rejected"
    assert not erased().refused
    assert tables_that_say(SECRET) == []


def test_too_long_a_queue_is_routed_first(ingress: Ingress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase, "MOST_WAITING", 1)
    ingress.send(change(5))
    assert not erased().refused
    ingress.send(change(5))
    assert [one.code for one in erased().refused] == ["backlog"]


def test_deliveries_that_did_not_verify_go_too(ingress: Ingress) -> None:
    endpoint = Receipt.objects.values_list("endpoint_id", flat=True)[0]
    for event in (hers(), change(2)):
        body = json.dumps({"events": [event]}).encode()
        UnverifiedDelivery.objects.create(
            endpoint_id=endpoint, body=body, body_sha256="0" * 64, headers="{}", reason="wrong", received_at=clock.now()
        )
    assert erased().unverified == 1
    assert UnverifiedDelivery.objects.count() == 1
    assert tables_that_say(SECRET) == []


def test_a_receipt_is_erased_with_all_its_events_and_nothing_else(ingress: Ingress) -> None:
    second = Receipt.objects.order_by("-id")[0]
    plan = erase_receipt(second.id, actor="me", reason="", dry_run=True)
    done = erase_receipt(second.id, actor="me", reason="wrong address")
    assert (plan.events, plan.receipts) == (done.events, done.receipts) == (4, 1)
    assert Event.objects.filter(erasure_id=None).count() == 2
    assert AuditEntry.objects.get().target == f"receipt {second.id}"
    assert erase_receipt(second.id, actor="me", reason="again") == Erased()
    assert erase_receipt(10**9, actor="me", reason="x").refused[0].code == "not_found"


def test_tombstones_go_after_their_term_like_anything_else(ingress: Ingress) -> None:
    erased()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE `_System_ConnectorWorkItem` SET TerminalAt = TerminalAt - INTERVAL 200 DAY")
    assert retain(dry_run=True) == retain()
    assert not Event.objects.filter(projection_key=None).exists()


def test_names_with_colons_and_names_that_are_none(ingress: Ingress) -> None:
    ingress.admit(change("a:b", lane=None), {**change("b"), "type": "contact:a"})
    ambiguous = find_source("contact:a:b", "default")
    assert isinstance(ambiguous, Refused)
    assert ambiguous.code == "ambiguous"
    for text in ("contact:nobody", "contact", f"contact:{SECRET} ", f"Contact:{SECRET}"):
        missing = find_source(text, "default")
        assert isinstance(missing, Refused), text
    assert isinstance(find_source(f"contact:{SECRET}", "default", "github"), Refused)
    run()


def test_the_text_of_one_item_about_two_sources_is_reported(ingress: Ingress, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Event.objects.filter(source_id="2")[0], Event.objects.filter(source_id=SECRET)[0]
    Event.objects.filter(id=one.id).update(receipt_id=other.receipt_id, receipt_item=other.receipt_item)
    assert erased().shared_events == (one.id,)
    assert Event.objects.get(id=one.id).payload != ""


def test_the_command_says_what_it_would_do_does_it_and_needs_a_reason(ingress: Ingress) -> None:
    name = ("erase", "--source", f"contact:{SECRET}")
    code, answer = commands.run(*name, "--dry-run")
    assert (code, answer["events"], answer["receipts"], answer["refused"]) == (0, 4, 2, [])
    assert tables_that_say(SECRET)
    assert commands.run(*name)[0] == 2
    code, answer = commands.run(*name, "--reason", "she asked", "--yes")
    assert (code, answer["events"], answer["receipts"], answer["records"]) == (0, 4, 2, 1)
    code, answer = commands.run("erase", "--source", "contact:nobody", "--reason", "x", "--yes")
    assert (code, answer["refused"][0]["code"]) == (1, "not_found")


def test_an_erasure_of_nothing_says_so_in_one_sentence(ingress: Ingress) -> None:
    for what, sentence in (
        (("--source", "contact:nobody"), "refused: no stored event or record of default has the source contact:nobody"),
        (("--receipt", "999999999"), "refused: there is no receipt 999999999"),
    ):
        code, said = commands.say("erase", *what, "--reason", "x", "--yes")
        assert (code, said.strip()) == (1, sentence)


def test_the_audit_takes_tombstones_and_only_those(ingress: Ingress) -> None:
    erased()
    assert audit_everything().ok
    event = Event.objects.exclude(erasure_id=None)[0]
    whole = Event.objects.filter(erasure_id=None)[0]
    receipt = Receipt.objects.exclude(erasure_id=None)[0]
    harms: list[tuple[Any, dict[str, Any], set[str]]] = [
        (event, {"payload": "{}"}, {"tombstone"}),
        (event, {"erasure_id": 10**9}, {"event_erasure"}),
        (event, {"source_id": "back"}, {"tombstone"}),
        (whole, {"payload": ""}, {"payload_hash"}),
        (receipt, {"body": b"{}"}, {"receipt_tombstone"}),
        (receipt, {"erasure_id": 10**9}, {"receipt_tombstone"}),
    ]
    for row, harm, broken in harms:
        rows = type(row).objects.filter(id=row.id)
        before = {name: getattr(row, name) for name in harm}
        rows.update(**harm)
        assert {one.invariant for one in audit_everything().violations} == broken, harm
        rows.update(**before)


def test_trace_and_console_say_that_it_was_erased(ingress: Ingress) -> None:
    erased()
    event = Event.objects.exclude(erasure_id=None)[0]
    found = trace(event.delivery_id)
    assert {(one.erased, one.source_id) for one in found.events} == {(True, event.source_id)}
    client = console_world.client("viewer")
    for path in (f"/admin/events/{event.id}", f"/admin/receipts/{event.receipt_id}"):
        text = client.get(path, follow=True).content.decode()
        assert "Erased on" in text, path
        assert "she asked" in text, path
    for path in (f"/admin/events/{event.id}/payload", f"/admin/receipts/{event.receipt_id}/body"):
        assert client.get(path, follow=True).status_code == 404
