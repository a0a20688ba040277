"""What the pages of the configuration export. Never a secret: only how many are live, as on the page as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connectors.ingress.endpoint_facts import account_of
from ops_ui.console.lists.exports import Columns, Rows, member_of


def endpoints(rows: Sequence[Any]) -> Rows:
    """Of (`endpoint_reads.EndpointRow`, `Pack` or None)."""
    return Columns(
        rows,
        {
            "namespace": lambda pair: pair[0].endpoint.namespace,
            "slug": lambda pair: pair[0].endpoint.slug,
            "pack": lambda pair: pair[1] and pair[1].name,
            "account": lambda pair: account_of(pair[0].endpoint.account, pair[0].endpoint.slug),
            "state": lambda pair: pair[0].endpoint.state,
            "url": lambda pair: pair[0].url,
            "secrets": lambda pair: pair[0].secrets,
            "keeps_unverified": lambda pair: pair[0].keeps_unverified,
            "created_at": lambda pair: pair[0].endpoint.created_at,
            "rotated_at": lambda pair: pair[0].endpoint.rotated_at,
        },
    )


def packs(rows: Sequence[Any]) -> Rows:
    """Of `PackRow`."""
    own = ("namespace", "name", "version", "incarnation", "state", "installed_at", "paused_at")
    fields = {name: member_of("pack", name) for name in own}
    return Columns(
        rows,
        fields
        | {
            "class": lambda row: row.pack.code_name,
            "endpoints": lambda row: ", ".join(end.endpoint.slug for end in row.endpoints),
            "routes": lambda row: ", ".join(key for _, key in row.routes),
        },
    )


def connections(rows: Sequence[Any]) -> Rows:
    """Of `ConnectionRow`."""
    return Columns(
        rows,
        {
            "namespace": lambda row: row.connection.namespace,
            "name": lambda row: row.connection.name,
            "url": lambda row: row.connection.url,
            "state": lambda row: "disabled" if row.connection.is_disabled else "enabled",
            "secrets": lambda row: row.secrets,
            "routes": lambda row: ", ".join(key for _, key in row.routes),
            "created_at": lambda row: row.connection.created_at,
        },
    )
