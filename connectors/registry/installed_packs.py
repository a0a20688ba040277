"""The pack object of an installed pack row, with its settings, for code that runs after ingress (flows)."""

from __future__ import annotations

from connectors import models, pack
from connectors.pack import Pack
from connectors.timed_cache import TimedCache
from projection.exact_json import parse


class PackNotLoaded(LookupError):
    """No module of this process defines the pack: install its package and name it in HEADRACE_APPS."""


def _load(pack_id: int) -> Pack:
    row = models.Pack.objects.filter(id=pack_id).values_list("name", "settings").first()
    if row is None:
        raise PackNotLoaded(f"there is no pack with id {pack_id}; it was erased after its work was admitted")
    name, settings = row
    cls = pack.find(name)
    if cls is None:
        raise PackNotLoaded(f"pack {name!r} is not part of this process; install its package and name it in HEADRACE_APPS")
    return cls(parse(settings))


of = TimedCache(_load)
"""`of(pack_id)`: the pack object of that row, at most 5 s old. One query when it is not known. Raises PackNotLoaded."""
