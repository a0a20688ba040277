"""What the database uses and this process does not have: packs that are installed, flows that current routes name."""

from __future__ import annotations

from connectors import models, pack
from connectors.states import PackState
from projection import flows
from projection.facts import RouteFacts


def sentences() -> list[str]:
    """One sentence for each missing pack and flow of every namespace, by name, with the way out. Two queries."""
    found = models.Pack.objects.filter(state=PackState.INSTALLED).values_list("name", flat=True).distinct()
    lines = [
        f"Pack {name!r} is installed, but not part of this process: its deliveries get 503 until its package is named in HEADRACE_APPS."
        for name in sorted(found)
        if pack.find(name) is None
    ]
    users: dict[str, set[str]] = {}
    for snapshot in models.Route.objects.filter(is_current=True, deleted_at=None).values_list("snapshot", flat=True):
        facts = RouteFacts.from_snapshot(snapshot)
        users.setdefault(facts.flow_name, set()).add(facts.key)
    lines += [
        f"Flow {name!r} (routes: {', '.join(sorted(users[name]))}) is not part of this process: "
        "its work waits until its package is named in HEADRACE_APPS."
        for name in sorted(users)
        if flows.find(name) is None
    ]
    return lines
