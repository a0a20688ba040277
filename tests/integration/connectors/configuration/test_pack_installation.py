"""Packs: install, upgrade, disable, enable, remove."""

from __future__ import annotations

import json

import pytest

from connectors.configuration import endpoints, packs, routes
from connectors.configuration.change import ConfigurationRefused, NotFound
from connectors.configuration.endpoints import EndpointDraft
from connectors.configuration.packs import InstallationRefused
from connectors.configuration.routes import RouteDraft
from connectors.configuration.stored_secrets import Secret
from connectors.models import AuditEntry, Endpoint, Namespace, Pack, Route
from projection import identity
from projection.facts import PROJECTION, SourceLane
from tests.support import factories

ACTOR = "test"


def install(name: str = "generic", **options):
    return packs.install("default", name, actor=ACTOR, **options)


def with_endpoint_and_route(name: str = "generic"):
    row = install(name)
    endpoints.create("default", EndpointDraft(name, "in", (Secret("s" * 40),)), actor=ACTOR)
    draft = RouteDraft("things", name, ("*",), "thing.changed", PROJECTION, "log")
    return row, routes.publish("default", draft, actor=ACTOR).route_facts


def test_install_makes_the_namespace_and_an_incarnation_of_its_own(database):
    row = install(settings={"kind": "'thing'"})
    assert Namespace.objects.get().name == "default"
    assert (row.state, row.version, json.loads(row.settings)) == ("installed", "1", {"kind": "'thing'"})
    assert len(row.incarnation) == 36
    assert AuditEntry.objects.get().action == "pack.install"


@pytest.mark.parametrize("name", ["default ", " default", "", "a\tb", "de\x00fault", "n" * 65])
def test_a_name_that_the_database_would_take_for_another_s_is_no_namespace(database, name):
    packs.install("default", "github", actor=ACTOR)
    with pytest.raises(ConfigurationRefused, match="is not a valid namespace"):
        packs.install(name, "generic", actor=ACTOR)
    assert (Namespace.objects.get().name, Pack.objects.get().name) == ("default", "github")


def test_an_installed_pack_is_not_installed_again(database):
    install()
    with pytest.raises(InstallationRefused, match=r"is already installed .* use `packs upgrade`"):
        install()
    assert Pack.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "options", "error", "sentence"),
    [
        ("nope", {}, NotFound, "there is no pack class 'nope'; known: .*generic"),
        ("generic", {"version": "99"}, InstallationRefused, "is version 1 here, not 99"),
        ("generic", {"settings": {"colour": 1}}, InstallationRefused, "settings of pack 'generic' are refused: .*colour"),
        ("generic", {"settings": {"kind": object()}}, InstallationRefused, "settings of pack 'generic' are refused"),
    ],
)
def test_what_cannot_be_installed_is_refused_and_leaves_nothing(database, name, options, error, sentence):
    with pytest.raises(error, match=sentence):
        install(name, **options)
    assert Pack.objects.count() == 0


def test_upgrade_is_a_new_row_to_which_endpoints_and_routes_move(database):
    old, facts = with_endpoint_and_route()
    done = packs.upgrade("default", "generic", actor=ACTOR)
    before, after = Pack.objects.order_by("id")
    assert (before.id, before.state, before.removed_at is None) == (old.id, "removed", False)
    assert (after.id, after.state) == (done.pack.id, "installed")
    assert after.incarnation != before.incarnation
    assert Endpoint.objects.get().pack_id == after.id
    current = routes.current("default", "things")
    assert (current.version, current.pack_id) == (facts.version + 1, after.id)
    assert Route.objects.get(version=facts.version).snapshot == facts.snapshot()
    assert (done.endpoints_moved, done.routes) == (1, ("things",))


def test_after_an_upgrade_duplicates_are_known_and_projections_are_new(database):
    old, facts = with_endpoint_and_route()
    done = packs.upgrade("default", "generic", actor=ACTOR)
    current = routes.current("default", "things")

    def delivery_key(pack_name: str, route) -> str:
        return identity.delivery_key(identity.item_key("default", pack_name, "shop-a", "event", "evt_1", 0), route.key)

    assert delivery_key(old.name, facts) == delivery_key(done.pack.name, current)
    lane = SourceLane("shop-a", ("thing", "1"))
    assert identity.projection_key(facts, old.incarnation, lane) != identity.projection_key(current, done.pack.incarnation, lane)


def test_upgrade_keeps_settings_and_a_disabled_state(database):
    install(settings={"kind": "'thing'"})
    packs.disable("default", "generic", actor=ACTOR, discard=True)
    row = packs.upgrade("default", "generic", actor=ACTOR).pack
    assert (row.state, row.discard_when_disabled, json.loads(row.settings)) == ("disabled", True, {"kind": "'thing'"})


def test_configure_changes_settings_in_place(database):
    row = install()
    assert packs.configure("default", "generic", {"kind": "'thing'"}, actor=ACTOR)
    assert not packs.configure("default", "generic", {"kind": "'thing'"}, actor=ACTOR)
    stored = Pack.objects.get()
    assert (stored.id, json.loads(stored.settings)) == (row.id, {"kind": "'thing'"})


def test_disable_and_enable_tell_whether_they_changed_something(database):
    install()
    assert packs.disable("default", "generic", actor=ACTOR)
    assert not packs.disable("default", "generic", actor=ACTOR)
    assert packs.disable("default", "generic", actor=ACTOR, discard=True)
    assert packs.enable("default", "generic", actor=ACTOR)
    row = Pack.objects.get()
    assert (row.state, row.discard_when_disabled) == ("installed", False)


def test_remove_retires_routes_and_closes_endpoints_and_a_later_install_takes_the_slug_back(database):
    old, _ = with_endpoint_and_route()
    packs.remove("default", "generic", actor=ACTOR)
    assert Pack.objects.get().state == "removed"
    assert Endpoint.objects.get().state == "removed"
    assert endpoints.lines("default") == []
    assert routes.current("default", "things") is None
    again = install()
    endpoints.create("default", EndpointDraft("generic", "in", (Secret("t" * 40),)), actor=ACTOR)
    endpoint = Endpoint.objects.get()
    assert again.id != old.id
    assert (endpoint.pack_id, endpoint.state) == (again.id, "enabled")


def test_a_pack_with_receipts_that_wait_for_the_router_is_not_removed(database):
    row, _ = with_endpoint_and_route()
    factories.receipt(row, {"id": "1"})
    with pytest.raises(InstallationRefused, match="has 1 receipts that are not routed yet"):
        packs.remove("default", "generic", actor=ACTOR)
    assert Pack.objects.get().state == "installed"


def test_what_is_not_installed_is_named(database):
    install()
    for change in (packs.upgrade, packs.disable, packs.enable, packs.remove):
        with pytest.raises(NotFound, match="pack 'hubspot' is not installed in namespace 'default'; installed are: generic"):
            change("default", "hubspot", actor=ACTOR)
