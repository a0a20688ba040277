"""Replay from the console: its right, its reason, its outcome as a message, its audit entry."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from connectors.models import AuditEntry
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.models import WorkItem
from tests.support import console_world
from tests.support.deliveries import change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("database")

REPLAY = "/admin/dead-letters/replay/"


def kill(contact: int = 7) -> WorkItem:
    """A dead generation of a contact, admitted and executed by the product."""
    with recording() as seen:
        seen.raises = [DeadLetter("no such account")]
        drain_claims()
    return generations(contact)[0]


def dead_letter(contact: int = 7) -> WorkItem:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(*changes(contact, 3))
    return kill(contact)


def post(client: Client, **form: Any) -> list[str]:
    """The messages that follow."""
    response = client.post(REPLAY, {"reason": "fixed", **form}, follow=True)
    assert response.redirect_chain == [("/admin/dead-letters/", 302)]
    return [str(message) for message in response.context["messages"]]


def test_an_operator_replays_a_dead_letter() -> None:
    dead = dead_letter()
    (message,) = post(console_world.client("operator"), work=[dead.work_id])
    replay = WorkItem.objects.get(replay_of_work_id=dead.work_id)
    assert message == f"Replayed as {replay.work_id}."
    entry = AuditEntry.objects.get(action="work.replay")
    assert (entry.actor, entry.target, entry.reason, entry.count) == ("operator", dead.work_id, "fixed", 1)
    with recording() as seen:
        drain_claims()
    assert len(seen.inputs) == 3
    assert states(7) == ["dead", "processed"]


def test_a_refusal_is_a_sentence_and_leaves_no_entry() -> None:
    dead = dead_letter()
    client = console_world.client("operator")
    post(client, work=[dead.work_id])
    (message,) = post(client, work=[dead.work_id])
    assert "already replayed as" in message
    (message,) = post(client, work=["nothing"])
    assert "there is no work item nothing" in message
    (message,) = post(client, work=["é"])
    assert "no work item" in message
    assert AuditEntry.objects.filter(action="work.replay").count() == 1
    assert WorkItem.objects.count() == 2


def test_a_dead_letter_behind_the_replay_of_another_of_its_source_is_refused() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    kill()
    ingress.admit(change(7))
    kill()
    first, second = generations(7)
    client = console_world.client("operator")
    assert post(client, work=[first.work_id])[0].startswith("Replayed as ")
    (message,) = post(client, work=[second.work_id])
    assert message.startswith(f"{second.work_id} was not replayed: ")
    assert AuditEntry.objects.filter(action="work.replay").count() == 1


INCOMPLETE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"work": []}, "select one dead letter"),
    ({"work": ["x"], "reason": " "}, "enter a reason"),
    ({"work": ["x", "y"]}, "select one dead letter"),
)


@pytest.mark.parametrize(("form", "said"), INCOMPLETE)
def test_an_incomplete_form_changes_nothing_and_says_why(form: dict[str, Any], said: str) -> None:
    (message,) = post(console_world.client("operator"), **form)
    assert said in message
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("group", ["viewer", None])
def test_without_the_right_nothing_happens(group: str | None) -> None:
    dead = dead_letter()
    client = console_world.client(group)
    assert client.post(REPLAY, {"work": [dead.work_id], "reason": "x"}).status_code == 403
    assert WorkItem.objects.count() == 1
    assert AuditEntry.objects.count() == 0


def test_a_stranger_is_sent_to_the_login() -> None:
    dead = dead_letter()
    response = Client().post(REPLAY, {"work": [dead.work_id], "reason": "x"})
    assert response.status_code == 302
    assert "/admin/login/" in response["Location"]
    assert WorkItem.objects.count() == 1


def test_a_post_without_token_is_refused() -> None:
    dead = dead_letter()
    client = console_world.client("operator", enforce_csrf_checks=True)
    response = client.post(REPLAY, {"work": [dead.work_id], "reason": "x"})
    assert response.status_code == 403
    assert b"security token" in response.content
    assert WorkItem.objects.count() == 1


def test_a_get_changes_nothing() -> None:
    dead = dead_letter()
    assert console_world.client("operator").get(REPLAY, {"work": dead.work_id, "reason": "x"}).status_code == 405
    assert WorkItem.objects.count() == 1


@pytest.mark.parametrize("group", ["viewer", "operator"])
def test_the_button_is_there_for_those_who_may(group: str) -> None:
    dead = dead_letter()
    client = console_world.client(group)
    for path, target in (("/admin/dead-letters/", "replay-preview/"), (f"/admin/dead-letters/{dead.work_id}/", "replay/")):
        assert (f"/admin/dead-letters/{target}".encode() in client.get(path).content) is (group == "operator"), path


@pytest.mark.parametrize("target", ["https://evil.example/admin/", "//evil.example/admin/", "/ingress/x", "javascript:alert(1)"])
def test_it_leads_back_to_our_own_pages_only(target: str) -> None:
    response = console_world.client("operator").post(REPLAY, {"work": [], "next": target})
    assert response["Location"] == "/admin/dead-letters/"


def test_it_leads_back_to_where_it_was_asked_for() -> None:
    response = console_world.client("operator").post(REPLAY, {"work": [], "next": "/admin/dead-letters/?route=x"})
    assert response["Location"] == "/admin/dead-letters/?route=x"
