"""Configuration with a mouse: an endpoint from nothing to its first routed delivery, a rotation, a route tried and published."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, expect

from connectors.delivery import Headers, IngressRequest
from connectors.ingress import endpoint_facts
from connectors.ingress.receive import receive
from connectors.models import Endpoint, Pack, Route
from connectors.routing import router
from projection.admission import activation
from tests.browser.conftest import Visit, log_in
from tests.browser.test_pages import findings
from tests.support import factories, rows, signing

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]


@pytest.fixture
def admin(server: str, context: BrowserContext) -> Visit:
    activation.activate("test")
    return log_in(server, context, "administrator")


def quiet(visit: Visit) -> None:
    assert findings(visit) == []
    assert visit.complaints == []


def test_a_provider_is_connected_from_the_pack_to_the_first_routed_delivery(admin: Visit) -> None:
    page = admin.page
    admin.open("/admin/packs/")
    page.select_option("#id_class", "github")
    page.click("button:text-is('Install')")
    page.click("text=Create one")
    page.fill("#id_slug", "org")
    page.click("button:text-is('Create endpoint')")
    secret = page.locator("#secret").inner_text()
    assert secret.startswith("whsec_")
    expect(page).to_have_url(
        f"{admin.address}/admin/endpoints/{Endpoint.objects.get().id}/connect/"
    )  # a reload asks for no second one
    expect(page.locator(".stage-now .stage-name")).to_have_text("Waiting")
    quiet(admin)

    facts = endpoint_facts.load(("default", "org"))
    assert facts is not None
    body = b'{"action":"opened","issue":{"id":1},"repository":{"id":2}}'
    wrong = signing.github(body, "not the secret", event="issues", delivery="1")
    receive(facts, IngressRequest("POST", facts.url, Headers(wrong), body))
    expect(page.locator(".stage-failed")).to_contain_text("no secret of the endpoint matches the signature", timeout=10_000)
    right = signing.github(body, secret, event="issues", delivery="1")
    receive(facts, IngressRequest("POST", facts.url, Headers(right), body))
    expect(page.locator(".stage-done .stage-name")).to_have_text(["Waiting", "Received", "Verified"], timeout=10_000)
    router.drain_receipts()
    expect(page.locator(".stage-done .stage-name")).to_have_text(["Waiting", "Received", "Verified", "Routed"], timeout=10_000)
    expect(page.locator(".stage-note").last).to_contain_text("no route matches issues.opened")
    page.reload()
    assert secret not in page.content()
    quiet(admin)


def test_a_test_delivery_is_followed_and_a_rotation_shows_the_new_secret_once(admin: Visit) -> None:
    pack = factories.install("hubspot")
    factories.route(pack, "contact")
    endpoint = factories.endpoint(pack, "crm")
    page = admin.page
    admin.open(f"/admin/endpoints/{endpoint.id}/")
    quiet(admin)
    page.click("button:text-is('Sign and send')")
    expect(page.locator(".messagelist")).to_contain_text("Test delivery sent")
    expect(page.locator(".stage-done")).to_have_count(3)
    router.drain_receipts()
    expect(page.locator(".stage-done")).to_have_count(4, timeout=10_000)
    page.click("text=Open the endpoint")
    page.fill("form[action$='/rotate/'] input[name=reason]", "yearly")
    page.click("button:text-is('Rotate')")
    secret = page.locator("#secret").inner_text()
    page.reload()
    assert secret not in page.content()
    page.click("text=Open the endpoint")
    expect(page.locator("#secrets").locator("xpath=ancestor::section")).to_contain_text("previous secret, valid until")
    quiet(admin)


def test_a_route_is_tried_on_stored_events_published_changed_and_retired(admin: Visit) -> None:
    pack = factories.install("hubspot")
    for _ in range(3):
        rows.event_row(None, pack_id=pack.id, provider_kind="contact.creation", source_id="7")
    page = admin.page
    admin.open("/admin/routes/")
    page.click("text=Publish a route")
    page.fill("#id_key", "contact")
    page.fill("#id_kind", "contact.changed")
    page.fill("#id_on", "contact.creation")
    page.fill("#id_settle", "soon")
    page.fill("#id_flow", "log")
    page.click("text=Try on stored events")
    expect(page.locator(".field-wrong .field-error")).to_contain_text("is not a valid duration")
    quiet(admin)
    page.fill("#id_settle", "5s")
    page.click("text=Try on stored events")
    expect(page.locator(".outcome-good .outcome-count")).to_have_text("3")
    quiet(admin)
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.click("button:text-is('Publish contact')")
    expect(page.locator(".messagelist")).to_contain_text("Published contact v1")
    page.click("text=Next version")
    page.click("text=TOML")
    page.fill("#id_text", page.input_value("#id_text").replace("5s", "9s"))
    page.click("text=Try on stored events")
    expect(page.locator("del")).to_have_text("5s")
    expect(page.locator("ins")).to_have_text("9s")
    page.click("text=Publish contact as the next version")
    page.fill("form[action$='/retire/'] input[name=reason]", "not needed")
    page.click("button:text-is('Retire')")
    expect(page.locator(".messagelist")).to_contain_text("Retired contact v2")
    assert not Route.objects.filter(is_current=True).exists()
    quiet(admin)


def test_a_pack_is_disabled_and_enabled(admin: Visit) -> None:
    factories.install("hubspot")
    page = admin.page
    admin.open("/admin/packs/")
    page.click("text=Change this pack")
    page.fill("form[action$='/upgrade/'] input[name=reason]", "maintenance")
    page.click("button:text-is('Disable')")
    expect(page.locator(".messagelist")).to_contain_text("Deliveries get 503")
    page.click("text=Change this pack")
    quiet(admin)
    page.click("button:text-is('Enable')")
    expect(page.locator(".messagelist")).to_contain_text("Deliveries are accepted again")
    assert Pack.objects.get().state == "installed"
