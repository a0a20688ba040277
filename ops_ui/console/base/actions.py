"""What operators do in the console: POST with a CSRF token, each behind its own right, each leaving an audit entry.

An outcome is a message on the page that follows: a refusal is a sentence, never an error page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, Final, ParamSpec
from urllib.parse import urlsplit

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from connectors.operations import verbs
from ops_ui.console.base.pages import Urls
from projection.refusals import Refused
from projection.replay.decision import Deferred, Replayed
from projection.replay.discard import Discarded

P = ParamSpec("P")
Action = Callable[Concatenate[HttpRequest, P], HttpResponse]

CHOSEN_AT_ONCE: Final = 200
"""Dead items of one request and transaction: a page of them fits well; more is the work of a bulk job, which takes its time."""
REFUSALS_SHOWN: Final = 5
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
        raise PermissionDenied(f"This action needs the right {permission}; ask an administrator for a group.")


def actor_of(request: HttpRequest) -> str:
    return request.user.get_username()


def reason_of(request: HttpRequest, undone: str) -> str | None:
    """The reason that the form gives. None: there is none, and a message says so; `undone` is what did not happen."""
    reason = request.POST.get("reason", "").strip()[:REASON_CHARACTERS]
    if not reason:
        messages.error(request, f"{undone}: it needs a reason, for whoever reads the audit trail later.")
    return reason or None


def tell(request: HttpRequest, refused: Refused | None, done: str) -> None:
    """The outcome of an action on one thing, as a message."""
    if refused is None:
        messages.success(request, done)
    else:
        messages.warning(request, f"Nothing was changed: {refused.reason.removesuffix('.')}.")


@action("projection.replay_workitem")
def replay(request: HttpRequest) -> HttpResponse:
    """Replays the dead items named by `work`, for `reason`; each succeeds or is refused on its own."""
    chosen = _chosen(request, "Nothing was replayed")
    reason = reason_of(request, "Nothing was replayed") if chosen else None
    if chosen and reason:
        retarget = request.POST.get("retarget") == "1"
        results = verbs.replay(chosen, actor=actor_of(request), reason=reason, retarget=retarget)
        done = [one for one in results if isinstance(one, Replayed)]
        if len(done) == 1:
            messages.success(request, f"Replayed as {done[0].replay_work_id}.")
        elif done:
            messages.success(request, f"Replayed {len(done)} dead letters.")
        _tell_left(request, [one for one in results if not isinstance(one, Replayed)], "replayed")
    return back(request, "admin:dead_letters")


@action("projection.discard_workitem")
def discard(request: HttpRequest) -> HttpResponse:
    """Discards the dead items named by `work`, for `reason`; each succeeds or is refused on its own."""
    chosen = _chosen(request, "Nothing was discarded")
    reason = reason_of(request, "Nothing was discarded") if chosen else None
    if chosen and reason:
        results = [verbs.discard(work_id, actor=actor_of(request), reason=reason) for work_id in chosen]
        done = sum(isinstance(one, Discarded) for one in results)
        if done:
            messages.success(request, "Discarded. It stays dead, and is kept as evidence." if done == 1 else f"Discarded {done}.")
        _tell_left(request, [one for one in results if isinstance(one, Refused)], "discarded")
    return back(request, "admin:dead_letters")


def _chosen(request: HttpRequest, undone: str) -> list[str]:
    chosen = list(dict.fromkeys(request.POST.getlist("work")))
    if not chosen:
        messages.error(request, f"{undone}: choose at least one dead letter.")
    elif len(chosen) > CHOSEN_AT_ONCE:
        messages.error(request, f"{undone}: choose at most {CHOSEN_AT_ONCE} here, or all that match a filter.")
        return []
    return chosen


def _tell_left(request: HttpRequest, left: Sequence[Refused | Deferred], verb: str) -> None:
    for one in left[:REFUSALS_SHOWN]:
        messages.warning(request, f"{one.id} was not {verb}: {one.reason}")
    if len(left) > REFUSALS_SHOWN:
        messages.warning(request, f"{len(left) - REFUSALS_SHOWN} more were not {verb}.")


def back(request: HttpRequest, otherwise: str, *arguments: str | int) -> HttpResponse:
    """To the page that the form was on (`next`), if it is one of ours; else to the page named `otherwise`."""
    target = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(target, allowed_hosts=None) and urlsplit(target).path.startswith(reverse("admin:index"))
    return HttpResponseRedirect(target if ours else reverse(otherwise, args=arguments))


URLS: Final[Urls] = (
    ("dead-letters/replay/", replay, "replay"),
    ("dead-letters/discard/", discard, "discard"),
)
