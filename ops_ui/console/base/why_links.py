"""Where the reason of "why is this not running?" can be looked at or ended: one link for each code."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from projection.inspection.why_decision import Why
from projection.models import WorkItem


@dataclass(frozen=True, slots=True)
class Told:
    """A reason with what is behind it. `url` empty: there is no page for it."""

    code: str
    sentence: str
    url: str = ""
    text: str = ""


def told(why: Why, item: WorkItem) -> Told:
    """The reason of `item` for its page or its line in a list."""
    url, text = _link(why, item)
    return Told(why.code, why.sentence, url, text)


def _link(why: Why, item: WorkItem) -> tuple[str, str]:
    if why.blocking_work_id and why.blocking_work_id != item.work_id:
        return reverse("admin:generation", args=[why.blocking_work_id]), "Show the earlier work"
    own = reverse("admin:generation", args=[item.work_id])
    links = {
        "held": (f"{reverse('admin:lane', args=[item.lane_key])}#facts" if item.lane_key else "", "Show the lane's hold"),
        "paused": (reverse("admin:pauses"), "Show the pause"),
        "parked": (reverse("admin:destinations"), "Show the destination"),
        "limited": (f"{reverse('admin:destinations')}#limits", "Show the limit"),
        "processing": (reverse("admin:workers"), "Show the workers"),
        "lease_expired": (reverse("admin:workers"), "Show the workers"),
        "no_worker": (reverse("admin:workers"), "Show the workers"),
        "no_flow": (reverse("admin:workers"), "Show the workers"),
        "not_activated": (reverse("admin:index"), "Show the overview"),
        "retry": (f"{own}#attempts", "Show the failed attempts"),
        "settling": (f"{own}#range", "Show the events collected so far"),
        "runs_alone": (reverse("admin:workers"), "Show the workers"),
        "due": (f"{reverse('admin:generations')}?{urlencode({'state': 'processing'})}", "Show running work"),
    }
    return links.get(why.code, ("", ""))
