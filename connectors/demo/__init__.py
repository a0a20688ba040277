"""The demo: packs, endpoints, routes and connections of `demo.toml`, and sample deliveries posted through the real ingress.

Loading it again changes nothing: configuration is applied (idempotent), secrets are made once, and a sample whose bytes are stored
already is not posted again.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from connectors import configuration, configuration_apply, stored_secrets
from connectors.configuration import Configuration
from connectors.configuration_report import Report
from connectors.demo import samples
from connectors.models import Connection, Endpoint
from connectors.states import EndpointState

FILE: Final = Path(__file__).parent / "demo.toml"
RECEIVER: Final = "demo-receiver"
CLOSED: Final = "demo-closed"
PATHS: Final = {RECEIVER: "/demo/receiver", CLOSED: "/demo/closed"}
"""Connections of the demo → the paths of `connectors.demo.urls` that they lead to."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What loading did: the configuration's report, and how many samples ended with each code of the ingress (`accepted` …)."""

    report: Report
    posted: Mapping[str, int]
    known: int
    """Samples that were stored by an earlier load."""


def load(service_url: str, *, actor: str) -> Loaded:
    """Apply the demo's configuration and post its samples. `service_url` is where this service answers, e.g. `http://127.0.0.1:8000`.

    Raises BadConfiguration when the namespace holds something that is in the demo's way (an endpoint's slug, for example).
    """
    report = configuration_apply.apply(_configuration(service_url), actor=actor, reason="demo")
    outcomes = Counter(samples.post_all(report.namespace, service_url))
    known = outcomes.pop(samples.KNOWN, 0)
    return Loaded(report, dict(outcomes), known)


def _configuration(service_url: str) -> Configuration:
    """The file, with this service's address and fresh secrets for the endpoints and connections that are not there yet."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    namespace = table["namespace"]
    endpoints = set(
        Endpoint.objects.filter(namespace=namespace).exclude(state=EndpointState.REMOVED).values_list("slug", flat=True)
    )
    connections = dict(Connection.objects.filter(namespace=namespace).values_list("name", "url"))
    for section in table["packs"].values():
        for slug, endpoint in section.get("endpoint", {}).items():
            _add_secret(endpoint, slug in endpoints, stored_secrets.generated())
    # One for all: what the closed destination refused is replayed by leading its connection to the open one, which verifies it.
    signing = stored_secrets.generated()
    for name, connection in table["connections"].items():
        # An operator may have led it elsewhere since; the demo does not lead it back.
        connection["url"] = connections.get(name, service_url.rstrip("/") + PATHS[name])
        _add_secret(connection, name in connections, signing)
    return configuration.of_table(table)


def _add_secret(section: dict[str, Any], present: bool, secret: stored_secrets.Secret) -> None:
    if not present:
        section["secrets"] = [stored_secrets.PLAIN + secret.value]
