"""Users: the list with a form for a new one, and one user with what an administrator may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from ops_ui.console.actions import action, reason_of
from ops_ui.console.base import navigation
from ops_ui.console.lists import keyset
from ops_ui.console.pages import Listing, Urls, page, show, show_list
from ops_ui.console.users import accounts
from ops_ui.console.users.accounts import UserRefused
from ops_ui.console.users.table import UserTable

T = TypeVar("T")
CHOICES: Final = (*reversed(accounts.ROLES), accounts.NO_ROLE)


@page(navigation.USERS)
def listing(request: HttpRequest) -> HttpResponseBase:
    """In the order in which they were made."""
    users = Listing(
        title="Users",
        rows=accounts.users(),
        filters=None,
        table=UserTable,
        empty="No users.",
        order=keyset.OLDEST_FIRST,
        template="console/users/users.html",
    )
    return show_list(request, users, {"roles": CHOICES, "may_create": request.user.has_perm("auth.add_user")})


@page(navigation.USERS)
def detail(request: HttpRequest, user_id: int) -> HttpResponseBase:
    return _shown(request, user_id)


def _shown(request: HttpRequest, user_id: int, password: str = "") -> HttpResponse:
    """`password`: the new one, shown this once."""
    one = accounts.users().get(pk=user_id)
    out_of_reach = one.is_superuser and not request.user.is_superuser
    return show(
        request,
        "console/users/user.html",
        one.username,
        one=one,
        roles=CHOICES,
        password=password,
        is_self=one.pk == request.user.pk,
        may_change=request.user.has_perm("auth.change_user") and not out_of_reach,
        may_delete=request.user.has_perm("auth.delete_user") and not out_of_reach and one.pk != request.user.pk,
    )


@action("auth.add_user")
def create(request: HttpRequest) -> HttpResponse:
    """A user named `username` with the role `role`; the answer shows the password once."""

    def act(reason: str) -> tuple[User, str]:
        return accounts.create(request.POST.get("username", ""), request.POST.get("role", ""), actor=_actor(request), reason=reason)

    made = _attempt(request, "No user was created", act)
    return redirect("admin:users") if made is None else _with_password(request, *made)


@action("auth.change_user")
def change(request: HttpRequest, user_id: int) -> HttpResponse:
    role, is_active = request.POST.get("role", ""), request.POST.get("active") == "1"

    def act(reason: str) -> User:
        return accounts.change(user_id, role, is_active=is_active, actor=_actor(request), reason=reason)

    done = _attempt(request, "Nothing was changed", act)
    if done is not None:
        messages.success(request, f"Saved. {done.username} {'can' if is_active else 'cannot'} log in; role: {role}.")
    return redirect("admin:user", user_id)


@action("auth.change_user")
def reset_password(request: HttpRequest, user_id: int) -> HttpResponse:
    def act(reason: str) -> tuple[User, str]:
        return accounts.reset_password(user_id, actor=_actor(request), reason=reason)

    done = _attempt(request, "The password was not reset", act)
    return redirect("admin:user", user_id) if done is None else _with_password(request, *done)


@action("auth.delete_user")
def delete(request: HttpRequest, user_id: int) -> HttpResponse:
    def act(reason: str) -> str:
        return accounts.delete(user_id, actor=_actor(request), reason=reason)

    name = _attempt(request, "The user was not deleted", act)
    if name is None:
        return redirect("admin:user", user_id)
    messages.success(request, f"User {name} deleted.")
    return redirect("admin:users")


def _with_password(request: HttpRequest, user: User, password: str) -> HttpResponse:
    request.here = navigation.USERS  # type: ignore[attr-defined]  # read by the navigation, as pages set it
    return _shown(request, user.pk, password)


def _attempt(request: HttpRequest, undone: str, act: Callable[[str], T]) -> T | None:
    """What `act` returns for the form's reason. None: there was none, or it was refused; a message says why."""
    reason = reason_of(request, undone)
    if reason is None:
        return None
    try:
        return act(reason)
    except UserRefused as refused:
        messages.error(request, f"{undone}: {refused}.")
    except User.DoesNotExist:
        raise Http404("the user was deleted") from None
    return None


def _actor(request: HttpRequest) -> User:
    """Whoever is logged in; an action needs a right, so somebody is."""
    return cast("User", request.user)


URLS: Final[Urls] = (
    ("users/", listing, "users"),
    ("users/create/", create, "create_user"),
    ("users/<int:user_id>/", detail, "user"),
    ("users/<int:user_id>/change/", change, "change_user"),
    ("users/<int:user_id>/password/", reset_password, "reset_user_password"),
    ("users/<int:user_id>/delete/", delete, "delete_user"),
)
