"""Users of the console: created, changed and deleted by administrators, each time with an entry in the audit log.

A role is one of Django's three groups of the console. What a user could do beside it (other permissions) is taken away with the next
change. A superuser, which only the command line makes, is touched by superusers alone.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Case, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from connectors import audit_log

NO_ROLE: Final = "none"
ROLES: Final = ("administrator", "operator", "viewer")
"""The one that may most first: of a user with several it is the one that counts."""
SUPERUSER: Final = "superuser"
NAME_CHARACTERS: Final = 150
PASSWORD_BYTES: Final = 15
"""Twenty characters that nobody guesses."""


class UserRefused(ValueError):
    """Nothing was changed; the message says why, and what to do."""


def users() -> QuerySet[Any]:
    """Every user with its `role`: one of ROLES, `superuser`, or `none`. One query."""
    rank = Case(*(When(name=name, then=place) for place, name in enumerate(ROLES)))
    group = Group.objects.filter(user=OuterRef("pk"), name__in=ROLES).order_by(rank).values("name")[:1]
    role = Case(When(is_superuser=True, then=Value(SUPERUSER)), default=Coalesce(Subquery(group), Value(NO_ROLE)))
    return User.objects.annotate(role=role)


@transaction.atomic
def create(name: str, role: str, *, actor: User, reason: str) -> tuple[User, str]:
    """A new user who may log in, and the password, which is told nowhere else. Raises UserRefused."""
    name = name.strip()
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError:
        raise UserRefused(f"{name!r} is not a user name; use letters, digits and @ . + - _") from None
    if len(name) > NAME_CHARACTERS:
        raise UserRefused(f"the user name is longer than {NAME_CHARACTERS} characters")
    if User.objects.filter(username__iexact=name).exists():
        raise UserRefused(f"there is already a user {name}; choose another name")
    password = _password()
    made = User(username=name, is_staff=True)
    made.set_password(password)
    made.save()
    _give(made, _known(role))
    audit_log.record(actor.get_username(), "user.create", name, reason, detail={"role": role})
    return made, password


@transaction.atomic
def change(user_id: int, role: str, *, is_active: bool, actor: User, reason: str) -> User:
    """Another role, or none; allowed to log in or not. Raises UserRefused, and User.DoesNotExist."""
    found = _locked(user_id, actor)
    before = {"role": users().get(pk=found.pk).role, "active": found.is_active}
    if found.is_superuser:
        raise UserRefused("a superuser has every permission; change it on the command line: script/manage shell")
    if found.pk == actor.pk:
        raise UserRefused("you cannot change your own role; ask another administrator")
    found.is_active, found.is_staff = is_active, True
    found.save()
    found.user_permissions.clear()
    _give(found, _known(role))
    _keep_one_administrator()
    detail = {"before": before, "after": {"role": role, "active": is_active}}
    audit_log.record(actor.get_username(), "user.change", found.username, reason, detail=detail)
    return found


@transaction.atomic
def reset_password(user_id: int, *, actor: User, reason: str) -> tuple[User, str]:
    """A new password, which is told nowhere else; whoever is logged in by the old one is logged out. Raises UserRefused."""
    found = _locked(user_id, actor)
    password = _password()
    found.set_password(password)
    found.save()
    audit_log.record(actor.get_username(), "user.reset_password", found.username, reason)
    return found, password


@transaction.atomic
def delete(user_id: int, *, actor: User, reason: str) -> str:
    """Remove a user for good; entries of the audit log keep the name. The name. Raises UserRefused."""
    found = _locked(user_id, actor)
    if found.pk == actor.pk:
        raise UserRefused("you cannot delete yourself; ask another administrator")
    name = found.username
    found.delete()
    _keep_one_administrator()
    audit_log.record(actor.get_username(), "user.delete", name, reason)
    return name


def _locked(user_id: int, actor: User) -> User:
    found = User.objects.select_for_update().get(pk=user_id)
    if found.is_superuser and not actor.is_superuser:
        raise UserRefused(f"{found.username} is a superuser; only a superuser may do this")
    return found


def _known(role: str) -> str:
    if role not in (NO_ROLE, *ROLES):
        raise UserRefused(f"{role!r} is not a role; choose {', '.join(ROLES)} or {NO_ROLE}")
    return role


def _give(user: User, role: str) -> None:
    """This role and no other group."""
    user.groups.set([] if role == NO_ROLE else [Group.objects.get(name=role)])


def _keep_one_administrator() -> None:
    """Somebody must be left who may do this. Raises UserRefused, which undoes the change.

    One change at a time gets here: two administrators that take the role from each other must not both find the other one left.
    """
    list(Group.objects.select_for_update().filter(name=ROLES[0]))
    if not users().filter(is_active=True, role__in=(SUPERUSER, ROLES[0])).exists():
        raise UserRefused("this is the last administrator who can log in; give another user the role first")


def _password() -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES)
