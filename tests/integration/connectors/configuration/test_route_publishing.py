"""Routes: immutable versions, retired by soft deletion."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.configuration import packs, routes, stored_secrets
from connectors.configuration.change import NotFound
from connectors.configuration.routes import RouteDraft, RouteRefused
from connectors.models import AuditEntry, Connection, Namespace, Route
from projection.database import clock
from projection.facts import PER_EVENT, PROJECTION, RateLimit, RetryPolicy, RouteFacts

ACTOR = "test"
DRAFT = RouteDraft(
    key="contact",
    pack_name="generic",
    provider_kinds=("contact.*",),
    event_kind="contact.changed",
    mode=PROJECTION,
    flow="log",
    settle_seconds=5.0,
)


@pytest.fixture
def pack(database):
    return packs.install("default", "generic", actor=ACTOR)


def publish(draft: RouteDraft = DRAFT) -> routes.Published:
    return routes.publish("default", draft, actor=ACTOR)


def test_a_first_publish_is_version_1_and_its_snapshot_carries_its_own_id_and_version(pack):
    published = publish()
    row = Route.objects.get()
    assert published.created
    assert RouteFacts.from_snapshot(row.snapshot) == published.route_facts
    assert (published.route_facts.id, published.route_facts.version) == (row.id, 1)
    assert (row.pack_id, row.is_current, row.deleted_at) == (pack.id, True, None)
    assert (row.companion_pack, row.companion_flow, row.work_type) == ("headrace", "log", "log")


def test_equal_content_writes_no_version_and_no_audit_entry(pack):
    first = publish()
    entries = AuditEntry.objects.count()
    again = publish()
    assert not again.created
    assert again.route_facts == first.route_facts
    assert Route.objects.count() == 1
    assert AuditEntry.objects.count() == entries


def test_a_change_is_a_new_row_and_the_old_row_keeps_everything_but_is_current(pack):
    publish()
    (before,) = Route.objects.values()
    published = publish(replace(DRAFT, settle_seconds=10.0, retry=RetryPolicy(base=1.0)))
    old, new = Route.objects.order_by("version").values()
    assert published.route_facts.version == 2
    assert old == before | {"is_current": False}
    assert (new["is_current"], new["settle_seconds"]) == (True, 10.0)
    assert "settle_seconds: 5.0 → 10.0" in published.changes


@pytest.mark.parametrize(
    "change",
    [
        {"provider_kinds": ("contact.creation",)},
        {"event_kind": "contact.touched"},
        {"flow": "record_table"},
        {"work_type": "sync"},
        {"source_id_case": "fold"},
        {"queue_class": "interactive"},
        {"limit": RateLimit("api", 1, 1.0)},
        {"masks": ("$.email",)},
        {"mode": PER_EVENT, "settle_seconds": 0.0},
        {"mode": PER_EVENT, "settle_seconds": 0.0, "target_lane": "invoice:{id}"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_member_of_the_content_makes_a_new_version(pack, change):
    publish()
    assert publish(replace(DRAFT, **change)).route_facts.version == 2


def test_a_retired_route_stays_readable_and_a_later_publish_goes_on_with_its_versions(pack):
    publish()
    routes.retire("default", "contact", actor=ACTOR, reason="not needed")
    row = Route.objects.get()
    assert routes.current("default", "contact") is None
    assert row.deleted_at is not None
    assert not row.is_current
    assert RouteFacts.from_snapshot(row.snapshot).key == "contact"
    assert publish().route_facts.version == 2
    entry = AuditEntry.objects.get(action="route.retire")
    assert (entry.actor, entry.target, entry.reason) == (ACTOR, "default/contact", "not needed")


def test_retiring_what_is_not_current_names_what_is(pack):
    publish()
    with pytest.raises(NotFound, match="no current route 'other' in namespace 'default'; current routes: contact"):
        routes.retire("default", "other", actor=ACTOR)


def test_a_projection_with_a_target_lane_is_refused(pack):
    with pytest.raises(RouteRefused, match="is a projection but sets target_lane"):
        publish(replace(DRAFT, target_lane="invoice:{id}"))
    assert Route.objects.count() == 0


def test_an_unknown_pack_is_refused_with_the_known_ones(pack):
    with pytest.raises(RouteRefused, match="pack 'nope' is not installed in namespace 'default'; installed are: generic"):
        publish(replace(DRAFT, pack_name="nope"))


def test_http_forward_needs_a_connection_that_exists(pack):
    with pytest.raises(RouteRefused, match="uses http_forward without a connection"):
        publish(replace(DRAFT, flow="http_forward"))
    with pytest.raises(RouteRefused, match="names connection 'crm', which does not exist; known: none"):
        publish(replace(DRAFT, flow="http_forward", connection="crm"))
    connection = Connection.objects.create(namespace="default", name="crm", url="https://h", created_at=clock.now())
    with pytest.raises(RouteRefused, match="connection 'crm' has no secret"):
        publish(replace(DRAFT, flow="http_forward", connection="crm"))
    connection.secrets = stored_secrets.stored([stored_secrets.generated()])
    connection.save()
    assert publish(replace(DRAFT, flow="http_forward", connection="crm")).created


def test_a_misspelt_flow_is_refused_with_the_nearest_name_unless_its_code_may_be_missing(pack):
    draft = replace(DRAFT, flow="record_tabel")
    with pytest.raises(
        RouteRefused, match="flow 'record_tabel' is not installed here; did you mean 'record_table'\\? known: "
    ) as refused:
        publish(draft)
    assert str(refused.value).endswith("if only other hosts have it, add --allow-missing-code")
    assert not Route.objects.exists()
    published = routes.publish("default", draft, actor=ACTOR, allow_missing_code=True)
    assert published.created
    assert "its work waits until its package is added to HEADRACE_APPS" in published.warnings[0]
    with pytest.raises(RouteRefused, match="is not installed here"):
        publish(draft)
    assert publish().warnings == ()


def test_all_faults_of_a_route_are_told_together(pack):
    draft = replace(DRAFT, pack_name="genric", flow="http_forwrd", connection="crm", target_lane="x", mode=PROJECTION)
    with pytest.raises(RouteRefused) as refused:
        publish(draft)
    lines = str(refused.value).splitlines()
    assert len(lines) == 4
    assert "pack 'genric' is not installed in namespace 'default'; did you mean 'generic'? installed are: generic" in lines


def test_the_same_key_in_two_namespaces_is_two_routes(pack):
    packs.install("other", "generic", actor=ACTOR)
    publish()
    assert routes.publish("other", DRAFT, actor=ACTOR).route_facts.version == 1
    assert Namespace.objects.count() == 2
