"""The destinations that flows post to, by name: URL and live signing secrets, from the Connection rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from connectors import models
from connectors import secrets as secrets_at_rest
from connectors.timed_cache import TimedCache
from projection.flows import Unavailable

DISABLED_SECONDS: Final = 300.0
"""Between two looks whether a disabled connection is enabled; enabling it ends the wait."""


class NoConnection(LookupError):
    """A route names a connection that does not exist; add it under [connections] in the configuration and apply it."""


class ConnectionDisabled(Unavailable):
    """An operator disabled the connection: nothing is posted, its work waits and uses no attempts."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a connection leads. `secrets` are all live ones (two during a rotation); they never appear in a text."""

    name: str
    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    kept: secrets_at_rest.Kept | None = field(default=None, repr=False)
    """Where they come from, with their ends; None: they do not end."""


def _load(key: tuple[str, str]) -> Destination:
    namespace, name = key
    row = models.Connection.objects.filter(namespace=namespace, name=name).first()
    if row is None:
        raise NoConnection(
            f"there is no connection {name!r} in namespace {namespace!r}; add it to the configuration file and apply the file"
        )
    if row.is_disabled:
        raise ConnectionDisabled(
            f"connection {name!r} is disabled; its work waits until it is enabled (`connections enable {name}`)",
            retry_after=DISABLED_SECONDS,
        )
    return Destination(name, row.url, (), secrets_at_rest.kept(row.secrets))


def _current(destination: Destination) -> Destination:
    return replace(destination, secrets=destination.kept.at(datetime.now(UTC))) if destination.kept else destination


of = TimedCache(_load, current=_current)
"""`of((namespace, name))`: the destination, at most 5 s old; one query when it is not known. Raises NoConnection, ConnectionDisabled."""
