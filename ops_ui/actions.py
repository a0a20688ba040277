"""What operators do in the console: POST with a CSRF token, each behind its own right, each leaving an audit entry.

An outcome is a message on the page that follows: a refusal is a sentence, never an error page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final
from urllib.parse import urlsplit

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from connectors import audited
from ops_ui.pages import Urls
from projection.replay import Replayed

Action = Callable[[HttpRequest], HttpResponse]

CHOSEN_AT_ONCE: Final = 200
"""Dead items of one request and transaction: a page of them fits well; more is the work of `dlq replay`, which takes its time."""
REFUSALS_SHOWN: Final = 5


def action(permission: str) -> Callable[[Action], Action]:
    """A state-changing view: 405 for anything but POST, 403 without its right. The CSRF check is the site's (`admin_view`)."""

    def decorate(view: Action) -> Action:
        @wraps(view)
        def inner(request: HttpRequest) -> HttpResponse:
            if not request.user.has_perm(permission):
                raise PermissionDenied(f"This action needs the right {permission}; ask an administrator for a group.")
            return view(request)

        return require_POST(inner)

    return decorate


@action("projection.replay_workitem")
def replay(request: HttpRequest) -> HttpResponse:
    """Replays the dead items named by `work`, for `reason`; each succeeds or is refused on its own."""
    chosen = list(dict.fromkeys(request.POST.getlist("work")))
    reason = request.POST.get("reason", "").strip()
    if not chosen:
        messages.error(request, "Nothing was replayed: choose at least one dead letter.")
    elif not reason:
        messages.error(request, "Nothing was replayed: a replay needs a reason, for whoever reads the audit trail later.")
    elif len(chosen) > CHOSEN_AT_ONCE:
        messages.error(request, f"Nothing was replayed: choose at most {CHOSEN_AT_ONCE} here, or run script/manage dlq replay.")
    else:
        _replay_each(request, chosen, reason)
    return HttpResponseRedirect(_back(request))


def _replay_each(request: HttpRequest, chosen: list[str], reason: str) -> None:
    actor = request.user.get_username()
    results = audited.replay(chosen, actor=actor, reason=reason)
    done = [one for one in results if isinstance(one, Replayed)]
    left = [one for one in results if not isinstance(one, Replayed)]
    if len(done) == 1:
        messages.success(request, f"Replayed as {done[0].replay_work_id}.")
    elif done:
        messages.success(request, f"Replayed {len(done)} dead letters.")
    for one in left[:REFUSALS_SHOWN]:
        messages.warning(request, f"{one.id} was not replayed: {one.reason}")
    if len(left) > REFUSALS_SHOWN:
        messages.warning(request, f"{len(left) - REFUSALS_SHOWN} more were not replayed.")


def _back(request: HttpRequest) -> str:
    """The page that the form was on, if it is one of ours; else the dead letters."""
    target = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(target, allowed_hosts=None) and urlsplit(target).path.startswith(reverse("admin:index"))
    return target if ours else reverse("admin:dead_letters")


URLS: Final[Urls] = (("dead-letters/replay/", replay, "replay"),)
