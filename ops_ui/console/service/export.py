"""What the pages of operations export as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ops_ui.console.lists.exports import Columns, Rows, member, member_of


def workers(rows: Sequence[Any]) -> Rows:
    """Of `Worker`."""
    names = ("kind", "host", "pid", "code_version", "flows_hash", "started_at", "seen_at")
    return Columns(rows, {name: member(name) for name in names})


def destinations(rows: Sequence[Any]) -> Rows:
    """Of the lines of the page: `row` is a `Destination`."""
    names = ("name", "state", "failures", "openings", "parked_at", "parked_until", "last_error")
    return Columns(rows, {name: member_of("row", name) for name in names})


def limits(rows: Sequence[Any]) -> Rows:
    """Of the limits of the page of destinations: `row` is a `RateBucket`."""
    names = ("namespace", "name", "rate", "per_microseconds", "concurrency", "next_slot_at")
    return Columns(rows, {name: member_of("row", name) for name in names})


def pauses(rows: Sequence[Any]) -> Rows:
    """Of what is paused."""
    return Columns(rows, {name: member(name) for name in ("kind", "namespace", "name", "since", "by", "reason", "until")})
