"""What the actions of the console share: POST with a CSRF token, each behind its own right, each leaving an audit entry.

An outcome is a message on the page that follows: a refusal is a sentence, never an error page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec
from urllib.parse import urlsplit

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from projection.refusals import Refused

P = ParamSpec("P")
Action = Callable[Concatenate[HttpRequest, P], HttpResponse]


REASON_CHARACTERS: Final = 500


def action(permission: str) -> Callable[[Action[P]], Action[P]]:
    """A state-changing view: 405 for anything but POST, 403 without its right. The CSRF check is the site's (`admin_view`).

    `permission` becomes an attribute of the view: the tests ask every action of the console for its right.
    """

    def decorate(view: Action[P]) -> Action[P]:
        @wraps(view)
        def inner(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            demand(request, permission)
            return view(request, *args, **kwargs)

        decorated = require_POST(inner)
        decorated.permission = permission  # type: ignore[attr-defined]  # read by tests, and by whoever lists the actions
        return decorated

    return decorate


def demand(request: HttpRequest, permission: str) -> None:
    """403 without the right."""
    if not request.user.has_perm(permission):
        raise PermissionDenied(
            f"You do not have permission to do this ({permission}). Ask an administrator for a role that has it."
        )


def actor_of(request: HttpRequest) -> str:
    return request.user.get_username()


def reason_of(request: HttpRequest, undone: str) -> str | None:
    """The reason that the form gives. None: there is none, and a message says so; `undone` is what did not happen."""
    reason = request.POST.get("reason", "").strip()[:REASON_CHARACTERS]
    if not reason:
        messages.error(request, f"{undone}: enter a reason for the audit log.")
    return reason or None


def tell(request: HttpRequest, refused: Refused | None, done: str) -> None:
    """The outcome of an action on one thing, as a message."""
    if refused is None:
        messages.success(request, done)
    else:
        messages.warning(request, f"Nothing was changed: {refused.reason.removesuffix('.')}.")


def back(request: HttpRequest, otherwise: str, *arguments: str | int) -> HttpResponse:
    """To the page that the form was on (`next`), if it is one of ours; else to the page named `otherwise`."""
    target = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(target, allowed_hosts=None) and urlsplit(target).path.startswith(reverse("admin:index"))
    return HttpResponseRedirect(target if ours else reverse(otherwise, args=arguments))
