"""The code of installed packs: the pack object of a row, with its settings (for what runs after ingress), and what has no code here."""

from __future__ import annotations

from connectors import models, pack
from connectors.pack import Pack
from connectors.states import PackState
from connectors.timed_cache import TimedCache
from projection import flows
from projection.exact_json import parse
from projection.facts import RouteFacts


class PackNotLoaded(LookupError):
    """No module of this process defines the pack: install its package and name it in HEADRACE_APPS."""


def _load(pack_id: int) -> Pack:
    row = models.Pack.objects.filter(id=pack_id).values_list("name", "class_name", "settings").first()
    if row is None:
        raise PackNotLoaded(f"there is no pack with id {pack_id}; it was deleted after its work was admitted")
    name, class_name, settings = row
    cls = pack.find(class_name or name)
    if cls is None:
        raise PackNotLoaded(f"pack {class_name or name!r} is not available here; install its package and add it to HEADRACE_APPS")
    return cls(parse(settings))


of = TimedCache(_load)
"""`of(pack_id)`: the pack object of that row, at most 5 s old. One query when it is not known. Raises PackNotLoaded."""


def missing_code() -> list[str]:
    """What the database uses and this process does not have: installed packs, and flows that current routes name.

    One sentence for each, of every namespace, by name, with the way out. Two queries.
    """
    rows = models.Pack.objects.filter(state=PackState.INSTALLED).values_list("name", "class_name").distinct()
    found = {class_name or name for name, class_name in rows}
    lines = [
        f"Pack {name!r} is installed, but its package is not in HEADRACE_APPS: its deliveries are answered 503 until it is added."
        for name in sorted(found)
        if pack.find(name) is None
    ]
    users: dict[str, set[str]] = {}
    for snapshot in models.Route.objects.filter(is_current=True, deleted_at=None).values_list("snapshot", flat=True):
        facts = RouteFacts.from_snapshot(snapshot)
        users.setdefault(facts.flow_name, set()).add(facts.key)
    lines += [
        f"Flow {name!r} (routes: {', '.join(sorted(users[name]))}) is not available: "
        "its work waits until its package is added to HEADRACE_APPS."
        for name in sorted(users)
        if flows.find(name) is None
    ]
    return lines
