"""Users of the console: three roles by choice, each change audited, and no way from an administrator to a superuser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.test import Client
from django.urls import reverse

from connectors.models import AuditEntry
from ops_ui.console.users import accounts
from ops_ui.console.users.accounts import UserRefused
from tests.support import console_world
from tests.support.rivals import Rival

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def client() -> Client:
    return console_world.client("administrator")


def messages_of(response: Any) -> list[str]:
    return [str(one) for one in response.context["messages"]]


def made(client: Client, name: str = "ada", role: str = "viewer") -> tuple[User, str]:
    """A new user, and the password that the page showed."""
    response = client.post("/admin/users/create/", {"username": name, "role": role, "reason": "joins the team"})
    found = re.search(r"<code>([\w-]{20,})</code>", response.content.decode())
    assert found, messages_of(response)
    assert "no-store" in response.headers["Cache-Control"]
    return User.objects.get(username=name), found[1]


def post(client: Client, user: User, verb: str, **form: str) -> list[str]:
    return messages_of(client.post(f"/admin/users/{user.pk}/{verb}/", {"reason": "because", **form}, follow=True))


@pytest.mark.parametrize("role", ["viewer", "operator", "administrator", "none"])
def test_a_new_user_logs_in_with_the_password_that_was_shown_once(client: Client, role: str) -> None:
    user, password = made(client, role=role)
    assert (user.is_staff, user.is_superuser, user.user_permissions.count()) == (True, False, 0)
    assert [one.name for one in user.groups.all()] == ([] if role == "none" else [role])
    other = Client()
    assert other.post("/admin/login/", {"username": "ada", "password": password}).status_code == 302
    assert other.get("/admin/").status_code == 200
    assert password not in client.get(f"/admin/users/{user.pk}/").content.decode()
    entry = AuditEntry.objects.get(action="user.create")
    assert (entry.actor, entry.target, entry.reason, json.loads(entry.detail)) == (
        "administrator",
        "ada",
        "joins the team",
        {"role": role},
    )


@pytest.fixture
def foreign() -> Iterator[Group]:
    """A group that somebody made on the command line. (The clean-up between tests leaves groups.)"""
    made = Group.objects.create(name="foreign")
    made.permissions.add(Permission.objects.get(codename="delete_user"))
    yield made
    made.delete()


def test_a_role_is_changed_and_everything_beside_it_is_taken_away(client: Client, foreign: Group) -> None:
    user, _ = made(client)
    user.user_permissions.add(Permission.objects.get(codename="change_user"))
    user.groups.add(foreign)
    post(client, user, "change", role="operator", active="1")
    assert [one.name for one in user.groups.all()] == ["operator"]
    assert not user.user_permissions.exists()
    post(client, user, "change", role="none")
    user.refresh_from_db()
    assert (user.is_active, user.groups.count()) == (False, 0)
    first, second = [json.loads(one.detail) for one in AuditEntry.objects.filter(action="user.change").order_by("id")]
    assert first == {"before": {"role": "viewer", "active": True}, "after": {"role": "operator", "active": True}}
    assert second["after"] == {"role": "none", "active": False}


def test_a_reset_password_ends_the_sessions_of_the_old_one(client: Client) -> None:
    user, password = made(client)
    theirs = Client()
    theirs.post("/admin/login/", {"username": "ada", "password": password})
    response = client.post(f"/admin/users/{user.pk}/password/", {"reason": "lost"})
    found = re.search(r"<code>([\w-]{20,})</code>", response.content.decode())
    assert found
    assert found[1] != password
    assert theirs.get("/admin/").status_code == 302
    assert theirs.post("/admin/login/", {"username": "ada", "password": found[1]}).status_code == 302
    assert AuditEntry.objects.filter(action="user.reset_password", target="ada", reason="lost").count() == 1


def test_a_user_is_deleted_and_the_audit_log_keeps_the_name(client: Client) -> None:
    user, _ = made(client)
    assert post(client, user, "delete") == ["User ada deleted."]
    assert not User.objects.filter(username="ada").exists()
    assert AuditEntry.objects.filter(target="ada").count() == 2
    assert client.get(f"/admin/users/{user.pk}/").status_code == 404
    assert client.post(f"/admin/users/{user.pk}/delete/", {"reason": "again"}).status_code == 404


@pytest.mark.parametrize("verb", ["change", "password", "delete"])
def test_an_administrator_does_nothing_to_a_superuser(client: Client, verb: str) -> None:
    root = User.objects.create_superuser("root", password="a-long-password-of-root")
    before = User.objects.filter(pk=root.pk).values().get()
    assert "only a superuser may do this" in post(client, root, verb, role="none")[0]
    assert User.objects.filter(pk=root.pk).values().get() == before
    page = client.get(f"/admin/users/{root.pk}/").content.decode()
    assert "can be changed only by a superuser" in page
    assert 'method="post" action="/admin/users/' not in page


@pytest.mark.parametrize("extra", [{"is_superuser": "on"}, {"is_superuser": "1", "is_staff": "1", "user_permissions": "1"}])
@pytest.mark.parametrize("role", ["superuser", "root", "", "administrator' OR 1"])
def test_no_form_makes_a_superuser_or_gives_anything_but_a_role(client: Client, role: str, extra: dict[str, str]) -> None:
    response = client.post("/admin/users/create/", {"username": "eve", "role": role, "reason": "x", **extra}, follow=True)
    assert "is not a role" in messages_of(response)[0]
    user, _ = made(client)
    post(client, user, "change", role=role, active="1", **extra)
    post(client, user, "change", role="administrator", active="1", **extra)
    user.refresh_from_db()
    assert (user.is_superuser, user.user_permissions.count()) == (False, 0)
    assert not User.objects.filter(is_superuser=True).exists()


def test_nobody_changes_or_deletes_oneself(client: Client) -> None:
    oneself = User.objects.get(username="administrator")
    for verb in ("change", "delete"):
        assert "ask another administrator" in post(client, oneself, verb, role="administrator", active="1")[0]
    assert 'action="/admin/users/' not in client.get(f"/admin/users/{oneself.pk}/").content.decode()


def test_two_administrators_who_demote_each_other_at_once_leave_one() -> None:
    ada, bob = console_world.user("administrator", name="ada"), console_world.user("administrator", name="bob")

    def demote(who: User, by: User) -> User:
        return accounts.change(who.pk, "viewer", is_active=True, actor=by, reason="x")

    with transaction.atomic():
        demote(bob, ada)
        rival = Rival(lambda: demote(ada, bob))
        rival.waits()
    with pytest.raises(UserRefused, match="the last administrator"):
        rival.result()
    assert [one.username for one in accounts.users().filter(role="administrator")] == ["ada"]


def test_the_last_administrator_stays(client: Client) -> None:
    user, _ = made(client, role="administrator")
    User.objects.filter(username="administrator").update(is_active=False)
    other = Client()
    other.force_login(User.objects.create_superuser("root"))
    User.objects.filter(username="root").update(is_superuser=False)
    Group.objects.get(name="administrator").user_set.add(User.objects.get(username="root"))
    assert post(other, user, "change", role="viewer", active="1") == ["Saved. ada can log in; role: viewer."]
    root = User.objects.get(username="root")
    ada = Client()
    ada.force_login(user)
    user.user_permissions.add(Permission.objects.get(codename="change_user"), Permission.objects.get(codename="delete_user"))
    for verb in ("change", "delete"):
        assert "the last administrator" in post(ada, root, verb, role="viewer", active="1")[0]
    assert User.objects.get(username="root").groups.filter(name="administrator").exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "is not a user name"), ("a b", "is not a user name"), ("<b>", "is not a user name"), ("a" * 151, "longer than 150"),
     ("ADMINISTRATOR", "already a user")],
)  # fmt: skip
def test_a_name_that_cannot_be_one_is_refused_in_a_sentence(client: Client, name: str, reason: str) -> None:
    response = client.post("/admin/users/create/", {"username": name, "role": "viewer", "reason": "x"}, follow=True)
    assert reason in messages_of(response)[0]
    assert User.objects.count() == 1


def test_each_change_needs_a_reason(client: Client) -> None:
    user, _ = made(client)
    for verb in ("change", "password", "delete"):
        assert "enter a reason" in post(client, user, verb, reason=" ", role="operator")[0]
    assert AuditEntry.objects.filter(target="ada").count() == 1
    assert [one.name for one in user.groups.all()] == ["viewer"]


@pytest.mark.parametrize("group", ["viewer", "operator"])
def test_whoever_is_no_administrator_sees_and_does_nothing_here(client: Client, group: str) -> None:
    user, _ = made(client)
    theirs = console_world.client(group)
    assert theirs.get("/admin/users/").status_code == 403
    for verb in ("create", f"{user.pk}/change", f"{user.pk}/password", f"{user.pk}/delete"):
        assert theirs.post(f"/admin/users/{verb}/", {"reason": "x", "role": "administrator", "username": "eve"}).status_code == 403


def test_djangos_own_pages_of_users_and_groups_are_gone(client: Client) -> None:
    assert [model for model in admin.site._registry if model._meta.app_label in ("auth", "django_q")] == []
    root = Client()
    root.force_login(User.objects.create_superuser("root"))
    for path in ("/admin/auth/user/", "/admin/auth/user/add/", "/admin/auth/group/", "/admin/auth/user/1/password/"):
        assert root.get(path).status_code == 404
    assert "/admin/users/" in client.get(reverse("admin:index")).content.decode()


@pytest.mark.parametrize("password", ["weak-user", "WEAK-USER1", "19741123", "password", "short"])
def test_a_weak_password_is_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password, User(username="weak-user"))
