"""The payloads of a generation's inputs, and its comparison with another generation of the same source."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from ops_ui.console.generations import comparison_reads
from projection.facts import RouteFacts
from projection.models import Event, WorkItem
from projection.states import State
from tests.integration.ops_ui.console.test_console_pages import Markup
from tests.support import console_world, factories, rows

pytestmark = pytest.mark.usefixtures("database")

OLD = '{"id":1,"mail":"ada@example.com","n":1.0,"stage":"lead"}'
NEW = '{"id":1,"mail":"eve@example.com","n":1.00,"stage":"customer"}'


@pytest.fixture
def facts(database: None) -> RouteFacts:
    return factories.route(factories.install(), "contact", mode="projection", masks=("$.mail",))


def generation(facts: RouteFacts, *payloads: str, state: str = State.PROCESSED, source: str = "42") -> WorkItem:
    events = [rows.event_row(facts, payload=payload, source_id=source) for payload in payloads]
    return rows.work_row(events[-1], state)


def compare(client: Client, item: WorkItem, **parameters: str) -> Markup:
    response = client.get(f"/admin/generations/{item.work_id}/compare/", parameters)
    assert response.status_code == 200
    for secret in (b"ada@", b"eve@", b"example.com"):
        assert secret not in response.content
    return Markup(response.content.decode())


def classes(found: Markup) -> list[str]:
    return [
        str(attributes.get("class"))
        for tag, attributes in found.elements
        if tag == "div" and "line-" in str(attributes.get("class"))
    ]


def test_the_last_inputs_are_compared_with_the_generation_before(facts: RouteFacts) -> None:
    first, second = generation(facts, OLD), generation(facts, OLD, NEW)
    found = compare(console_world.client("viewer"), second)
    text = " ".join(found.text.split())
    assert "2 lines removed, 2 added" in text
    assert '"n":1.0' in text
    assert '"n":1.00' in text
    assert '"stage":"customer"' in text
    assert "fields masked by the route" in text
    assert sorted(classes(found)) == sorted(["line line-same"] * 4 + ["line line-gone"] * 2 + ["line line-new"] * 2)
    again = compare(console_world.client("operator"), first, **{"with": second.work_id})
    assert '"stage":"lead"' in again.text


def test_values_that_differ_only_under_a_mask_are_no_difference(facts: RouteFacts) -> None:
    generation(facts, OLD)
    item = generation(facts, OLD.replace("ada@", "eve@"))
    assert "No difference" in compare(console_world.client("viewer"), item).text


def test_the_first_input_and_all_of_them_can_be_compared(facts: RouteFacts) -> None:
    generation(facts, OLD)
    item = generation(facts, OLD, NEW, NEW)
    client = console_world.client("viewer")
    assert "No difference" in compare(client, item, inputs="first").text
    found = compare(client, item, inputs="all")
    assert len([one for one in classes(found) if one == "line line-new"]) == 14


def test_more_inputs_than_are_compared_are_counted(facts: RouteFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison_reads, "INPUTS", 2)
    generation(facts, OLD)
    item = generation(facts, OLD, NEW, NEW)
    assert "0 of the first, 1 of the second" in " ".join(compare(console_world.client("viewer"), item, inputs="all").text.split())


def test_a_long_payload_is_named_and_not_read(facts: RouteFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison_reads, "COMPARED_AT_MOST", 10)
    generation(facts, OLD)
    text = compare(console_world.client("viewer"), generation(facts, NEW)).text
    assert "too long to compare" in text
    assert "customer" not in text


def test_an_erased_payload_says_so(facts: RouteFacts) -> None:
    first, second = generation(facts, OLD), generation(facts, NEW)
    Event.objects.filter(id=first.event_id).update(erasure_id=1, payload="")
    assert "erased, or no longer retained" in compare(console_world.client("viewer"), second).text


def test_another_source_and_nonsense_are_not_found(facts: RouteFacts) -> None:
    item, other = generation(facts, OLD), generation(facts, NEW, source="43")
    client = console_world.client("viewer")
    for asked in (other.work_id, "nothing", "é"):
        assert client.get(f"/admin/generations/{item.work_id}/compare/", {"with": asked}).status_code == 404, asked
    assert "first generation of its source" in compare(client, item).text


def test_hostile_inputs_are_shown_literally(facts: RouteFacts) -> None:
    generation(facts, json.dumps({"a": console_world.HOSTILE}, ensure_ascii=False))
    found = compare(console_world.client("viewer"), generation(facts, json.dumps({console_world.HOSTILE: 1}, ensure_ascii=False)))
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
    assert "<svg onload=alert(1)>" in found.text


def test_payloads_need_the_right_to_see_events(facts: RouteFacts) -> None:
    item = generation(facts, OLD)
    person = console_world.user(None, name="narrow")
    person.user_permissions.add(Permission.objects.get(codename="view_workitem"))
    client = Client()
    client.force_login(person)
    assert client.get(f"/admin/generations/{item.work_id}/compare/").status_code == 403
    html = client.get(f"/admin/generations/{item.work_id}/").content.decode()
    assert '"stage"' not in html.replace("&quot;", '"')


def test_each_input_of_a_generation_has_its_payload(facts: RouteFacts) -> None:
    item = generation(facts, OLD, NEW)
    first = Event.objects.order_by("id").first()
    assert first is not None
    client = console_world.client("viewer")
    path = f"/admin/generations/{item.work_id}/"
    assert '"stage":"customer"' in Markup(client.get(path).content.decode()).text
    html = client.get(path, {"input": str(first.id), "find": "LEAD"}).content.decode()
    assert '"stage":"lead"' in Markup(html).text
    assert "Match 1 of 1" in " ".join(html.split())
    assert f'name="input" value="{first.id}"' in html
    assert "ada@" not in html
    for nonsense in ("0", "x", str(rows.event_row(facts, source_id="43", payload='{"other":1}').id)):
        assert '"stage":"customer"' in Markup(client.get(path, {"input": nonsense}).content.decode()).text
