"""The demo: packs, endpoints, routes and connections of `demo.toml`, and sample deliveries posted through the real ingress.

Loading it again changes nothing: configuration is applied (idempotent), secrets are made once, and a sample whose bytes are stored
already is not posted again. All of it is in a namespace of its own, and `removal` takes it away. Each configuration is applied in the
transaction of `configuration.apply`, each sample is received by itself. Begin reading at `load`, then `samples`. May import every
folder but `management`, `bench` and `testing`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from connectors import addresses
from connectors.configuration import stored_secrets
from connectors.configuration.apply import apply
from connectors.configuration.file import Configuration, of_table
from connectors.configuration.report import Report
from connectors.demo import samples
from connectors.models import Connection, Endpoint
from connectors.states import EndpointState

FILE: Final = Path(__file__).parent / "demo.toml"
NAMESPACE: Final = "demo"
"""Of its own, so that it takes no events of a user's and can be removed (`removal`)."""
RECEIVER: Final = "demo-receiver"
CLOSED: Final = "demo-closed"
PATHS: Final = {RECEIVER: "/demo/receiver", CLOSED: "/demo/closed"}
"""Connections of the demo → the paths of `connectors.demo.urls` that they lead to."""
SWITCH: Final = {"open": RECEIVER, "closed": CLOSED}
"""What `load_demo --receiver` says → the connection whose path the orders take."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What loading did: the configuration's report, and how many samples ended with each code of the ingress (`accepted` …)."""

    report: Report
    posted: Mapping[str, int]
    known: int
    """Samples that were stored by an earlier load."""


def load(service_url: str, *, actor: str, orders: int = 0, receiver: str | None = None) -> Loaded:
    """Apply the demo's configuration, post its samples and `orders` new orders (none: loading again changes nothing).

    `service_url` is where this service answers, e.g. `http://127.0.0.1:8000`. `receiver` is `open` or `closed`: where the orders go
    from now on, at this very service; None leaves both connections as they are.

    Raises BadConfiguration when the namespace holds something that is in the demo's way (an endpoint's slug, for example).
    """
    report = apply(_configuration(service_url, receiver), actor=actor, reason="demo")
    outcomes = Counter(samples.post_all(report.namespace, service_url))
    known = outcomes.pop(samples.KNOWN, 0)
    outcomes.update(samples.post_orders(report.namespace, service_url, orders))
    return Loaded(report, dict(outcomes), known)


def refused_address(service_url: str) -> str | None:
    """The sentence for an address that flows may not post to, so that the demo's forwards would fail; None for any other.

    Only what needs no DNS is looked at: an IP address, or localhost.
    """
    host = urlsplit(service_url).hostname or ""
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return None
    if addresses.is_allowed(str(address), addresses.networks(settings.HEADRACE_FORWARD_ALLOWED_NETWORKS)):
        return None
    return (
        f"flows may not post to {host}, the address of the demo's receivers, so the demo's forwards fail and are retried; "
        f"to allow it, start with HEADRACE_FORWARD_ALLOWED_NETWORKS={ip_network(address)}"
    )


def _configuration(service_url: str, receiver: str | None) -> Configuration:
    """The file, with this service's address and fresh secrets for the endpoints and connections that are not there yet."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    namespace = NAMESPACE
    table["namespace"] = namespace
    endpoints = set(
        Endpoint.objects.filter(namespace=namespace).exclude(state=EndpointState.REMOVED).values_list("slug", flat=True)
    )
    base = service_url.rstrip("/")
    connections = dict(Connection.objects.filter(namespace=namespace).values_list("name", "url"))
    for section in table["packs"].values():
        for slug, endpoint in section.get("endpoint", {}).items():
            _add_secret(endpoint, slug in endpoints, stored_secrets.generated())
    # One for all: what the closed destination refused is replayed by leading its connection to the open one, which verifies it.
    signing = stored_secrets.generated()
    for name, connection in table["connections"].items():
        # An operator may have led it elsewhere since; the demo does not lead it back unless it is asked to switch.
        connection["url"] = connections.get(name, base + PATHS[name]) if receiver is None else base + PATHS[name]
        _add_secret(connection, name in connections, signing)
    if receiver is not None:
        table["connections"][CLOSED]["url"] = base + PATHS[SWITCH[receiver]]
    return of_table(table)


def _add_secret(section: dict[str, Any], present: bool, secret: stored_secrets.Secret) -> None:
    if not present:
        section["secrets"] = [stored_secrets.PLAIN + secret.value]
