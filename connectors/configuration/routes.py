"""Routes: published as immutable versions, retired by soft deletion. A change is a new version; old ones stay readable.

Each function is one transaction (or joins its caller's) under the lock of the namespace, so that two publishers never make the
same version, and never a version beside an admission that reads it half written.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal

from connectors import audit_log
from connectors.configuration.change import ConfigurationRefused, NotFound, known_names, lock_namespace, one_unit
from connectors.configuration.live_packs import required_pack
from connectors.configuration.pausing import inherited
from connectors.models import Connection, Pack, Route
from connectors.registry import installed_packs
from projection import flows
from projection.database import clock
from projection.facts import BY_ROUTE, PROJECTION, InvocationMode, Order, RateLimit, RetryPolicy, RouteFacts, companion_of

FORWARD_FLOW: Final = "http_forward"
TYPES_SHOWN: Final = 5


class RouteRefused(ConfigurationRefused):
    """The route cannot be published as it is; the message says why."""


@dataclass(frozen=True, slots=True)
class RouteDraft:
    """What a route is to be, before it has an incarnation, a version and a row. `flow` is a registered name, `crm.contact`."""

    key: str
    pack_name: str
    provider_kinds: tuple[str, ...]
    event_kind: str
    mode: InvocationMode
    flow: str
    work_type: str = ""
    """Empty: the flow's own name."""
    settle_seconds: float = 0.0
    source_id_case: Literal["exact", "fold"] = "exact"
    target_lane: str = ""
    queue_class: str = "default"
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limit: RateLimit | None = None
    masks: tuple[str, ...] = ()
    connection: str = ""
    order: Order = "source"


@dataclass(frozen=True, slots=True)
class Published:
    """The current version after publishing. `created` False: the content is the current version's, nothing was written.

    `changes` says what differs from the version before, one `name: old → new` each. `warnings` are for the operator's eyes.
    """

    route_facts: RouteFacts
    created: bool
    changes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@one_unit
def publish(namespace: str, draft: RouteDraft, *, actor: str, reason: str = "", allow_missing_code: bool = False) -> Published:
    """Make `draft` the current version of its route. Equal content writes nothing. Raises RouteRefused, as `check`."""
    lock_namespace(namespace)
    check(namespace, draft, allow_missing_code=allow_missing_code)
    pack = required_pack(namespace, draft.pack_name)
    return _publish_version(facts_of(draft, pack), actor=actor, reason=reason)


def check(
    namespace: str,
    draft: RouteDraft,
    *,
    allow_missing_code: bool = False,
    unchecked: Collection[Literal["pack", "connection"]] = (),
) -> None:
    """Raises RouteRefused with a line for each fault: a pack that is not installed, a missing connection, a flow that nobody has
    installed here (unless `allow_missing_code`), or a projection route with a target lane (docs/protocol.md#target-lane).

    `unchecked`: what is told as a fault of its own.
    """
    faults = [*_faults(draft)]
    if "pack" not in unchecked:
        try:
            required_pack(namespace, draft.pack_name)
        except NotFound as missing:  # what was asked for is the route, and that can be fixed
            faults.append(str(missing))
    if not allow_missing_code and flows.find(draft.flow) is None:
        faults.append(
            f"{_missing_flow(draft.key, draft.flow)}correct the name, or add its package to HEADRACE_APPS; "
            "if only other hosts have it, add --allow-missing-code"
        )
    if draft.connection and "connection" not in unchecked:
        faults += _faults_of_connection(namespace, draft)
    if faults:
        raise RouteRefused("\n".join(faults))


@one_unit
def republish(facts: RouteFacts, pack: Pack, *, actor: str, reason: str) -> Published:
    """A new version of the same route for another incarnation of its pack (an upgrade)."""
    lock_namespace(facts.namespace)
    return _publish_version(replace(facts, pack_id=pack.id, pack_name=pack.name), actor=actor, reason=reason)


@one_unit
def retire(namespace: str, key: str, *, actor: str, reason: str = "") -> RouteFacts:
    """Soft-delete the route: no further event takes it, what it admitted goes on. A later publish goes on with its versions.

    Raises NotFound when the route is not current.
    """
    lock_namespace(namespace)
    facts = current(namespace, key)
    if facts is None:
        known = ", ".join(route.key for route in all_current(namespace)) or "none"
        raise NotFound(f"there is no current route {key!r} in namespace {namespace!r}; current routes: {known}")
    Route.objects.filter(id=facts.id).update(is_current=False, deleted_at=clock.now())
    audit_log.record(actor, "route.retire", f"{namespace}/{key}", reason, detail={"version": facts.version})
    return facts


def current(namespace: str, key: str) -> RouteFacts | None:
    """The current version of a route; None = never published, or retired. One query."""
    row = Route.objects.filter(namespace=namespace, route_key=key, is_current=True, deleted_at=None).order_by("-version").first()
    return RouteFacts.from_snapshot(row.snapshot) if row else None


def all_current(namespace: str) -> list[RouteFacts]:
    """Every current route of a namespace, by key. One query."""
    rows = Route.objects.filter(namespace=namespace, is_current=True, deleted_at=None).order_by("route_key", "id")
    return [RouteFacts.from_snapshot(row.snapshot) for row in rows]


def _faults(draft: RouteDraft) -> Iterator[str]:
    """What contradicts itself."""
    projected = draft.mode == PROJECTION
    if projected and draft.target_lane:
        yield (
            f"route {draft.key!r} is a projection but sets target_lane. A projection runs in the lane of its source; "
            "remove target_lane or use mode per_event"
        )
    if draft.settle_seconds and not projected:
        yield f"route {draft.key!r} is per_event but sets settle. Each event runs immediately; remove settle"
    if draft.order == BY_ROUTE and not projected:
        yield (
            f"route {draft.key!r} is per_event but sets order. "
            "To order its work apart from other routes, remove order and set target_lane"
        )
    if draft.flow == FORWARD_FLOW and not draft.connection:
        yield f'route {draft.key!r} uses http_forward without a connection; add connection = "…"'


def _faults_of_connection(namespace: str, draft: RouteDraft) -> Iterator[str]:
    rows = {row.name: row for row in Connection.objects.filter(namespace=namespace).order_by("name")}
    found = rows.get(draft.connection)
    if found is None:
        known = known_names(draft.connection, rows)
        yield f"route {draft.key!r} names connection {draft.connection!r}, which does not exist; {known}"
    elif draft.flow == FORWARD_FLOW and not found.secrets:
        yield f"connection {draft.connection!r} has no secret, but http_forward signs every request; add one"


def _missing_flow(key: str, name: str) -> str:
    return f"route {key!r}: flow {name!r} is not installed here; {known_names(name, sorted(flows.registered()))}; "


def facts_of(draft: RouteDraft, pack: Pack) -> RouteFacts:
    """Facts without a row and version yet (both 0)."""
    companion_pack, companion_flow = companion_of(draft.flow)
    members = {f.name: getattr(draft, f.name) for f in fields(RouteDraft) if f.name not in ("flow", "work_type", "pack_name")}
    return RouteFacts(
        id=0,
        namespace=pack.namespace,
        pack_id=pack.id,
        pack_name=pack.name,
        version=0,
        companion_pack=companion_pack,
        companion_flow=companion_flow,
        work_type=draft.work_type or companion_flow,
        **members,
    )


def _content(facts: RouteFacts) -> str:
    """Canonical content: what makes two versions the same route."""
    return replace(facts, id=0, version=0).snapshot()


def _publish_version(facts: RouteFacts, *, actor: str, reason: str) -> Published:
    before = current(facts.namespace, facts.key)
    warnings = _warnings(facts)
    if before is not None and _content(before) == _content(facts):
        return Published(before, created=False, warnings=warnings)
    versions = Route.objects.filter(namespace=facts.namespace, route_key=facts.key)
    newest = versions.order_by("-version").values_list("version", flat=True).first() or 0
    versions.filter(is_current=True).update(is_current=False)
    stored = insert_version(replace(facts, version=newest + 1))
    changes = _differences(before, stored)
    audit_log.record(
        actor,
        "route.publish",
        f"{facts.namespace}/{facts.key}",
        reason,
        detail={"version": stored.version, "pack_id": facts.pack_id, "changes": list(changes)},
    )
    return Published(stored, created=True, changes=changes, warnings=warnings)


def insert_version(facts: RouteFacts) -> RouteFacts:
    """The row of a new version and its snapshot, which carries the row's own id. A pause of the route goes on.

    Joins the caller's transaction. Three statements.
    """
    before = Route.objects.filter(namespace=facts.namespace, route_key=facts.key).order_by("-version").first()
    row = Route.objects.create(**_columns(facts), **inherited(before))
    stored = replace(facts, id=row.id)
    Route.objects.filter(id=row.id).update(snapshot=stored.snapshot())
    return stored


def _columns(facts: RouteFacts) -> dict[str, Any]:
    return {
        "pack_id": facts.pack_id,
        "namespace": facts.namespace,
        "pack_name": facts.pack_name,
        "route_key": facts.key,
        "version": facts.version,
        "provider_kinds": json.dumps(list(facts.provider_kinds), ensure_ascii=False),
        "event_kind": facts.event_kind,
        "invocation_mode": facts.mode,
        "companion_pack": facts.companion_pack,
        "companion_flow": facts.companion_flow,
        "work_type": facts.work_type,
        "settle_seconds": facts.settle_seconds,
        "source_id_case": facts.source_id_case,
        "target_mutation_lane": facts.target_lane,
        "queue_class": facts.queue_class,
        "retry_policy": json.dumps(asdict(facts.retry)),
        "give_up_after_seconds": facts.retry.give_up_after,
        "rate_limit": json.dumps(facts.limit.members()) if facts.limit else None,
        "masks": json.dumps(list(facts.masks)),
        "connection": facts.connection,
        "created_at": clock.now(),
    }


def _differences(before: RouteFacts | None, after: RouteFacts) -> tuple[str, ...]:
    if before is None:
        return ()
    old, new = asdict(before), asdict(after)
    return tuple(f"{name}: {old[name]} → {new[name]}" for name in new if name not in ("id", "version") and old[name] != new[name])


def _warnings(facts: RouteFacts) -> tuple[str, ...]:
    found = []
    if flows.find(facts.flow_name) is None:
        found.append(_missing_flow(facts.key, facts.flow_name) + "its work waits until its package is added to HEADRACE_APPS")
    types = _types_of_kinds(facts) if facts.is_projection else []
    if len(types) > 1:
        found.append(
            f"route {facts.key!r} takes kinds whose record types differ ({', '.join(types[:TYPES_SHOWN])}), so events of one id are not "
            f"ordered or collected together; set source_type in the settings of pack {facts.pack_name!r} if they are of one record"
        )
    return tuple(found)


def _types_of_kinds(facts: RouteFacts) -> list[str]:
    """The record types that the pack gives the route's kinds by their names alone; [] where it does not. `*` says nothing."""
    try:
        pack = installed_packs.of(facts.pack_id)
    except installed_packs.PackNotLoaded:
        return []
    kinds = [pattern for pattern in facts.provider_kinds if pattern != "*"]
    samples = [f"{kind[:-1]}{end}" for kind in kinds if kind.endswith("*") for end in ("a", "b")]
    samples += [kind for kind in kinds if not kind.endswith("*")]
    return sorted({found for kind in samples if (found := pack.default_source_type(kind)) is not None})
