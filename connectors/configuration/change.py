"""A change of configuration: one transaction, under the lock of its namespace, and only where configuration is not locked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from django.conf import settings
from django.db import connection, transaction

from connectors.models import Namespace
from projection.database.catalogue import Sender
from projection.database.transactions import run_unit

P = ParamSpec("P")
T = TypeVar("T")

_sql: Final = Sender(Path(__file__).parent)

DEFAULT_NAMESPACE: Final = "default"
NAMESPACE_LENGTH: Final = 64


class ConfigurationRefused(ValueError):
    """The change is not possible as asked; the message says what stands in its way and what to do."""


class NotFound(LookupError):
    """There is no such pack, endpoint or route; the message names the ones that there are."""


class ConfigurationLocked(ConfigurationRefused):
    """HEADRACE_CONFIG_LOCKED is on: configuration changes by `config apply` alone. Change the file and apply it."""


def known_names(wanted: str, known: Iterable[str], word: str = "known") -> str:
    """What to write instead of a name that there is not: the nearest of the known ones, and all of them."""
    names = list(known)
    near = get_close_matches(wanted, names, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return f"{meant}{word}: {', '.join(names) or 'none'}"


def require_unlocked() -> None:
    """Raises ConfigurationLocked where HEADRACE_CONFIG_LOCKED leaves `config apply` as the only way to change configuration.

    Called by each single-step command and console action, not by the modules below them (which `config apply` uses too).
    """
    if settings.HEADRACE_CONFIG_LOCKED:
        raise ConfigurationLocked(str(ConfigurationLocked.__doc__))


def one_unit(change: Callable[P, T]) -> Callable[P, T]:
    """Run the change in a transaction of its own (retried whole on a conflict), or join the caller's when there is one."""

    @wraps(change)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if connection.in_atomic_block:
            return change(*args, **kwargs)
        return run_unit(change.__name__, lambda: change(*args, **kwargs))

    return run


def lock_namespace(name: str) -> Namespace:
    """The namespace's row, locked until the transaction ends; made at its first use. First in the global lock order.

    Every change of packs, endpoints and routes takes it, so that changes of one namespace happen one after the other and never
    beside an admission. Raises ConfigurationRefused for a new one whose name the database would take for another's.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("lock_namespace needs a transaction: outside one the lock would end at once")
    row = Namespace.objects.select_for_update().filter(name=name).first()
    if row is not None and row.name == name:
        return row
    if name != name.strip() or not name.isprintable() or not 1 <= len(name) <= NAMESPACE_LENGTH:
        raise ConfigurationRefused(
            f"{name!r} is not a valid namespace; use 1 to {NAMESPACE_LENGTH} printable characters without spaces at the start or end"
        )
    _sql.execute("insert_namespace", name=name)
    return Namespace.objects.select_for_update().get(name=name)
