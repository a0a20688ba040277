"""Two clusters watch one database: each transition of an alert is made by one of them, and told once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.acceptance.service import Service, service
from tests.acceptance.several_clusters import (
    RESIDENT,
    WORKERS,
    Tasks,
    needs_a_lock_wait_table,
    start_clusters,
    until_the_queue_is_empty,
    until_waiting,
)
from tests.support import signing
from tests.support.receiver import Receiver, Reply

pytestmark = [pytest.mark.acceptance, needs_a_lock_wait_table, pytest.mark.timeout(600)]

FREE = 2 * WORKERS - RESIDENT
"""Workers of both that have no loop: more than one cluster has."""
LOOKS = 100
"""Most of them come while it is nobody's turn."""
CONFIGURATION = """
[packs.generic.endpoint.open]
secrets = ["plain:a secret of the provider"]
[connections.sync]
url = "{url}"
secret = "env:FORWARD_SECRET"
[routes.forward]
pack = "generic"
on = ["*"]
kind = "thing.changed"
mode = "per_event"
flow = "http_forward"
connection = "sync"
"""


@pytest.fixture
def site(receiver: Receiver) -> Iterator[Service]:
    settings = {
        "FORWARD_SECRET": signing.STANDARD_SECRET,
        "HEADRACE_ALERT_URL": receiver.url("/alerts"),
        "HEADRACE_ALERT_SECRET": signing.STANDARD_SECRET,
        "HEADRACE_ALERT_DEAD_LETTERS": "1",
    }
    with service(**settings) as made:
        made.configure(CONFIGURATION.format(url=receiver.url("/sync")))
        yield made


def a_dead_letter(site: Service, receiver: Receiver) -> None:
    receiver.replies.put(Reply(400))
    path = site.folder / "delivery.json"
    path.write_text('{"id": 7, "type": "thing.changed"}', encoding="utf-8")
    site.manage("receive", "open", str(path))
    site.until(lambda: site.fetch("SELECT 1 FROM `_System_ConnectorWorkItem` WHERE State = 'dead'"), "the work item is dead")


def its_turn_again(site: Service) -> None:
    """The half minute since the last look is over."""
    site.fetch("UPDATE headrace_alert SET ChangedAt = ChangedAt - INTERVAL 1 MINUTE WHERE Name = 'watch'")


def all_come_to(site: Service, looks: Tasks, statement: str, name: str, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Returns once all workers that are free, of both clusters, have waited with this statement for the lock of this row, and gone on."""
    with closing(site.new_connection()) as stranger:
        stranger.begin()
        stranger.cursor().execute("SELECT * FROM headrace_alert WHERE Name = %s FOR UPDATE", [name])
        looks.put(LOOKS)
        until_waiting(site, statement, FREE, meanwhile)
        stranger.rollback()
    until_the_queue_is_empty(site)


def all_make_the_transition(site: Service, looks: Tasks, statement: str) -> None:
    """Each has looked, has seen the alert as it was, and wants to change it."""
    all_come_to(site, looks, statement, "dead_letters", lambda: its_turn_again(site))


def all_look(site: Service, looks: Tasks) -> None:
    """One of them has the turn. (The first time each makes the rows, unless they are there.)"""
    its_turn_again(site)
    all_come_to(site, looks, "%`headrace_alert`%", "watch")


def told(site: Service, receiver: Receiver) -> list[tuple[str, str]]:
    """(alert, event) of what has arrived, once nothing is left to be sent."""
    site.until(lambda: site.fetch("SELECT COUNT(*) FROM headrace_alert_message WHERE SentAt IS NULL") == [(0,)], "all is sent")
    arrived = [receiver.requests.get_nowait() for _ in range(receiver.requests.qsize())]
    bodies = [json.loads(one.body) for one in arrived if one.path == "/alerts"]
    return [(body["data"]["alert"], body["type"]) for body in bodies]


def test_a_transition_that_both_see_is_told_once(site: Service, receiver: Receiver) -> None:
    start_clusters(site, 2)
    site.fetch("UPDATE django_q_schedule SET next_run = UTC_TIMESTAMP() + INTERVAL 1 DAY")
    looks = Tasks(site, "ops_ui.watch.task")
    all_look(site, looks)
    a_dead_letter(site, receiver)

    all_make_the_transition(site, looks, "UPDATE `headrace_alert`%Raised = 1%")
    assert told(site, receiver) == [("dead_letters", "alert.raised")]

    site.fetch("UPDATE `_System_ConnectorWorkItem` SET TerminalAt = TerminalAt - INTERVAL 2 HOUR")
    all_look(site, looks)
    clear = "SELECT 1 FROM headrace_alert WHERE Name = 'dead_letters' AND ClearSince IS NOT NULL"
    assert site.fetch(clear) == [(1,)], "it is seen that the cause is gone"
    site.fetch("UPDATE headrace_alert SET ClearSince = ClearSince - INTERVAL 1 HOUR WHERE ClearSince IS NOT NULL")
    all_make_the_transition(site, looks, "UPDATE `headrace_alert`%Raised = 0%")
    assert told(site, receiver) == [("dead_letters", "alert.recovered")]

    all_look(site, looks)
    assert told(site, receiver) == []
    assert site.fetch("SELECT COUNT(*), SUM(Attempts) FROM headrace_alert_message") == [(2, 2)]
