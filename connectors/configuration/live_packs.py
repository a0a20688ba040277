"""The packs of a namespace that are live: installed or disabled, at most one row of each name."""

from __future__ import annotations

from connectors.configuration.change import NotFound, known_names
from connectors.models import Pack
from connectors.states import LIVE_PACK_STATES


def live_pack(namespace: str, name: str) -> Pack | None:
    """The installed or disabled pack of this name; None = there is none. One query."""
    rows = Pack.objects.filter(namespace=namespace, name=name, state__in=LIVE_PACK_STATES).order_by("-id")
    return next((row for row in rows if row.name == name), None)


def live_packs(namespace: str) -> list[Pack]:
    """Installed and disabled packs of a namespace, by name. One query."""
    return list(Pack.objects.filter(namespace=namespace, state__in=LIVE_PACK_STATES).order_by("name", "id"))


def required_pack(namespace: str, name: str) -> Pack:
    """As `live_pack`. Raises NotFound, naming the packs that are installed, where there is none."""
    row = live_pack(namespace, name)
    if row is None:
        known = known_names(name, (each.name for each in live_packs(namespace)), "installed are")
        raise NotFound(f"pack {name!r} is not installed in namespace {namespace!r}; {known}")
    return row
