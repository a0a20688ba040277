"""Rows as the product writes them: namespaces, installed packs, endpoints and published routes. Each call commits.

Names and values default to something sensible, so that a test states only what it is about. Nothing here goes around an
invariant: a route row carries the snapshot that `RouteFacts.snapshot` makes, an endpoint's secrets are encrypted.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from connectors import models, secrets
from projection.facts import PER_EVENT, PROJECTION, InvocationMode, RateLimit, RetryPolicy, RouteFacts, companion_of

DEFAULT_NAMESPACE = "default"
SECRET = "test-secret-of-the-suite"
PUBLIC_URL = "https://hooks.example.com"


def now() -> datetime:
    return datetime.now(UTC)


def namespace(name: str = DEFAULT_NAMESPACE) -> models.Namespace:
    """The namespace of this name, made when it is missing."""
    row, _ = models.Namespace.objects.get_or_create(name=name)
    return row


def install(
    pack_name: str = "generic",
    *,
    settings: Mapping[str, Any] | None = None,
    version: str = "1",
    state: str = "installed",
    discard_when_disabled: bool = False,
    in_namespace: str = DEFAULT_NAMESPACE,
) -> models.Pack:
    """A new incarnation of a pack (its namespace is made when it is missing). A second call is an upgrade without retiring."""
    namespace(in_namespace)
    return models.Pack.objects.create(
        namespace=in_namespace,
        name=pack_name,
        version=version,
        incarnation=str(uuid.uuid4()),
        state=state,
        discard_when_disabled=discard_when_disabled,
        settings=json.dumps(settings or {}),
        installed_at=now(),
    )


def endpoint(
    pack: models.Pack,
    slug: str = "main",
    secret_values: Sequence[str] = (SECRET,),
    *,
    public_url: str = PUBLIC_URL,
    unverified_policy: str = "keep",
    keep_hours: float = 24,
    limits: Mapping[str, Any] | None = None,
    state: str = "enabled",
    discard_when_disabled: bool = False,
) -> models.Endpoint:
    """An endpoint of `pack`; `keep_hours` is how long unverified deliveries are kept from now on (negative: over already)."""
    return models.Endpoint.objects.create(
        pack_id=pack.id,
        namespace=pack.namespace,
        slug=slug,
        public_url=public_url,
        secrets=secrets.encrypt([{"secret": value, "expires_at": None} for value in secret_values]),
        unverified_policy=unverified_policy,
        unverified_until=now() + timedelta(hours=keep_hours),
        limits=json.dumps(limits or {}),
        state=state,
        discard_when_disabled=discard_when_disabled,
        created_at=now(),
    )


def route_facts(pack: models.Pack, key: str = "main", **options: Any) -> RouteFacts:
    """Facts of a route of `pack` without a row (id 0). Short forms: `on`, `kind`, `flow`, `mode="projection"`, `settle` seconds."""
    companion_pack, companion_flow = companion_of(options.pop("flow", "log"))
    mode: InvocationMode = PROJECTION if options.pop("mode", PER_EVENT) in ("projection", PROJECTION) else PER_EVENT
    return RouteFacts(
        id=0,
        namespace=pack.namespace,
        pack_id=pack.id,
        pack_name=pack.name,
        key=key,
        version=options.pop("version", 1),
        provider_kinds=tuple(options.pop("on", ("*",))),
        event_kind=options.pop("kind", f"{key}.changed"),
        mode=mode,
        companion_pack=companion_pack,
        companion_flow=companion_flow,
        work_type=options.pop("work_type", companion_flow),
        settle_seconds=options.pop("settle", 0.0),
        **options,
    )


def route(pack: models.Pack, key: str = "main", **options: Any) -> RouteFacts:
    """A published, current version of a route: the row with its snapshot. Earlier versions of the key stop being current."""
    facts = route_facts(pack, key, **options)
    models.Route.objects.filter(namespace=pack.namespace, route_key=key).update(is_current=False)
    row = models.Route.objects.create(**_route_columns(facts))
    facts = replace(facts, id=row.id)
    models.Route.objects.filter(id=row.id).update(snapshot=facts.snapshot())
    return facts


def _route_columns(facts: RouteFacts) -> dict[str, Any]:
    retry: RetryPolicy = facts.retry
    limit: RateLimit | None = facts.limit
    return {
        "pack_id": facts.pack_id,
        "namespace": facts.namespace,
        "pack_name": facts.pack_name,
        "route_key": facts.key,
        "version": facts.version,
        "provider_kinds": json.dumps(list(facts.provider_kinds)),
        "event_kind": facts.event_kind,
        "invocation_mode": facts.mode,
        "companion_pack": facts.companion_pack,
        "companion_flow": facts.companion_flow,
        "work_type": facts.work_type,
        "settle_seconds": facts.settle_seconds,
        "source_id_case": facts.source_id_case,
        "target_mutation_lane": facts.target_lane,
        "queue_class": facts.queue_class,
        "retry_policy": json.dumps(asdict(retry)),
        "give_up_after_seconds": retry.give_up_after,
        "rate_limit": json.dumps(asdict(limit)) if limit else None,
        "masks": json.dumps(list(facts.masks)),
        "connection": facts.connection,
        "created_at": now(),
    }


def receipt(pack: models.Pack, body: bytes | str | dict[str, Any] | list[Any], **columns: Any) -> models.Receipt:
    """A pending receipt of `pack`, as `receive` leaves it, without an HTTP request."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    headers = columns.pop("headers", {"content-type": "application/json"})
    delivery_id: str | None = columns.pop("delivery_id", None)
    return models.Receipt.objects.create(
        namespace=pack.namespace,
        pack_id=pack.id,
        pack_incarnation=pack.incarnation,
        endpoint_id=columns.pop("endpoint_id", 0),
        idempotency_key=delivery_id,
        idempotency_hash=hashlib.sha256(delivery_id.encode()).hexdigest() if delivery_id else None,
        body=raw,
        body_sha256=hashlib.sha256(raw).hexdigest(),
        headers=json.dumps(headers),
        url=columns.pop("url", f"{PUBLIC_URL}/ingress/{pack.namespace}/main"),
        received_at=columns.pop("received_at", now()),
        state=columns.pop("state", "pending"),
        **columns,
    )
