"""Publishing routes from the console: the strict reader's errors, a dry run over stored events, the diff, the estimate, retiring."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from connectors import models
from connectors.configuration import routes
from connectors.models import AuditEntry, Route
from connectors.routing import dry_run
from connectors.routing.dry_run import Trial
from projection.database.clock import now
from projection.facts import RouteFacts
from tests.support import console_world, factories, rows
from tests.support.console_world import HOSTILE

pytestmark = pytest.mark.usefixtures("database")

TRY, PUBLISH = "/admin/routes/try/", "/admin/routes/publish/now/"
FORM = {
    "key": "contact",
    "namespace": "default",
    "pack": "hubspot",
    "kind": "contact.changed",
    "mode": "projection",
    "settle": "5s",
    "flow": "log",
    "on": "contact.creation\ncontact.propertyChange",
    "source_id_case": "exact",
}
TEXT = """
[routes.contact]
pack = "hubspot"
on = ["contact.creation"]
kind = "contact.changed"
mode = "projection"
settle = "15s"
flow = "log"
retry = { base = "5s", attempts = 3 }
"""


@pytest.fixture
def admin() -> Client:
    factories.install("hubspot")
    return console_world.client("administrator")


def text_of(response: Any) -> str:
    return str(response.content.decode()).replace("&#x27;", "'").replace("&quot;", '"').replace("&gt;", ">")


def said(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def tried(response: Any) -> Any:
    assert response.status_code == 200
    found = response.context["tried"]
    assert found is not None, text_of(response)
    return found


def publish(client: Client, text: str, reason: str = "release 42") -> Any:
    return client.post(PUBLISH, {"text": text, "reason": reason}, follow=True)


def contacts(
    kinds: str = "contact.creation",
    *,
    count: int = 1,
    route: RouteFacts | None = None,
    seconds: float = 0,
    source: str = "7",
) -> None:
    """Events of one contact, so many seconds apart, the last one now."""
    moment = now()
    for number in range(count):
        rows.event_row(
            route,
            source_id=source,
            provider_kind=kinds,
            created_date=moment - timedelta(seconds=seconds * (count - 1 - number)),
            **({} if route else {"pack_id": models.Pack.objects.get().id}),
        )


def test_the_form_is_tried_and_then_published(admin: Client) -> None:
    found = tried(admin.post(TRY, FORM))
    assert found["before"] is None
    assert not Route.objects.exists()  # nothing was written
    assert not AuditEntry.objects.exists()
    response = publish(admin, found["one"].text)
    assert "Published contact v1" in said(response)[0]
    facts = routes.current("default", "contact")
    assert facts is not None
    assert (facts.settle_seconds, facts.provider_kinds) == (5.0, ("contact.creation", "contact.propertyChange"))
    entry = AuditEntry.objects.get(action="route.publish")
    assert (entry.actor, entry.reason) == ("administrator", "release 42")


def test_the_text_is_read_as_config_apply_reads_it_and_the_diff_names_what_changes(admin: Client) -> None:
    publish(admin, tried(admin.post(TRY, FORM))["one"].text)
    found = tried(admin.post(TRY, {"as": "text", "text": TEXT}))
    assert {(one.name, one.now, one.then) for one in found["changes"]} == {
        ("on", "contact.creation, contact.propertyChange", "contact.creation"),
        ("settle", "5s", "15s"),
        ("retry", "", "base 5s, factor 3.0, cap 1h, attempts 3"),
    }
    assert "Published contact v2" in said(publish(admin, TEXT))[0]
    assert tried(admin.post(TRY, {"as": "text", "text": TEXT}))["is_equal"]
    assert "is identical" in said(publish(admin, TEXT))[0]
    assert Route.objects.count() == 2


def test_the_form_of_the_next_version_says_what_the_current_one_is(admin: Client) -> None:
    publish(admin, TEXT)
    row = Route.objects.get()
    response = admin.get("/admin/routes/publish/", {"from": row.id})
    form = {field.name: field.value for field in response.context["fields"]}
    assert form["retry.attempts"] == "3"
    assert tried(admin.post(TRY, form))["is_equal"]
    as_text = admin.get("/admin/routes/publish/", {"from": row.id, "as": "text"}).context["text"]
    assert tried(admin.post(TRY, {"as": "text", "text": as_text}))["is_equal"]


FORM_FAULTS: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"settle": "soon"}, "settle", "is not a valid duration"),
    ({"key": ""}, "key", "is missing"),
    ({"flow": ""}, "flow", "is missing"),
    ({"mode": "sometimes"}, "mode", "must be"),
    ({"on": ""}, "on", "is missing"),
    ({"on": "a*b"}, "on", "must be a provider kind"),
    ({"mask": "email"}, "mask", "is not a valid mask"),
    ({"retry.attempts": "many"}, "retry.attempts", "must be a whole number"),
    ({"retry.factor": "nan"}, "retry.factor", "must be a number from 1 to 100"),
    ({"limit.rate": "100/10s"}, "limit.name", "is missing"),
    ({"limit.name": "api", "limit.concurrency": "0"}, "limit.concurrency", "must be at least 1"),
    ({"target_lane": "{nothing}"}, "target_lane", "braces only for"),
)


@pytest.mark.parametrize(("change", "name", "sentence"), FORM_FAULTS)
def test_a_wrong_value_is_said_beside_its_field(admin: Client, change: dict[str, str], name: str, sentence: str) -> None:
    response = admin.post(TRY, {**FORM, **change})
    assert response.status_code == 200
    assert response.context["tried"] is None
    problems = {field.name: field.problem for field in response.context["fields"] if field.problem}
    assert sentence in problems.get(name, ""), (problems, response.context["problems"])
    assert not Route.objects.exists()


TEXT_FAULTS = (
    ("[routes.contact", "not TOML"),
    ("", "name one route"),
    (TEXT.replace("settle", "setle"), "routes.contact.setle: is not a known name"),
    (TEXT + TEXT.replace("contact]", "other]"), "name one route, [routes.KEY]; the text has 2"),
    (TEXT + '[connections.x]\nurl = "https://example.com"', "connections: this page publishes routes only"),
    (TEXT + '[packs.hubspot]\nversion = "1"', "packs: this page publishes routes only"),
    (TEXT.replace('"hubspot"', '"nobody"'), "is not installed"),
    (TEXT.replace('"log"', '"http_forward"'), "without a connection"),
    (TEXT.replace('"projection"', '"per_event"'), "settle is only for projection routes"),
    ("x = " + "[" * 5000, "nested too deeply"),
    ("a" * 70_000, "the limit is 65536"),
)


@pytest.mark.parametrize(("text", "sentence"), TEXT_FAULTS)
def test_a_wrong_text_is_said_line_by_line_and_publishes_nothing(admin: Client, text: str, sentence: str) -> None:
    response = admin.post(TRY, {"as": "text", "text": text})
    assert any(sentence in problem for problem in response.context["problems"]), response.context["problems"]
    published = publish(admin, text)
    assert any(sentence in message for message in said(published))
    assert published.context["text"] == text  # nothing that was typed is lost
    assert not Route.objects.exists()


def test_hostile_text_is_shown_literally(admin: Client) -> None:
    contacts(HOSTILE[:180], count=2)
    response = admin.post(TRY, {**FORM, "key": HOSTILE, "on": HOSTILE})
    assert "<svg onload" not in response.content.decode()
    response = admin.post(TRY, {**FORM, "on": "*"})
    assert "<svg onload" not in response.content.decode()
    assert "&lt;svg onload" in response.content.decode()


def trial(client: Client, **form: str) -> Trial:
    found = tried(client.post(TRY, {**FORM, **form}))["trial"]
    assert isinstance(found, Trial)
    return found


def test_a_trial_says_which_stored_events_it_would_have_taken(admin: Client) -> None:
    pack = models.Pack.objects.get()
    other = factories.route(pack, "deals", on=("deal.*", "contact.creation"))
    contacts("contact.creation", count=2, route=other)
    contacts("contact.deletion", count=3)
    contacts("contact.propertyChange", count=4, source="8")
    stranger = factories.install("github")
    rows.event_row(None, pack_id=stranger.id, provider_kind="contact.creation")
    found = trial(admin)
    assert (found.looked.events, len(found.looked.facts), found.looked.is_all) == (10, 9, True)
    assert {(row.kind, row.facts, row.takes, row.took, row.others) for row in found.kinds} == {
        ("contact.creation", 2, True, False, ("deals",)),
        ("contact.deletion", 3, False, False, ()),
        ("contact.propertyChange", 4, True, False, ()),
    }
    assert (found.matched, found.sources, found.unrouted) == (6, 2, 4)
    assert found.lanes_in_all == 2


def test_kinds_that_the_new_version_gives_up_are_named(admin: Client) -> None:
    publish(admin, TEXT)
    facts = routes.current("default", "contact")
    contacts("contact.creation", route=facts)
    content = text_of(admin.post(TRY, {**FORM, "on": "contact.merge"}))
    assert "No longer matched by this route" in content
    assert "matched by no other route" in content


def test_one_delivery_for_several_routes_counts_once(admin: Client) -> None:
    pack = models.Pack.objects.get()
    first, second = factories.route(pack, "first"), factories.route(pack, "second")
    for facts in (first, second):
        rows.event_row(facts, provider_kind="contact.creation", delivery_id="the same", source_id="7")
    assert trial(admin).matched == 1


def test_the_estimate_replays_real_arrivals_against_settling_times(admin: Client) -> None:
    contacts(count=10, seconds=2)  # 18 seconds of one record
    contacts(count=1, source="other")
    estimates = {one.settle: one for one in trial(admin, settle="4s").estimates}
    assert {settle: one.executions for settle, one in estimates.items()} == {0: 11, 1: 11, 4: 6, 5: 5, 15: 3, 60: 2, 300: 2}
    assert estimates[4].mean_delay == pytest.approx((5 * (4 + 2) + 4) / 11)
    content = text_of(admin.post(TRY, {**FORM, "settle": "4s"}))
    assert "Estimated effect of settling" in content
    assert "this route" in content


def test_a_per_event_route_has_no_estimate_and_shows_its_target_lanes(admin: Client) -> None:
    contacts(count=3)
    found = trial(admin, mode="per_event", settle="", target_lane="invoice:{id}")
    assert found.estimates == ()
    assert found.lanes == (("invoice:7", 3),)


def test_ids_that_fold_together_are_one_record(admin: Client) -> None:
    contacts(source="Ab")
    contacts(source="aB")
    assert trial(admin).sources == 2
    assert trial(admin, source_id_case="fold").sources == 1


def test_a_look_is_bounded_and_says_so(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "LOOKED_AT", 4)
    contacts("old", count=3)
    contacts("contact.creation", count=4)
    with CaptureQueriesContext(connection) as queries:
        looked = dry_run.read("default", "hubspot")
    assert (looked.events, looked.is_all, {fact.kind for fact in looked.facts}) == (4, False, {"contact.creation"})
    assert len(queries) == 2
    assert "Payload" not in "".join(query["sql"] for query in queries)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + queries[1]["sql"])
        plan = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
    assert plan.get("key", "ix_event_ordinal") == "ix_event_ordinal", plan
    assert "the newest 4" in " ".join(text_of(admin.post(TRY, FORM)).split())


def test_an_event_whose_lane_cannot_be_kept_is_counted_with_its_reason(admin: Client) -> None:
    contacts(source="x" * 500)
    found = trial(admin, mode="per_event", settle="", target_lane="{id}{id}")
    assert (found.unfit, found.matched) == (1, 0)
    assert "target lane" in found.unfit_reason


def test_a_route_is_retired_for_a_reason(admin: Client) -> None:
    publish(admin, TEXT)
    row = Route.objects.get()
    path = f"/admin/routes/{row.id}/retire/"
    (message,) = said(admin.post(path, follow=True))
    assert "enter a reason" in message
    (message,) = said(admin.post(path, {"reason": "moved to deals"}, follow=True))
    assert message.startswith("Retired contact v1")
    assert routes.current("default", "contact") is None
    assert AuditEntry.objects.get(action="route.retire").reason == "moved to deals"
    (message,) = said(admin.post(path, {"reason": "again"}, follow=True))
    assert "no longer current" in message


def test_an_older_version_does_not_retire_the_newer_one(admin: Client) -> None:
    publish(admin, TEXT)
    old = Route.objects.get()
    publish(admin, TEXT.replace("15s", "20s"))
    (message,) = said(admin.post(f"/admin/routes/{old.id}/retire/", {"reason": "x"}, follow=True))
    assert "check the current version first" in message
    assert routes.current("default", "contact") is not None


@pytest.mark.parametrize("group", ["viewer", "operator", None])
def test_only_administrators_publish_and_retire(group: str | None) -> None:
    pack = factories.install("hubspot")
    facts = factories.route(pack, "contact")
    client = console_world.client(group)
    for path in (TRY, PUBLISH, f"/admin/routes/{facts.id}/retire/"):
        assert client.post(path, {"text": TEXT, "reason": "x"}).status_code == 403, path
    assert Route.objects.count() == 1
    if group:
        content = client.get("/admin/routes/publish/").content.decode()
        assert "requires the permission connectors.publish_route" in content
        assert "Try on stored events" not in content


def test_a_locked_configuration_publishes_and_retires_nothing(admin: Client, settings: LazySettings) -> None:
    publish(admin, TEXT)
    settings.HEADRACE_CONFIG_LOCKED = True
    for response in (
        publish(admin, TEXT.replace("15s", "20s")),
        admin.post(f"/admin/routes/{Route.objects.get().id}/retire/", {"reason": "x"}, follow=True),
    ):
        assert any("HEADRACE_CONFIG_LOCKED is on" in message for message in said(response))
    assert Route.objects.get().is_current
    for path in ("/admin/routes/", "/admin/routes/publish/", "/admin/packs/"):
        assert "HEADRACE_CONFIG_LOCKED is on" in admin.get(path).content.decode() or path == "/admin/routes/"


@pytest.mark.parametrize("number", ["x", "-1", "9" * 30, HOSTILE, "0"])
def test_a_damaged_origin_gives_an_empty_form(admin: Client, number: str) -> None:
    assert admin.get("/admin/routes/publish/", {"from": number}).status_code == 200


def test_an_unregistered_flow_is_refused_before_and_when_it_is_published(admin: Client) -> None:
    assert "is not installed here" in text_of(admin.post(TRY, {**FORM, "flow": "crm.unknown"}))
    assert any("did you mean 'log'?" in line for line in said(publish(admin, TEXT.replace('"log"', '"lgo"'))))
    assert not Route.objects.exists()
