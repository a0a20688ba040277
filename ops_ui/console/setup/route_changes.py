"""What a new version of a route would change, member by member, in the configuration file's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectors.configuration.export import route_section
from projection.facts import RouteFacts


@dataclass(frozen=True, slots=True)
class Change:
    """One member: what it is now, and what it would be; empty: its default."""

    name: str
    now: str
    then: str


def changes(now: RouteFacts | None, then: RouteFacts) -> tuple[Change, ...]:
    """The members that differ, in the file's order. Without a current version: every member of the new one."""
    old = route_section(now) if now else {}
    new = route_section(then)
    names = dict.fromkeys([*new, *old])
    return tuple(Change(name, _said(old.get(name)), _said(new.get(name))) for name in names if old.get(name) != new.get(name))


def _said(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
