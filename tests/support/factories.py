"""Rows as the product writes them: namespaces, installed packs, endpoints and published routes. Each call commits.

Names and values default to something sensible, so that a test states only what it is about. Nothing here goes around an
invariant: a route row carries the snapshot that `RouteFacts.snapshot` makes, an endpoint's secrets are encrypted.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from connectors import models, secrets
from connectors.configuration.routes import insert_version
from projection.facts import PER_EVENT, PROJECTION, InvocationMode, RouteFacts, companion_of

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
    signature: str = "",
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
        signature_scheme=signature,
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
    return insert_version(facts)


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
