"""HEADRACE_CONSOLE_READ_ONLY: every address of the console, Django's own among them, shows what it shows and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern
from pytest_django import Settings

from connectors.models import AuditEntry
from ops_ui.console.base import read_only
from tests.integration.ops_ui.console.test_console_rights import ACTIONS, form, target
from tests.support import console_world
from tests.support.console_world import World

SESSIONS = "django_session"
METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
WHY = read_only.SENTENCE


@pytest.fixture
def world(database: None, settings: Settings) -> World:
    """Something on every page, also on Django's own, and a console that changes nothing."""
    made = console_world.build()
    User.objects.create_superuser("root", password=console_world.PASSWORD)
    settings.HEADRACE_CONSOLE_READ_ONLY = True
    return made


def browser(name: str) -> Client:
    made = Client()
    made.force_login(User.objects.filter(username=name).first() or console_world.user(name))
    return made


def everything() -> dict[str, list[str]]:
    """All rows of all tables but those of sessions."""
    with connection.cursor() as cursor:
        found = {}
        for table in connection.introspection.table_names(cursor):
            if table != SESSIONS:
                cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
                found[table] = sorted(map(repr, cursor.fetchall()))
        return found


def addresses(world: World) -> list[str]:
    """An address of each pattern below /admin/, with keys that name something."""
    known: dict[str, Any] = {
        "work_id": world.work,
        "lane_key": world.lane,
        "receipt_id": world.receipt,
        "event_id": world.event,
        "delivery_id": world.unverified,
        "record_id": world.record,
        "route_id": world.route,
        "job_id": world.job,
        "preview_id": world.preview,
        "endpoint_id": world.endpoint,
        "connection_id": world.connection,
        "entry_id": world.entry,
        "pack_id": 1,
        "user_id": User.objects.get(username="root").pk,
        "content_type_id": 1,
        "id": User.objects.get(username="root").pk,
        "app_label": "auth",
        "url": "x/",
    }
    keys = {"user": known["id"], "group": Group.objects.all()[0].pk}

    def walk(patterns: Any, prefix: str) -> Iterator[str]:
        for pattern in patterns:
            route = str(pattern.pattern) if isinstance(pattern.pattern, RoutePattern) else f"{known['app_label']}/"
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, prefix + route)
                continue
            of_model = prefix.rstrip("/").rpartition("/")[2]
            for name, converter in pattern.pattern.converters.items():
                value = keys.get(of_model, 1) if name == "object_id" else known[name]
                kind = {"IntConverter": "int:", "AsciiConverter": "ascii:", "PathConverter": "path:", "StringConverter": "str:"}
                for written in (f"<{kind[type(converter).__name__]}{name}>", f"<{name}>"):
                    route = route.replace(written, str(value))
            yield prefix + route

    (console,) = [one for one in get_resolver().url_patterns if isinstance(one, URLResolver) and str(one.pattern) == "admin/"]
    return ["/admin/" + path for path in walk(console.url_patterns, "")]


def test_the_walk_goes_everywhere(world: World) -> None:
    found = addresses(world)
    assert not any("<" in one or "(" in one for one in found)
    assert len(found) >= len([one for one in admin.site.get_urls() if isinstance(one, URLPattern)])
    for part in (
        "/users/create/",
        "/password/",
        "/dead-letters/replay/",
        "/audit/",
        "/login/",
    ):
        assert any(part in one for one in found), part


@pytest.mark.parametrize("name", ["root", "administrator"])
def test_no_address_of_the_console_writes(world: World, name: str) -> None:
    client = browser(name)
    before = everything()
    given = form(world) | {"username": "eve", "post": "yes"}
    for path in addresses(world):
        for method in METHODS:
            leaves = path in ("/admin/login/", "/admin/logout/")
            if leaves and method == "post":
                continue
            response = client.generic(method.upper(), path) if method != "post" else client.post(path, given)
            assert response.status_code < 500, (method, path)
            if method in ("post", "put", "patch", "delete") and not leaves:
                assert response.status_code == 403, (method, path)
                assert WHY in response.content.decode(), (method, path)
            response.close()
    assert everything() == before


def test_each_action_works_again_without_the_setting(world: World, settings: Settings) -> None:
    client = browser("administrator")
    before = everything()
    for action in ACTIONS:
        assert client.post(target(action, world), form(world)).status_code == 403, action.name
    assert everything() == before
    settings.HEADRACE_CONSOLE_READ_ONLY = False
    for action in ACTIONS:
        assert client.post(target(action, world), form(world)).status_code != 403, action.name
    assert everything() != before


class Offers(HTMLParser):
    """What a page offers that would be posted: buttons of such forms, and requests of htmx."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.posts = False
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.posts = given.get("method") == "post" and given.get("id") != "logout-form"
        button = tag == "button" and given.get("type", "submit") == "submit"
        if (button or (tag == "input" and given.get("type") == "submit")) and self.posts:
            self.found.append(f"{tag} {given}")
        if "hx-post" in given or ("formaction" in given):
            self.found.append(f"{tag} {given}")

    def handle_endtag(self, tag: str) -> None:
        self.posts = self.posts and tag != "form"


@pytest.mark.parametrize("name", ["root", "administrator"])
def test_each_page_has_the_banner_and_offers_no_change(world: World, name: str) -> None:
    client = browser(name)
    own = [*world.paths.values(), f"/admin/dead-letters/?show=all&q={world.dead}"]
    users = ["/admin/users/", f"/admin/users/{User.objects.get(username='root').pk}/"]
    for path in (*own, *users):
        response = client.get(path)
        assert response.status_code == 200, path
        page = response.content.decode()
        assert WHY in page, path
        assert Offers(page).found == [], path
        assert "/admin/password_change/" not in page


def test_offers_are_seen_where_there_are_some(world: World, settings: Settings) -> None:
    settings.HEADRACE_CONSOLE_READ_ONLY = False
    client = browser("root")
    for path in (world.paths["dead-letters"], world.paths["packs"], world.paths["route-publish"]):
        page = client.get(path).content.decode()
        assert Offers(page).found, path
        assert "Read-only" not in page


def test_one_logs_in_and_out(world: World) -> None:
    client = Client()
    assert WHY in client.get("/admin/login/").content.decode()
    console_world.user("operator")
    given = {"username": "operator", "password": console_world.PASSWORD, "next": "/admin/"}
    assert client.post("/admin/login/", given).status_code == 302
    assert client.get("/admin/").status_code == 200
    assert client.post("/admin/logout/").status_code == 200
    assert client.get("/admin/").status_code == 302


def test_a_form_of_djangos_own_says_why_it_is_not_there(world: World) -> None:
    for path in ("/admin/password_change/",):
        response = browser("root").get(path)
        assert (response.status_code, WHY in response.content.decode()) == (403, True), path


def test_an_export_is_told_in_the_audit_trail_all_the_same(world: World) -> None:
    response: Any = browser("administrator").get("/admin/audit/", {"actor": "nobody", "export": "json"})
    b"".join(response.streaming_content)
    assert [one.action for one in AuditEntry.objects.order_by("-id")[:2]] == ["list.exported", "list.export"]


def test_what_is_not_the_console_goes_on(world: World, client: Client) -> None:
    response = client.post("/ingress/default/nothing", json.dumps({}), content_type="application/json")
    assert response.status_code == 404
    assert WHY not in response.content.decode()
