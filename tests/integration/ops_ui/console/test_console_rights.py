"""Every action of the console, found by its URL, and each role, each method, with and without a CSRF token, forged ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from connectors.models import AuditEntry, Namespace, Pack, Receipt, Route
from connectors.operations import bulk_jobs
from projection.bulk import jobs
from projection.bulk.job_rows import JobKind
from projection.database.clock import now
from projection.limits import circuit_breaker
from projection.models import Destination, LaneHold, WorkItem
from projection.states import State
from tests.conftest import KEPT_TABLES
from tests.support import console_world, factories, jobs_by_hand, rows

pytestmark = pytest.mark.usefixtures("database")

UNWATCHED = {*KEPT_TABLES, "django_session", "auth_user", "auth_user_groups", "auth_user_user_permissions"}
"""Tables that a log-in writes to."""
FORGED: dict[str, Any] = {"work_id": "evt:" + "0" * 64, "lane_key": "0" * 64}
"""Arguments of URLs that name nothing; numbers are 0."""


@dataclass(frozen=True)
class Action:
    """One state-changing URL."""

    name: str
    permission: str
    arguments: tuple[str, ...]

    def url(self, **known: Any) -> str:
        return reverse(f"admin:{self.name}", kwargs={name: known.get(name, FORGED.get(name, 0)) for name in self.arguments})


def every_action() -> list[Action]:
    """The views of the console that ask for a right before they act."""
    found = []
    for pattern in admin.site.get_urls():
        if isinstance(pattern, URLPattern) and (permission := getattr(pattern.callback, "permission", None)):
            found.append(Action(str(pattern.name), permission, tuple(pattern.pattern.converters)))
    return found


ACTIONS = every_action()
each_action = pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)


def everything() -> dict[str, list[Any]]:
    """All rows of all tables, but those of log-ins."""
    with connection.cursor() as cursor:
        found = {}
        for table in connection.introspection.table_names(cursor):
            if table.lower() not in UNWATCHED:
                cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
                found[table] = sorted(map(repr, cursor.fetchall()))
        return found


@pytest.fixture
def world(database: None) -> console_world.World:
    return console_world.build()


def form(world: console_world.World) -> dict[str, Any]:
    """What makes any action succeed for those who may."""
    return {
        "work": [world.dead],
        "what": "matching",
        "reason": "r",
        "rate": "7",
        "preview": world.preview,
        "name": "default",
        "until": "",
    }


def target(action: Action, world: console_world.World) -> str:
    known = {"work_id": world.work, "lane_key": world.lane, "job_id": world.job, "preview_id": world.preview}
    return action.url(**known, receipt_id=world.receipt)


def test_there_are_actions_to_look_at() -> None:
    assert {success.name for success in SUCCESSES} <= {action.name for action in ACTIONS}


@each_action
def test_nothing_changes_without_the_right_the_method_the_token_or_an_id(action: Action, world: console_world.World) -> None:
    before = everything()
    url, forged = target(action, world), action.url()
    for status, browser in strangers(action):
        for path in (url, forged):
            assert browser.post(path, form(world)).status_code == status, path
    strict = console_world.client("administrator", enforce_csrf_checks=True)
    assert strict.post(url, form(world)).status_code == 403
    for method in (strict.get, strict.head, strict.put, strict.delete, strict.patch):
        assert method(url).status_code in (403, 405), method
    assert everything() == before
    client = Client()
    client.force_login(User.objects.get(username="administrator"))
    names = dict.fromkeys(form(world), "0") | {"reason": "r", "what": "chosen", "work": ["nothing", "é"]}
    assert client.post(forged, names).status_code in (200, 302, 404)
    assert apart_from_previews(everything()) == apart_from_previews(before)


def strangers(action: Action) -> list[tuple[int, Client]]:
    """Who may not act, with the answer that they get: nobody, somebody who is not staff, staff without rights, those who may look."""
    outsider = Client()
    outsider.force_login(console_world.user("administrator", name="outsider", is_staff=False))
    found = [(302, Client()), (302, outsider), (403, console_world.client(None))]
    return found if may("viewer", action.permission) else [*found, (403, console_world.client("viewer"))]


def apart_from_previews(found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """A preview of nothing is made, and says so."""
    return {table: [row for row in rows if "'preview'" not in str(row)] for table, rows in found.items()}


@each_action
def test_a_right_alone_is_what_an_action_needs(action: Action, world: console_world.World) -> None:
    """No group's name matters: who has its right and no other is let in, and a member of all groups without it is not."""
    app, _, codename = action.permission.partition(".")
    right = Permission.objects.get(content_type__app_label=app, codename=codename)
    alone = console_world.user(None, name="alone")
    alone.user_permissions.add(right)
    browser = Client()
    browser.force_login(alone)
    if action.name not in ASK_TWICE:
        assert browser.post(target(action, world), form(world)).status_code in (200, 302, 404)
    stranger = console_world.user("operator", name="stranger")
    stranger.groups.clear()
    stranger.user_permissions.set(Permission.objects.exclude(id=right.id))
    browser = Client()
    browser.force_login(stranger)
    assert browser.post(target(action, world), form(world)).status_code == 403


ASK_TWICE = {"count_preview"}
"""Besides its own right this one needs that of the preview's kind."""


def may(group: str, permission: str) -> bool:
    app, _, codename = permission.partition(".")
    return Group.objects.filter(name=group, permissions__codename=codename, permissions__content_type__app_label=app).exists()


def test_a_viewer_has_no_right_to_act() -> None:
    acting = {action.permission for action in ACTIONS} - {"projection.view_workitem"}
    assert not [permission for permission in sorted(acting) if may("viewer", permission)]


def test_who_could_release_lanes_still_can() -> None:
    holders = Group.objects.create(name="lane keepers")
    holders.permissions.add(Permission.objects.get(codename="hold_lane"))
    person = console_world.user(None, name="keeper")
    person.user_permissions.add(Permission.objects.get(codename="hold_lane"))
    import_module("ops_ui.migrations.0006_rights_of_operators").give_rights(apps, None)
    assert holders.permissions.filter(codename="release_lane").exists()
    assert User.objects.get(username="keeper").has_perm("projection.release_lane")
    holders.delete()


# ---- what succeeds leaves an entry with its user


@dataclass(frozen=True)
class Success:
    """`prepare` makes what is acted on and gives the URL's arguments and the form; `changed` tells whether it happened."""

    name: str
    entry: str
    prepare: Callable[[], tuple[dict[str, Any], dict[str, Any]]]
    changed: Callable[[], bool]


def work(state: str) -> WorkItem:
    return rows.work_row(rows.event_row(rows.PAGES), state)


def dead() -> tuple[dict[str, Any], dict[str, Any]]:
    facts = factories.route(factories.install(), "contact", mode="projection")
    return {}, {"work": [rows.work_row(rows.event_row(facts), State.DEAD).work_id]}


def discarded() -> tuple[dict[str, Any], dict[str, Any]]:
    prepared = dead()
    WorkItem.objects.update(discarded_at=now())
    return prepared


def waiting(state: str) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
    return lambda: ({"work_id": work(state).work_id}, {})


def lane(*, held: bool) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
    def prepare() -> tuple[dict[str, Any], dict[str, Any]]:
        key = work(State.PENDING).lane_key
        if held:
            LaneHold.objects.create(namespace="default", lane_key=key, lane="contact:42", reason="r", held_by="a", held_at=now())
        return {"lane_key": key}, {}

    return prepare


def stop(kind: str, *, paused: bool) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
    def prepare() -> tuple[dict[str, Any], dict[str, Any]]:
        factories.route(factories.install(), "contact")
        if paused:
            {"namespace": Namespace, "pack": Pack, "route": Route}[kind].objects.update(paused_at=now())
        return {}, {"name": {"namespace": "default", "pack": "default/generic", "route": "default/contact"}[kind]}

    return prepare


def is_paused(model: Any) -> Callable[[], bool]:
    return lambda: bool(model.objects.get().is_paused)


def quarantined() -> tuple[dict[str, Any], dict[str, Any]]:
    return {"receipt_id": factories.receipt(factories.install(), "{}", state="quarantined").id}, {}


def parked() -> tuple[dict[str, Any], dict[str, Any]]:
    Destination.objects.create(
        name_key=circuit_breaker.key_of("crm"),
        name="crm",
        state="open",
        failures=5,
        openings=1,
        parked_at=now(),
        parked_until=now().replace(year=2099),
        last_error="x",
    )
    return {}, {"name": "crm"}


def job(*, paused: bool = False) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
    def prepare() -> tuple[dict[str, Any], dict[str, Any]]:
        made = jobs.make(JobKind.REPLAY, "{}", actor="a", rate=0)
        jobs.confirm(made.id, actor="a", reason="r")
        if paused:
            jobs.pause(made.id, actor="a", reason="r")
        return {"job_id": made.id}, {"rate": "7"}

    return prepare


def job_is(member: str, value: Any) -> Callable[[], bool]:
    return lambda: getattr(jobs.newest(1)[0], member) == value


def preview(kind: JobKind) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
    return lambda: ({}, {"preview": jobs_by_hand.preview(kind).id})


SUCCESSES = (
    Success("replay", "work.replay", dead, lambda: WorkItem.objects.count() == 2),
    Success("discard", "work.discard", dead, lambda: WorkItem.objects.exclude(discarded_at=None).count() == 1),
    Success("restore", "work.restore", discarded, lambda: WorkItem.objects.filter(discarded_at=None).count() == 1),
    Success("retry_now", "work.retry_now", waiting(State.RETRY), lambda: WorkItem.objects.get().run_after <= now()),
    Success("cancel_work", "work.cancel", waiting(State.PENDING), lambda: WorkItem.objects.get().state == State.CANCELLED),
    Success("hold_lane", "lane.hold", lane(held=False), LaneHold.objects.exists),
    Success("release_lane", "lane.release", lane(held=True), lambda: not LaneHold.objects.exists()),
    Success("reroute_receipt", "receipt.reroute", quarantined, lambda: True),
    Success("reread_receipt", "receipt.reread", quarantined, lambda: Receipt.objects.get().state == "pending"),
    Success("pause_namespace", "namespace.pause", stop("namespace", paused=False), is_paused(Namespace)),
    Success("pause_pack", "pack.pause", stop("pack", paused=False), is_paused(Pack)),
    Success("pause_route", "route.pause", stop("route", paused=False), is_paused(Route)),
    Success("resume_namespace", "namespace.resume", stop("namespace", paused=True), lambda: not is_paused(Namespace)()),
    Success("resume_pack", "pack.resume", stop("pack", paused=True), lambda: not is_paused(Pack)()),
    Success("resume_route", "route.resume", stop("route", paused=True), lambda: not is_paused(Route)()),
    Success("try_destination", "destination.retry", parked, lambda: circuit_breaker.end_park("crm") is False),
    Success("pause_job", "job.pause", job(), job_is("state", "paused")),
    Success("resume_job", "job.resume", job(paused=True), job_is("state", "running")),
    Success("cancel_job", "job.cancel", job(), job_is("state", "cancelled")),
    Success("throttle_job", "job.throttle", job(), job_is("rate", 7)),
    Success("replay_start", "job.start", preview(JobKind.REPLAY), job_is("kind", "replay")),
    Success("discard_start", "job.start", preview(JobKind.DISCARD), job_is("kind", "discard")),
)


@pytest.mark.parametrize("success", SUCCESSES, ids=lambda success: success.name)
@pytest.mark.parametrize("group", ["operator", "administrator"])
def test_what_succeeds_leaves_an_entry_with_its_user_reason_and_count(success: Success, group: str) -> None:
    (action,) = (one for one in ACTIONS if one.name == success.name)
    arguments, given = success.prepare()
    response = console_world.client(group).post(action.url(**arguments), {"reason": "because", **given})
    assert response.status_code == 302
    entry = AuditEntry.objects.get(action=success.entry)
    assert (entry.actor, entry.reason, entry.count) == (group, "because", 1)
    assert success.changed()
    assert bulk_jobs.jobs is jobs


def test_the_ingress_alone_is_exempt_from_tokens() -> None:
    exempt = set()

    def walk(patterns: Any, prefix: str) -> None:
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                if getattr(pattern.callback, "csrf_exempt", False):
                    exempt.add(prefix + str(pattern.pattern))
            else:
                walk(pattern.url_patterns, prefix + str(pattern.pattern))

    walk(get_resolver().url_patterns, "")
    assert exempt
    assert all(url.startswith(("ingress/", "demo/")) for url in exempt), exempt  # the demo's receivers take what flows post
