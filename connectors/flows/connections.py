"""The destinations that flows post to, by name: URL and live signing secrets, from the Connection rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from connectors import models, secrets
from connectors.timed_cache import TimedCache


class NoConnection(LookupError):
    """A route names a connection that does not exist; add it under [connections] in the configuration and apply it."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a connection leads. `secrets` are all live ones (two during a rotation); they never appear in a text."""

    name: str
    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def _load(key: tuple[str, str]) -> Destination:
    namespace, name = key
    row = models.Connection.objects.filter(namespace=namespace, name=name).values_list("url", "secrets").first()
    if row is None:
        raise NoConnection(
            f"there is no connection {name!r} in namespace {namespace!r}; add it to the configuration file and apply the file"
        )
    url, stored = row
    return Destination(name, url, tuple(secrets.live(stored, datetime.now(UTC))))


of = TimedCache(_load)
"""`of((namespace, name))`: the destination, at most 5 s old; one query when it is not known. Raises NoConnection."""
