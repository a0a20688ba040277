"""Pause: nothing of a namespace, pack or route runs, while deliveries are stored and admitted; it says so, and may end by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from connectors.configuration import pausing
from connectors.configuration.change import NotFound
from connectors.configuration.pausing import Kind, Paused, Resumed, pause, resume
from connectors.models import AuditEntry, Namespace, Pack, Receipt, Route
from projection.claiming.claim import claim
from projection.database import clock
from projection.inspection import backlog as backlogs
from projection.inspection.why import why
from projection.models import Event, WorkItem
from projection.refusals import Refused
from tests.support import factories
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.commands import run, say
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.server_work import server_work
from tests.support.workers_by_hand import ByHand, at

pytestmark = pytest.mark.usefixtures("sound_database")

NAMES: dict[Kind, str] = {"namespace": "default", "pack": "generic", "route": "contact"}
KINDS = sorted(NAMES)
HOUR = timedelta(hours=1)


def opened() -> Ingress:
    ingress = open_ingress()
    ingress.route(mode="per_event", on=("changed",))
    return ingress


def do_pause(kind: Kind, **more: object) -> Paused:
    done = pause(kind, "default", NAMES[kind], actor="ann", reason="key is changed", **more)
    assert isinstance(done, Paused)
    return done


def do_resume(kind: Kind) -> Resumed:
    done = resume(kind, "default", NAMES[kind], actor="ann", reason="done")
    assert isinstance(done, Resumed)
    return done


@pytest.mark.parametrize("kind", KINDS)
def test_deliveries_are_stored_and_admitted_while_nothing_runs(kind: Kind) -> None:
    ingress = opened()
    ingress.admit(change(1))
    done = do_pause(kind)
    ingress.admit(change(2), change(3))
    assert (Receipt.objects.filter(state="routed").count(), Event.objects.count()) == (2, 3)
    with recording():
        assert ByHand().claim() == []
        item = WorkItem.objects.order_by("id")[0]
        reason = why(item)
        assert reason.code == "paused"
        assert f"{kind.capitalize()} {NAMES[kind]} paused by ann since" in reason.sentence
        assert "key is changed" in reason.sentence
        assert (done.backlog.count, done.backlog.oldest, done.backlog.is_exact) == (1, item.created_date, True)
        assert do_resume(kind).backlog.count == 3
        assert len(ByHand().claim()) == 3
    assert set(WorkItem.objects.values_list("attempts", flat=True)) == {1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_pause_may_end_by_itself_by_the_databases_clock(kind: Kind) -> None:
    ingress = opened()
    ingress.admit(change(1))
    ends = clock.now() + HOUR
    assert do_pause(kind, resume_at=ends).resume_at == ends
    with recording():
        with at(ends - timedelta(seconds=3)):
            found = claim(10, owner="a", lease_seconds=60)
            assert (found.items, found.next_due) == ((), 3.0)
        with at(ends):
            assert len(ByHand().claim()) == 1
    refused = resume(kind, "default", NAMES[kind], actor="ann", reason="")
    assert not isinstance(refused, Refused)  # by our clock it still holds


@pytest.mark.parametrize("kind", KINDS)
def test_who_what_and_why_is_in_the_audit_trail(kind: Kind) -> None:
    opened()
    do_pause(kind, resume_at=clock.now() + HOUR)
    do_resume(kind)
    target = "default" if kind == "namespace" else f"default/{NAMES[kind]}"
    entries = list(AuditEntry.objects.filter(action__startswith=f"{kind}.").exclude(action__endswith="publish").order_by("id"))
    kept = [(entry.action, entry.actor, entry.target, entry.reason) for entry in entries if entry.action != "pack.install"]
    assert kept == [(f"{kind}.pause", "ann", target, "key is changed"), (f"{kind}.resume", "ann", target, "done")]


def test_what_runs_runs_to_its_end_and_others_are_not_touched() -> None:
    ingress = opened()
    ingress.route("other", mode="per_event", on=("other",))
    ingress.admit(change(1), change(2, kind="other"))
    with recording():
        do_pause("route")
        (other,) = ByHand().claim()
    assert other.claimed.route.key == "other"


def test_new_versions_and_incarnations_inherit_a_pause_and_old_ones_resume_with_them() -> None:
    ingress = opened()
    do_pause("route", resume_at=clock.now() + HOUR)
    do_pause("pack")
    upgraded = ingress.upgrade()
    upgraded.route(version=3, mode="per_event")
    for table in (Pack, Route):
        rows = table.objects.all()
        assert len(rows) >= 2
        assert {row.pause_reason for row in rows} == {"key is changed"}
    upgraded.admit(change(1))
    with recording():
        assert ByHand().claim() == []
        do_resume("pack")
        do_resume("route")
        assert len(ByHand().claim()) == 1


def test_pausing_again_changes_reason_and_end_but_not_since_when() -> None:
    opened()
    first = do_pause("route")
    again = pause("route", "default", "contact", actor="bob", reason="longer", resume_at=clock.now() + HOUR)
    assert isinstance(again, Paused)
    assert again.paused_at == first.paused_at
    row = Route.objects.get()
    assert (row.paused_by, row.pause_reason, row.resume_at) == ("bob", "longer", again.resume_at)


def test_refusals() -> None:
    opened()
    for done in (
        resume("route", "default", "contact", actor="ann", reason=""),
        pause("route", "default", "contact", actor="ann", reason="", resume_at=clock.now() - HOUR),
    ):
        assert isinstance(done, Refused)
    for kind, namespace, name in (
        ("route", "default", "nobody"),
        ("pack", "default", "x"),
        ("namespace", "elsewhere", "elsewhere"),
    ):
        with pytest.raises(NotFound):
            pause(kind, namespace, name, actor="ann", reason="")
    assert Namespace.objects.count() == 1


def test_a_large_backlog_is_counted_as_far_as_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlogs, "LOOKED_AT", 500)
    opened().admit(change(1))
    copy_rows(WorkItem.objects.get(), 3000, WorkId=hashed("many"), LaneKey=hashed("many"))
    with server_work() as work:
        found = do_pause("pack").backlog
    assert (found.count, found.is_exact) == (500, False)
    assert work.rows_read < 4 * 500
    WorkItem.objects.all().delete()
    Event.objects.all().delete()


def test_the_commands() -> None:
    ingress = opened()
    ingress.admit(change(1))
    code, answer = run("routes", "pause", "contact", "--until", "2h", "--reason", "vendor")
    assert (code, answer["paused"][0]["backlog"]["count"]) == (0, 1)
    assert run("routes", "list")[1]["routes"][0]["resume_at"] == answer["paused"][0]["resume_at"]
    assert run("routes", "resume", "contact")[0] == 0
    assert run("routes", "resume", "contact")[1]["refused"][0]["code"] == "not_paused"
    assert run("packs", "pause", "generic", "--until", "2099-01-01T00:00:00Z")[0] == 0
    assert run("packs", "resume", "generic")[0] == 0
    assert run("namespaces", "pause", "default", "--reason", "night")[0] == 0
    (row,) = run("namespaces", "list")[1]["namespaces"]
    assert (row["reason"], row["resume_at"]) == ("night", None)
    assert "waiting: 1, the oldest since" in say("namespaces", "resume", "default")[1]
    assert run("routes", "pause", "nobody")[0] == 1
    for wrong in ("soon", "2026-11-30T08:00:00", "-2h"):
        assert run("packs", "pause", "generic", f"--until={wrong}")[0] == 2
    assert run("packs", "pause", "generic", "--until", "2020-01-01T00:00:00Z")[1]["refused"][0]["code"] == "in_the_past"


def test_a_reason_that_is_no_text_is_kept_escaped() -> None:
    """A shell hands bytes that are no UTF-8 over as lone surrogates."""
    opened()
    assert isinstance(pause("namespace", "default", "default", actor="ann\udcff" * 50, reason="ra\udcffson\x00"), Paused)
    row = Namespace.objects.get(name="default")
    assert (row.paused_by, row.pause_reason) == (("ann\\udcff" * 50)[:150], "ra\\udcffson\\x00")


def test_a_pause_belongs_to_its_namespace() -> None:
    opened()
    other = open_ingress(in_namespace="other", slug="second")
    other.route(mode="per_event")
    do_pause("namespace")
    other.admit(change(1))
    with recording():
        assert len(ByHand().claim()) == 1
    assert factories.DEFAULT_NAMESPACE == "default"
    assert pausing.is_paused(Namespace.objects.get(name="default"), clock.now())


def test_what_a_page_shows_of_many_pauses_is_by_the_databases_clock_without_a_statement_each(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    now = clock.now()
    for ends, paused in ((now + timedelta(seconds=20), True), (now - timedelta(seconds=1), False), (None, True)):
        assert Namespace(name="n", paused_at=now, resume_at=ends).is_paused is paused
    with django_assert_num_queries(0):
        assert [Namespace(name="n", paused_at=now, resume_at=now + timedelta(hours=1)).is_paused for _ in range(9)] == [True] * 9
    monkeypatch.setattr(clock, "LATELY_SECONDS", 0.0)
    with django_assert_num_queries(1):
        assert clock.lately() >= now
