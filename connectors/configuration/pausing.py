"""Pause and resume: of a namespace, a pack or a route nothing is claimed any more, while deliveries are stored and admitted as always.

A pause belongs to the name, whatever version or incarnation: new ones inherit it. It may end by itself; the claim asks the database's
clock. What runs already runs to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from django.db.models import QuerySet

from connectors import audit_log
from connectors.configuration.change import NotFound, lock_namespace, one_unit
from connectors.models import Namespace, Pack, Route
from projection.database import clock
from projection.inspection.backlog import Backlog, Scope, backlog
from projection.logs import log_event
from projection.refusals import Refused
from projection.runtime.wake_up import notify_after_commit
from projection.safe_text import storable, storable_actor

Kind = Literal["namespace", "pack", "route"]
COLUMNS: Final = ("paused_at", "paused_by", "pause_reason", "resume_at")
"""What makes a pause, in each of the three tables."""


@dataclass(frozen=True, slots=True)
class Paused:
    """A pause as it stands, with the work that waits. `resume_at` None: until somebody resumes it."""

    kind: Kind
    namespace: str
    name: str
    paused_at: datetime
    paused_by: str | None
    reason: str | None
    resume_at: datetime | None
    backlog: Backlog


@dataclass(frozen=True, slots=True)
class Resumed:
    """A pause that is over, with the work that may run now."""

    kind: Kind
    namespace: str
    name: str
    backlog: Backlog


@dataclass(frozen=True, slots=True)
class _Target:
    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return self.namespace if self.kind == "namespace" else f"{self.namespace}/{self.name}"


def pause(kind: Kind, namespace: str, name: str, *, actor: str, reason: str, resume_at: datetime | None = None) -> Paused | Refused:
    """Claim nothing of it until `resume_at` (aware), or until it is resumed. One that is paused gets the new reason and end.

    Raises NotFound. Refused: `in_the_past`.
    """
    refused = in_the_past(name, resume_at)
    if refused is not None:
        return refused
    target = _Target(kind, namespace, name)
    since = _set_pause(target, actor, reason, resume_at)
    log_event("pause", kind=kind, target=str(target), actor=actor, reason=reason)
    return Paused(kind, namespace, name, since, actor, reason, resume_at, backlog(_scope(target)))


def resume(kind: Kind, namespace: str, name: str, *, actor: str, reason: str) -> Resumed | Refused:
    """Let it be claimed again. Raises NotFound. Refused: `not_paused`."""
    target = _Target(kind, namespace, name)
    if not _end_pause(target, actor, reason):
        return Refused(name, "not_paused", f"the {kind} {name} is not paused")
    log_event("resume", kind=kind, target=str(target), actor=actor, reason=reason)
    return Resumed(kind, namespace, name, backlog(_scope(target)))


def in_the_past(id_: str, ends: datetime | None) -> Refused | None:
    """The refusal of a stop that would have ended already, by the database's clock; None: it may begin."""
    if ends is None or ends > clock.now():
        return None
    return Refused(id_, "in_the_past", f"{ends:%Y-%m-%d %H:%M:%S} UTC is in the past; enter a future time")


def is_paused(row: Namespace | Pack | Route, now: datetime) -> bool:
    """Whether a row's pause holds at `now` (aware)."""
    return row.paused_at is not None and (row.resume_at is None or row.resume_at > now)


def inherited(row: Pack | Route | None) -> dict[str, Any]:
    """The columns of a pause, for a new row of the same name."""
    return {column: getattr(row, column) if row else None for column in COLUMNS}


@one_unit
def _set_pause(target: _Target, actor: str, reason: str, resume_at: datetime | None) -> datetime:
    rows = _rows(target)
    now = clock.now()
    first = rows.order_by("-pk")[0]
    since: datetime = first.paused_at if is_paused(first, now) else now
    rows.update(paused_at=since, paused_by=storable_actor(actor), pause_reason=storable(reason), resume_at=resume_at)
    detail = {"resume_at": resume_at.isoformat() if resume_at else None}
    audit_log.record(actor, f"{target.kind}.pause", str(target), reason, detail=detail)
    return since


@one_unit
def _end_pause(target: _Target, actor: str, reason: str) -> bool:
    rows = _rows(target)
    now = clock.now()
    if not any(is_paused(row, now) for row in rows):
        return False
    rows.update(**dict.fromkeys(COLUMNS))
    audit_log.record(actor, f"{target.kind}.resume", str(target), reason)
    notify_after_commit("claim")
    return True


def _rows(target: _Target) -> QuerySet[Any, Any]:
    """All rows of the name, under the namespace's lock. Raises NotFound."""
    if not Namespace.objects.filter(name=target.namespace).exists():
        known = ", ".join(Namespace.objects.order_by("name").values_list("name", flat=True)) or "none"
        raise NotFound(f"there is no namespace {target.namespace!r}; known: {known}")
    lock_namespace(target.namespace)
    rows = _named(target)
    if not rows.exists():
        raise NotFound(f"there is no {target.kind} {target.name!r} in namespace {target.namespace!r}")
    return rows


def _named(target: _Target) -> QuerySet[Any, Any]:
    if target.kind == "namespace":
        return Namespace.objects.filter(name=target.namespace)
    if target.kind == "pack":
        return Pack.objects.filter(namespace=target.namespace, name=target.name)
    return Route.objects.filter(namespace=target.namespace, route_key=target.name)


def _scope(target: _Target) -> Scope:
    if target.kind == "namespace":
        return Scope("Namespace", (target.namespace,))
    ids = tuple(_named(target).values_list("id", flat=True))
    return Scope("PackId" if target.kind == "pack" else "RouteId", ids)
