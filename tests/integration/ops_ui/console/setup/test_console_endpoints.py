"""Endpoints in the console: made, rotated and tried by administrators alone; a secret is shown once and never again."""

from __future__ import annotations

import base64
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from connectors import models, secrets
from connectors.ingress import endpoint_facts
from connectors.models import AuditEntry, Endpoint, Receipt, UnverifiedDelivery
from connectors.operations.test_delivery import MARK
from connectors.routing import router
from projection.admission import activation
from projection.database.clock import now
from projection.models import Event
from tests.support import console_world, factories, signing
from tests.support.console_world import HOSTILE

pytestmark = pytest.mark.usefixtures("database")

CREATE = "/admin/endpoints/create/"
FORM = {"pack": "default/hubspot", "slug": "crm", "origin": "made", "unverified": "keep", "spool": ""}


def admin() -> Client:
    return console_world.client("administrator")


def said(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def live(endpoint: Endpoint) -> list[str]:
    return secrets.live(endpoint.secrets, now())


def made(slug: str = "crm", pack: str = "hubspot", **form: str) -> Endpoint:
    """An endpoint that the form made, and the secret that it showed."""
    if not models.Pack.objects.filter(name=pack).exists():
        factories.install(pack)
    response = client_of().post(CREATE, {**FORM, "pack": f"default/{pack}", "slug": slug, **form})
    assert response.status_code == 200
    return Endpoint.objects.get(slug=slug)


def client_of() -> Client:
    if not console_world.User.objects.filter(username="maker").exists():
        console_world.user("administrator", name="maker")
    client = Client()
    client.force_login(console_world.User.objects.get(username="maker"))
    return client


def test_a_new_endpoint_shows_its_secret_once_and_never_again() -> None:
    factories.install("hubspot")
    client = admin()
    response = client.post(CREATE, {**FORM, "limit": "200/s", "reason": "go live"})
    endpoint = Endpoint.objects.get()
    (secret,) = live(endpoint)
    assert response.status_code == 200
    assert secret in response.content.decode()
    assert "no-store" in response.headers["Cache-Control"]
    assert json.loads(endpoint.limits)["limit"] == [200, 1.0]
    for page in ("endpoints/", f"endpoints/{endpoint.id}/", f"endpoints/{endpoint.id}/connect/", "audit/", "packs/"):
        path = f"/admin/{page}"
        content = client.get(path).content.decode()
        assert secret not in content, path
        assert secret.removeprefix("whsec_") not in content, path
    entry = AuditEntry.objects.get(action="endpoint.create")
    assert (entry.actor, entry.target, entry.reason) == ("administrator", "default/crm", "go live")
    assert secret not in entry.detail


def test_a_typed_secret_is_taken_as_it_is_and_not_shown_at_all() -> None:
    factories.install("hubspot")
    response = admin().post(CREATE, {**FORM, "origin": "own", "secret": "their-own-secret"})
    assert "their-own-secret" not in response.content.decode()
    assert live(Endpoint.objects.get()) == ["their-own-secret"]


def test_a_refused_form_keeps_what_was_typed_but_not_the_secret() -> None:
    factories.install("hubspot")
    response = admin().post(CREATE, {**FORM, "slug": "Not A Slug", "origin": "own", "secret": "typed-secret", "limit": "many"})
    content = response.content.decode()
    assert "must be 1 to 64 characters" in content
    assert "write a number, a slash and a duration" in content
    assert 'value="many"' in content
    assert "typed-secret" not in content
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"pack": "default/none"}, "select an installed pack"),
        ({"pack": HOSTILE}, "select an installed pack"),
        ({"origin": "own", "secret": ""}, "the secret is empty"),
        ({"origin": "own", "secret": "\ufeffs"}, "the secret contains an invisible or control character"),
        ({"origin": "own", "secret": " copied\n"}, "white space"),
        ({"public_url": "ftp://x"}, "must be a URL"),
        ({"max_body_bytes": "12"}, "must be at least 1024"),
        ({"max_body_bytes": "9" * 40}, "must be a whole number"),
        ({"concurrency": HOSTILE}, "must be a whole number"),
        ({"unverified": "maybe"}, "must be"),
    ],
)
def test_a_bad_form_is_a_sentence_and_makes_nothing(form: dict[str, str], sentence: str) -> None:
    factories.install("hubspot")
    response = admin().post(CREATE, {**FORM, **form})
    assert response.status_code == 200
    assert sentence in response.content.decode().replace("&#x27;", "'")
    assert not Endpoint.objects.exists()
    assert not AuditEntry.objects.exists()


def test_the_slug_of_another_endpoint_is_refused() -> None:
    made()
    response = admin().post(CREATE, FORM)
    assert "already exists" in response.content.decode()
    assert Endpoint.objects.count() == 1


def test_a_pack_without_a_signature_gets_an_endpoint_without_a_secret() -> None:
    factories.install(settings={"signature": {"kind": "none"}})
    response = admin().post(CREATE, {**FORM, "pack": "default/generic"})
    assert "does not check signatures" in response.content.decode()
    assert live(Endpoint.objects.get()) == []


def rotate(client: Client, endpoint: Endpoint, **form: str) -> Any:
    mark = (endpoint.rotated_at or endpoint.created_at).isoformat()
    return client.post(
        f"/admin/endpoints/{endpoint.id}/rotate/", {"mark": mark, "origin": "made", "overlap": "1h", **form}, follow=True
    )


def test_a_rotation_keeps_the_old_secret_for_the_overlap_and_shows_the_new_one_once() -> None:
    endpoint = made()
    (old,) = live(endpoint)
    client = admin()
    content = rotate(client, endpoint).content.decode()
    fresh, kept = live(Endpoint.objects.get())
    assert kept == old
    assert fresh in content
    assert old not in content
    page = client.get(f"/admin/endpoints/{endpoint.id}/").content.decode()
    assert "previous secret, valid until" in page
    assert fresh not in page
    assert AuditEntry.objects.filter(action="endpoint.rotate", actor="administrator").count() == 1


def test_a_second_click_does_not_rotate_again() -> None:
    endpoint = made()
    client = admin()
    rotate(client, endpoint)
    before = Endpoint.objects.get().secrets
    (message,) = said(rotate(client, endpoint))
    assert "rotated in the meantime" in message
    assert Endpoint.objects.get().secrets == before


def test_an_old_secret_stops_at_once_only_for_a_reason() -> None:
    endpoint = made()
    client = admin()
    (message,) = said(rotate(client, endpoint, overlap="0s"))
    assert "enter a reason" in message
    rotate(client, endpoint, overlap="0s", reason="it leaked")
    assert len(live(Endpoint.objects.get())) == 1
    (message,) = said(rotate(client, Endpoint.objects.get(), overlap="soon"))
    assert "overlap: 'soon' is not a valid duration" in message


def test_settings_are_changed_and_a_wrong_one_is_named() -> None:
    endpoint = made()
    client = admin()
    path = f"/admin/endpoints/{endpoint.id}/change/"
    (message,) = said(client.post(path, {"unverified": "refuse", "limit": "5/s", "spool": "no", "reason": "noisy"}, follow=True))
    assert "unverified: keep → refuse" in message
    changed = Endpoint.objects.get()
    assert (changed.unverified_policy, changed.secrets) == ("refuse", endpoint.secrets)
    assert AuditEntry.objects.get(action="endpoint.change").reason == "noisy"
    content = client.post(path, {"unverified": "refuse", "limit": "lots"}).content.decode()
    assert "is not a valid rate" in content
    assert Endpoint.objects.get().limits == changed.limits


ACTIONS = ("create/", "{id}/change/", "{id}/rotate/", "{id}/reverify/", "{id}/try/")


@pytest.mark.parametrize("group", ["viewer", "operator", None])
def test_only_administrators_change_endpoints(group: str | None) -> None:
    endpoint = made()
    entries = AuditEntry.objects.count()
    client = console_world.client(group)
    for path in ACTIONS:
        assert client.post(f"/admin/endpoints/{path.format(id=endpoint.id)}", {**FORM, "reason": "x"}).status_code == 403, path
    again = Endpoint.objects.get()
    assert (again.secrets, again.limits, AuditEntry.objects.count()) == (endpoint.secrets, endpoint.limits, entries)
    if group:
        content = client.get(f"/admin/endpoints/{endpoint.id}/").content.decode()
        assert "/rotate/" not in content
        assert "Sign and send" not in content


def test_a_locked_configuration_refuses_changes_in_a_sentence_but_still_takes_test_deliveries(settings: LazySettings) -> None:
    endpoint = made()
    settings.HEADRACE_CONFIG_LOCKED = True
    client = admin()
    assert "HEADRACE_CONFIG_LOCKED is on" in client.get(f"/admin/endpoints/{endpoint.id}/").content.decode()
    assert "HEADRACE_CONFIG_LOCKED is on" in client.get("/admin/endpoints/new/").content.decode()
    for path in ("create/", f"{endpoint.id}/change/", f"{endpoint.id}/rotate/"):
        response = client.post(f"/admin/endpoints/{path}", {**FORM, "slug": "other", "mark": "x"}, follow=True)
        assert any("HEADRACE_CONFIG_LOCKED" in message for message in said(response)), path
    assert Endpoint.objects.get().secrets == endpoint.secrets
    sent = client.post(f"/admin/endpoints/{endpoint.id}/try/", {"headers": "", "body": "[]"}, follow=True)
    assert "sent" in said(sent)[0]


def stages(client: Client, endpoint: Endpoint, query: str = "") -> list[tuple[str, str]]:
    response = client.get(f"/admin/endpoints/{endpoint.id}/connect/{query}")
    return [(stage.name, stage.standing) for stage in response.context["watch"].stages]


def try_it(client: Client, endpoint: Endpoint, **form: str) -> Any:
    """Sends the sample that the page of the endpoint offers."""
    offered = client.get(f"/admin/endpoints/{endpoint.id}/").context["trial"]
    return client.post(
        f"/admin/endpoints/{endpoint.id}/try/", {"headers": offered["headers"], "body": offered["body"], **form}, follow=True
    )


PACKS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("hubspot", {}, 2),
    ("github", {}, 1),
    ("standard_webhooks", {}, 1),
    ("generic", {}, 1),
    ("generic", {"items": "events", "delivery_id": "id", "source_id": "order.id", "kind": "type", "source_type": "'order'"}, 1),
    ("generic", {"signature": {"kind": "token", "header": "X-Token"}, "delivery_id": 'headers."x-id"'}, 1),
    ("generic", {"signature": {"kind": "none"}}, 1),
)


@pytest.mark.parametrize(("pack", "settings_of_pack", "events"), PACKS)
def test_a_test_delivery_is_signed_received_routed_and_marked(pack: str, settings_of_pack: dict[str, Any], events: int) -> None:
    activation.activate("test")
    installed = factories.install(pack, settings=settings_of_pack)
    factories.route(installed)
    endpoint = made("crm", pack)
    client = admin()
    assert stages(client, endpoint)[0] == ("waiting", "now")
    response = try_it(client, endpoint)
    assert "sent" in said(response)[0]
    receipt = Receipt.objects.get()
    assert json.loads(receipt.headers)["user-agent"] == f"{MARK} by administrator"
    query = f"?{response.redirect_chain[0][0].partition('?')[2]}"
    assert stages(client, endpoint, query) == [("waiting", "done"), ("received", "done"), ("verified", "done"), ("routed", "now")]
    router.drain_receipts()
    assert stages(client, endpoint, query)[-1] == ("routed", "done")
    assert "to main" in client.get(f"/admin/endpoints/{endpoint.id}/connect/{query}").content.decode()
    assert Event.objects.count() == events
    assert AuditEntry.objects.get(action="endpoint.try").actor == "administrator"
    try_it(client, endpoint)  # a fresh sample is a fresh fact
    router.drain_receipts()
    assert Receipt.objects.count() == 2
    assert Event.objects.count() == 2 * events


def test_an_unrouted_delivery_says_what_to_publish() -> None:
    activation.activate("test")
    endpoint = made("org", "github")
    client = admin()
    try_it(client, endpoint)
    router.drain_receipts()
    assert "no route matches issues.opened: publish one" in client.get(f"/admin/endpoints/{endpoint.id}/connect/").content.decode()


def test_a_failed_signature_is_seen_with_its_reason_and_admitted_after_the_secret_was_mended() -> None:
    endpoint = made("org", "github")
    facts = endpoint_facts.load(("default", "org"))
    assert facts is not None
    body = b'{"action":"opened"}'
    headers = signing.github(body, "their secret", delivery="1")
    from connectors.delivery import Headers, IngressRequest
    from connectors.ingress.receive import receive

    receive(facts, IngressRequest("POST", facts.url, Headers(headers), body))
    client = admin()
    assert stages(client, endpoint) == [("waiting", "done"), ("received", "done"), ("verified", "failed"), ("routed", "ahead")]
    content = client.get(f"/admin/endpoints/{endpoint.id}/connect/").content.decode()
    assert "no secret of the endpoint matches the signature in X-Hub-Signature-256" in content
    reverify = f"/admin/endpoints/{endpoint.id}/reverify/"
    (message,) = said(client.post(reverify, {}, follow=True))
    assert "enter a reason" in message
    (message,) = said(client.post(reverify, {"reason": "look"}, follow=True))
    assert "still fails its signature check" in message
    rotate(client, endpoint, origin="own", secret="their secret")
    (message,) = said(client.post(reverify, {"reason": "the right secret"}, follow=True))
    assert message == "Accepted 1 of the kept deliveries; the router processes them."
    assert Receipt.objects.count() == 1
    assert UnverifiedDelivery.objects.get().admitted_receipt_id == Receipt.objects.get().id


def test_who_cannot_sign_is_told_why() -> None:
    pack = factories.install("standard_webhooks")
    public = "whpk_" + base64.b64encode(b"k" * 32).decode()
    endpoint = factories.endpoint(pack, "svix", (public,))
    empty = factories.endpoint(pack, "empty", ())
    client = admin()
    assert "the secret is a public key" in client.get(f"/admin/endpoints/{endpoint.id}/").content.decode()
    assert "the endpoint has no valid secret to sign with" in client.get(f"/admin/endpoints/{empty.id}/").content.decode()
    (message,) = said(client.post(f"/admin/endpoints/{endpoint.id}/try/", {"body": "{}"}, follow=True))
    assert "only the provider" in message
    assert not Receipt.objects.exists()


def test_a_disabled_pack_takes_no_test_delivery() -> None:
    endpoint = factories.endpoint(factories.install("hubspot", state="disabled"))
    (message,) = said(admin().post(f"/admin/endpoints/{endpoint.id}/try/", {"body": "[]"}, follow=True))
    assert "enable it first" in message


@pytest.mark.parametrize(
    ("form", "sentence"),
    [({"headers": "no colon"}, "line 1 of the headers"), ({"body": "x" * 2000}, "accepts at most 1024")],
)
def test_a_bad_test_delivery_is_refused_in_a_sentence(form: dict[str, str], sentence: str) -> None:
    endpoint = factories.endpoint(factories.install("hubspot"), limits={"max_body_bytes": 1024})
    (message,) = said(try_it(admin(), endpoint, **form))
    assert sentence in message
    assert not Receipt.objects.exists()


def test_hostile_text_in_a_test_delivery_harms_nothing() -> None:
    endpoint = made("org", "github")
    client = admin()
    response = try_it(client, endpoint, headers=f"X-GitHub-Event: {HOSTILE}\nX-GitHub-Delivery: 1", body=HOSTILE)
    assert response.status_code == 200
    assert "<svg onload" not in client.get(f"/admin/receipts/{Receipt.objects.get().id}/").content.decode()


@pytest.mark.parametrize("since", ["", "nonsense", "0001-01-01T00:00:00+14:00", HOSTILE, "2026-01-01"])
def test_a_damaged_since_gives_a_page(since: str) -> None:
    endpoint = made()
    assert admin().get(f"/admin/endpoints/{endpoint.id}/connect/", {"since": since}).status_code == 200


def test_the_watch_stops_asking_once_it_is_routed() -> None:
    activation.activate("test")
    endpoint = made("org", "github")
    client = admin()
    ask = {"HTTP_HX_REQUEST": "true"}
    path = f"/admin/endpoints/{endpoint.id}/connect/"
    assert client.get(path, **ask).status_code == 200
    try_it(client, endpoint)
    router.drain_receipts()
    response = client.get(path, **ask)
    assert response.status_code == 286
    assert re.match(r"\s*<ol", response.content.decode())


def test_failures_that_were_not_kept_are_counted() -> None:
    from ops_ui.models import SignatureFailures

    endpoint = made()
    moment = now()
    SignatureFailures.objects.create(endpoint="default/crm", minute=moment.replace(second=0, microsecond=0), failures=3)
    SignatureFailures.objects.create(endpoint="default/crm", minute=moment - timedelta(hours=3), failures=50)
    assert (
        "3 failed the signature check; the reasons are only in"
        in admin().get(f"/admin/endpoints/{endpoint.id}/connect/").content.decode()
    )


def test_an_endpoint_is_disabled_enabled_and_removed_with_a_reason() -> None:
    endpoint, client = made(), admin()
    page = f"/admin/endpoints/{endpoint.id}/"
    assert "Disable or remove this endpoint" in client.get(page).content.decode()
    assert said(client.post(f"{page}disable/", follow=True)) == ["Nothing was disabled: enter a reason for the audit log."]
    assert said(client.post(f"{page}disable/", {"reason": "r", "discard": "1"}, follow=True)) == ["Disabled. Deliveries get 410."]
    endpoint.refresh_from_db()
    assert (endpoint.state, endpoint.discard_when_disabled) == ("disabled", True)
    assert "Enable or remove this endpoint" in client.get(page).content.decode()
    assert said(client.post(f"{page}enable/", {"reason": "r"}, follow=True)) == ["Enabled. Deliveries are accepted again."]
    (message,) = said(client.post(f"{page}remove/", {"reason": "r"}, follow=True))
    assert message.startswith("Removed crm. It answers 404")
    endpoint.refresh_from_db()
    assert (endpoint.state, endpoint.secrets) == ("removed", "")
    (message,) = said(client.post(f"{page}enable/", {"reason": "r"}, follow=True))
    assert message.startswith("Nothing was enabled: there is no endpoint 'crm'")
    assert "remove this endpoint" not in client.get(page).content.decode()
