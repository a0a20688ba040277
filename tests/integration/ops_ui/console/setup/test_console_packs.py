"""Packs and connections in the console: the verbs of `packs`, each with its right, its reason and its audit entry."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from connectors import models, pack
from connectors.models import AuditEntry, Pack
from projection.database.clock import now
from tests.support import console_world, factories
from tests.support.console_world import HOSTILE

pytestmark = pytest.mark.usefixtures("database")

INSTALL = "/admin/packs/install/"


@pytest.fixture
def admin() -> Client:
    return console_world.client("administrator")


def said(response: Any) -> list[str]:
    assert response.redirect_chain == [("/admin/packs/", 302)]
    return [str(message) for message in response.context["messages"]]


def do(client: Client, row: Pack, verb: str, **form: str) -> str:
    (message,) = said(client.post(f"/admin/packs/{row.id}/{verb}/", form, follow=True))
    return message


def test_a_pack_is_installed_with_its_settings(admin: Client) -> None:
    form = {"name": "generic", "namespace": "default", "settings": 'kind = "type"\nsource_id = "order.id"', "reason": "shop"}
    (message,) = said(admin.post(INSTALL, form, follow=True))
    assert message.startswith("Installed generic 1")
    row = Pack.objects.get()
    assert '"order.id"' in row.settings
    entry = AuditEntry.objects.get(action="pack.install")
    assert (entry.actor, entry.target, entry.reason) == ("administrator", "default/generic", "shop")
    content = admin.get("/admin/packs/").content.decode()
    assert "source_id = &quot;order.id&quot;" in content
    assert "No endpoint yet, so it receives no deliveries." in content


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"name": "nothing"}, "there is no pack"),
        ({"name": HOSTILE}, "must be 1 to 100 characters"),
        ({"namespace": "Not A Slug"}, "namespace: "),
        ({"settings": "kind ="}, "the settings are not valid TOML"),
        ({"settings": 'colour = "red"'}, "has no setting 'colour'"),
        ({"settings": "a" * 70_000}, "the limit is 65536"),
        ({"settings": "at = 2026-01-01"}, "are refused"),
    ],
)
def test_what_cannot_be_installed_is_a_sentence(admin: Client, form: dict[str, str], sentence: str) -> None:
    (message,) = said(admin.post(INSTALL, {"name": "generic", "namespace": "default", **form}, follow=True))
    assert sentence in message
    assert not Pack.objects.exists()


def test_an_upgrade_is_a_new_incarnation_and_an_old_page_does_nothing(admin: Client) -> None:
    row = factories.install("hubspot", version="0")
    factories.endpoint(row)
    factories.route(row)
    assert (
        f'Upgrade to <bdi class="exact">{pack.registered()["hubspot"].version}</bdi>' in admin.get("/admin/packs/").content.decode()
    )
    assert do(admin, row, "upgrade") == "Upgraded hubspot 0 → 1; 1 routes got a new version, 1 endpoints were moved."
    assert Pack.objects.get(state="installed").id != row.id
    assert "was upgraded or removed in the meantime" in do(admin, row, "upgrade")
    assert Pack.objects.count() == 2
    assert AuditEntry.objects.filter(action="pack.upgrade").count() == 1


def test_a_pack_is_disabled_for_a_reason_and_enabled_again(admin: Client) -> None:
    row = factories.install("hubspot")
    assert "enter a reason" in do(admin, row, "disable")
    assert do(admin, row, "disable", reason="maintenance") == "Disabled. Deliveries get 503."
    assert do(admin, row, "disable", reason="no more", discard="1") == "Disabled. Deliveries get 410."
    assert "deliveries get 410" in admin.get("/admin/packs/").content.decode()
    assert do(admin, row, "enable") == "Enabled. Deliveries are accepted again."
    assert Pack.objects.get().state == "installed"
    assert list(AuditEntry.objects.order_by("id").values_list("action", "reason")) == [
        ("pack.disable", "maintenance"),
        ("pack.disable", "no more"),
        ("pack.enable", ""),
    ]


def test_a_pack_is_removed_once_everything_is_routed(admin: Client) -> None:
    row = factories.install("hubspot")
    factories.route(row, "contact")
    waiting = factories.receipt(row, "[]")
    assert "enter a reason" in do(admin, row, "remove")
    assert "receipts that are not routed yet" in do(admin, row, "remove", reason="bye")
    waiting.delete()
    assert do(admin, row, "remove", reason="bye").startswith("Removed hubspot 1")
    assert Pack.objects.get().state == "removed"
    assert not models.Route.objects.get().is_current
    assert "No packs installed" in admin.get("/admin/packs/").content.decode()


def test_settings_are_changed_in_place(admin: Client) -> None:
    row = factories.install()
    assert "are refused" in do(admin, row, "settings", settings='nothing = "x"', reason="x")
    assert do(admin, row, "settings", settings='source_id = "order.id"', reason="orders").startswith("Saved")
    assert AuditEntry.objects.get(action="pack.configure").reason == "orders"


@pytest.mark.parametrize("group", ["viewer", "operator", None])
def test_only_administrators_change_packs(group: str | None) -> None:
    row = factories.install("hubspot")
    client = console_world.client(group)
    for path in ("install/", *(f"{row.id}/{verb}/" for verb in ("upgrade", "settings", "disable", "enable", "remove"))):
        assert client.post(f"/admin/packs/{path}", {"reason": "x", "name": "github", "namespace": "default"}).status_code == 403, (
            path
        )
    assert list(Pack.objects.values_list("name", "state")) == [("hubspot", "installed")]
    assert not AuditEntry.objects.exists()
    if group:
        content = client.get("/admin/packs/").content.decode()
        assert "Change this pack" not in content
        assert "Install a pack" not in content


def test_a_locked_configuration_changes_no_pack(admin: Client, settings: LazySettings) -> None:
    row = factories.install("hubspot")
    settings.HEADRACE_CONFIG_LOCKED = True
    for path in ("install/", *(f"{row.id}/{verb}/" for verb in ("upgrade", "settings", "disable", "enable", "remove"))):
        response = admin.post(f"/admin/packs/{path}", {"reason": "x", "name": "github", "namespace": "default"}, follow=True)
        assert any("HEADRACE_CONFIG_LOCKED is on" in message for message in said(response)), path
    assert list(Pack.objects.values_list("name", "state")) == [("hubspot", "installed")]


def test_a_pack_that_no_module_has_says_so(admin: Client) -> None:
    factories.install("acme")
    assert "This process has not loaded the pack" in admin.get("/admin/packs/").content.decode()


def test_connections_name_the_routes_that_use_them_and_no_secret(admin: Client) -> None:
    row = factories.install("github")
    factories.route(row, "builds", flow="http_forward", connection="ci")
    from connectors import secrets

    sealed = secrets.encrypt([{"secret": "whsec_hidden", "expires_at": None}])
    models.Connection.objects.create(namespace="default", name="ci", url="https://ci.example.com", secrets=sealed, created_at=now())
    content = admin.get("/admin/connections/").content.decode()
    assert "1 valid" in content
    assert ">builds<" in content.replace('<bdi class="exact">', ">").replace("</bdi>", "<").replace(">>", ">").replace("<<", "<")
    assert "whsec_hidden" not in content
    assert sealed not in content


def test_a_connection_is_disabled_enabled_and_removed_with_a_reason(admin: Client) -> None:
    row = models.Connection.objects.create(namespace="default", name="ci", url="https://ci.example.com", created_at=now())
    page = "/admin/connections/"

    def said(verb: str, **form: str) -> list[str]:
        return [str(one) for one in admin.post(f"{page}{row.id}/{verb}/", form, follow=True).context["messages"]]

    assert said("disable") == ["Nothing was disabled: enter a reason for the audit log."]
    assert said("disable", reason="r") == ["Disabled ci. Its work waits and uses no attempts."]
    assert ">Enable</button>" in admin.get(page).content.decode()
    assert said("enable", reason="r") == ["Enabled ci. Its work starts again."]
    factories.route(factories.install("github"), "builds", flow="http_forward", connection="ci")
    assert ">Remove</button>" not in admin.get(page).content.decode()
    assert said("remove", reason="r") == [
        "Nothing was removed: connection 'ci' is used by route builds; retire or change them first"
    ]
    models.Route.objects.all().delete()
    assert said("remove", reason="r") == ["Removed ci."]
    assert not models.Connection.objects.exists()
