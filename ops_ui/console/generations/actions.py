"""Actions on one work item from its page: retry now, cancel. (Replay and discard also take several: `actions.py`.)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from connectors.operations import verbs
from ops_ui.console.base.actions import action, actor_of, back, reason_of, tell
from ops_ui.console.base.navigation import HasPermissions
from ops_ui.console.base.pages import Urls
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.cancel import CANCELLABLE
from projection.states import State


@dataclass(frozen=True, slots=True)
class Offer:
    """A button on the page of a work item."""

    title: str
    url: str
    ends_work: bool = False
    """It cannot be taken back."""


def offers(user: HasPermissions, item: WorkItem) -> list[Offer]:
    """What this person may do to the item as it stands, the likeliest first."""
    found: list[Offer] = []
    state = State(item.state)
    if state is State.DEAD and item.discarded_at is None:
        found += _offer(user, "replay_workitem", "Replay", reverse("admin:replay"))
        found += _offer(user, "discard_workitem", "Discard", reverse("admin:discard"), ends_work=True)
    if state is State.RETRY:
        found += _offer(user, "retry_workitem", "Retry now", reverse("admin:retry_now", args=[item.work_id]))
    if state in CANCELLABLE:
        found += _offer(user, "cancel_workitem", "Cancel", reverse("admin:cancel_work", args=[item.work_id]), ends_work=True)
    return found


def _offer(user: HasPermissions, right: str, title: str, url: str, *, ends_work: bool = False) -> list[Offer]:
    return [Offer(title, url, ends_work)] if user.has_perm(f"projection.{right}") else []


@action("projection.retry_workitem")
def retry_now(request: HttpRequest, work_id: str) -> HttpResponse:
    """Ends the wait of an item that waits to retry."""
    return _act(request, work_id, "Its wait was not ended", verbs.retry_now, "It is due now; the next claim takes it.")


@action("projection.cancel_workitem")
def cancel(request: HttpRequest, work_id: str) -> HttpResponse:
    """Ends work that nobody executes."""
    return _act(request, work_id, "It was not cancelled", verbs.cancel, "It is cancelled; its successor and its lane move on.")


def _act(request: HttpRequest, work_id: str, undone: str, verb: Callable[..., object], done: str) -> HttpResponse:
    reason = reason_of(request, undone)
    if reason:
        outcome = verb(work_id, actor=actor_of(request), reason=reason)
        tell(request, outcome if isinstance(outcome, Refused) else None, done)
    return back(request, "admin:generations")


URLS: Final[Urls] = (
    ("generations/<ascii:work_id>/retry-now/", retry_now, "retry_now"),
    ("generations/<ascii:work_id>/cancel/", cancel, "cancel_work"),
)
