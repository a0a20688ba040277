"""Configuration changed by two at once: the namespace's lock puts them one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import Queue

from django.db import connection, transaction

from connectors.configuration import packs, routes
from connectors.configuration.apply import apply
from connectors.configuration.change import lock_namespace
from connectors.configuration.file import parse
from connectors.configuration.packs import InstallationRefused
from connectors.configuration.routes import RouteDraft
from connectors.models import Namespace, Pack, Route
from projection.facts import PER_EVENT
from tests.support.lock_waits import await_lock_wait, own_connection_id

DRAFT = RouteDraft("things", "generic", ("*",), "thing.changed", PER_EVENT, "log")


def at_once(*changes: Callable[[], object]) -> list[object]:
    """Run the changes in threads of their own, started together; results and exceptions in order."""
    start = threading.Barrier(len(changes))

    def run(change: Callable[[], object]) -> object:
        start.wait(timeout=30)
        try:
            return change()
        except Exception as error:  # noqa: BLE001  # the outcome under test
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(changes)) as pool:
        return list(pool.map(run, changes))


def test_two_publishers_of_different_content_make_two_versions_and_one_is_current(database):
    packs.install("default", "generic", actor="test")
    drafts = [replace(DRAFT, event_kind=f"thing.{n}") for n in range(6)]
    done = at_once(*(lambda draft=draft: routes.publish("default", draft, actor="test") for draft in drafts))
    assert sorted(published.route_facts.version for published in done) == [1, 2, 3, 4, 5, 6]
    (current,) = Route.objects.filter(is_current=True)
    assert current.version == 6


def test_two_publishers_of_the_same_content_make_one_version(database):
    packs.install("default", "generic", actor="test")
    done = at_once(*(lambda: routes.publish("default", DRAFT, actor="test") for _ in range(4)))
    assert sorted(published.created for published in done) == [False, False, False, True]
    assert Route.objects.count() == 1


def test_two_first_installs_of_a_namespace_make_one_pack(database):
    done = at_once(*(lambda: packs.install("default", "generic", actor="test") for _ in range(4)))
    assert sum(isinstance(outcome, InstallationRefused) for outcome in done) == 3
    assert (Pack.objects.count(), Namespace.objects.count()) == (1, 1)


def test_two_who_apply_the_same_file_make_it_once(database):
    text = """
        [packs.generic.endpoint.in]
        secrets = ["plain:a plain secret"]
        [routes.things]
        pack = "generic"
        on = ["*"]
        kind = "thing.changed"
        mode = "per_event"
        flow = "log"
    """
    reports = at_once(*(lambda: apply(parse(text), actor="test") for _ in range(3)))
    assert sorted(len(report.of("created")) for report in reports) == [0, 0, 3]


def test_a_publish_waits_for_an_admission_that_holds_the_namespace(database):
    packs.install("default", "generic", actor="test")
    held, released = threading.Event(), threading.Event()
    publisher_id: Queue[int] = Queue()

    def admission() -> None:
        with transaction.atomic():
            lock_namespace("default")
            held.set()
            released.wait(timeout=30)
        connection.close()

    def publication() -> routes.Published:
        try:
            publisher_id.put(own_connection_id())
            return routes.publish("default", DRAFT, actor="test")
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        holder = pool.submit(admission)
        assert held.wait(timeout=30)
        publisher = pool.submit(publication)
        try:
            await_lock_wait(publisher_id.get(timeout=30))
            assert Route.objects.count() == 0
        finally:
            released.set()
        assert publisher.result(timeout=30).created
        holder.result(timeout=30)
