"""The form of a route: its fields, the table of the configuration file that they say, and the one route that a file names.

The form and the file end in the same text, which is what is tried and published; so both are read by the same strict reader.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import QueryDict

from connectors.configuration.errors import BadConfiguration
from connectors.configuration.export import as_toml, route_section
from connectors.configuration.file import Configuration, RouteSection, parse
from connectors.models import Connection, Pack
from ops_ui.console.base.form_fields import Field, lines
from projection import flows
from projection.facts import RouteFacts

LARGEST_TEXT: Final = 64 * 1024
LISTS: Final = ("on", "mask")
NUMBERS: Final = {"retry.attempts": int, "retry.factor": float, "limit.concurrency": int}
NOT_OF_SECTION: Final = ("namespace", "key")
CASES: Final = (("exact", "case-sensitive"), ("fold", "case-insensitive"))
ORDERS: Final = (("source", "all routes of the flow's pack"), ("route", "this route only"))
MODES: Final = (
    ("projection", "projection: events of a source combined into one run"),
    ("per_event", "per event: one run per event"),
)


def fields(packs: list[Pack]) -> tuple[Field, ...]:
    """The fields, empty, with what this installation offers to choose from. One query."""
    names = tuple((name, name) for name in dict.fromkeys(row.name for row in packs))
    spaces = tuple((name, name) for name in dict.fromkeys(row.namespace for row in packs)) or (("default", "default"),)
    connections = tuple(dict.fromkeys(Connection.objects.order_by("name").values_list("name", flat=True)[:200]))
    return (
        Field(
            "key",
            "Route key",
            "an existing key publishes the next version of that route",
            placeholder="contact",
            required=True,
            group="What it matches",
        ),
        Field("namespace", "Namespace", "", "choice", choices=spaces, required=True),
        Field("pack", "Pack", "whose deliveries the route matches", "choice", choices=names, required=True),
        Field("kind", "Event kind", "name that the route gives its events", placeholder="contact.changed", required=True),
        Field(
            "on",
            "Provider kinds",
            "one per line: a kind, prefix.*, or * for all",
            "lines",
            placeholder="contact.creation\ncontact.propertyChange",
            required=True,
            wide=True,
        ),
        Field("mode", "Mode", "", "choice", choices=MODES, required=True, value="projection", group="What it does"),
        Field("settle", "Settle", "projection mode: how long to collect events after the first of a burst", placeholder="5s"),
        Field(
            "flow",
            "Flow",
            "code that does the work",
            suggestions=tuple(sorted(flows.registered())),
            required=True,
            placeholder="log",
        ),
        Field("connection", "Connection", "for http_forward", suggestions=connections),
        Field("source_id_case", "Source ids", "", "choice", choices=CASES, value="exact"),
        Field("order", "Order", "projection mode: what its work of a record waits for", "choice", choices=ORDERS, value="source"),
        Field("target_lane", "Target mutation lane", "per-event mode: order by what the work changes", placeholder="invoice:{id}"),
        Field("work_type", "Work type", "empty: the flow's name"),
        Field("queue_class", "Queue class", "", placeholder="default"),
        Field("retry.base", "Initial delay", "", placeholder="5s", group="When it fails"),
        Field("retry.factor", "Multiplier", "", placeholder="3"),
        Field("retry.cap", "Max delay", "", placeholder="1h"),
        Field("retry.attempts", "Attempts", "", placeholder="12"),
        Field("retry.give_up_after", "Give up after", "after the first attempt; empty: never", placeholder="24h"),
        Field("limit.name", "Limit name", "", placeholder="hubspot-api", group="Limits and privacy"),
        Field("limit.rate", "Rate", "", placeholder="100/10s"),
        Field("limit.concurrency", "Concurrency", "running attempts at a time, across all workers", placeholder="8"),
        Field("mask", "Masked fields", "one per line; values are hidden in every view", "lines", placeholder="$.email", wide=True),
    )


def with_route(empty: tuple[Field, ...], route: RouteFacts) -> tuple[Field, ...]:
    """The fields as a published route has them."""
    told: dict[str, str] = {"key": route.key, "namespace": route.namespace}
    for name, value in route_section(route).items():
        if isinstance(value, Mapping):
            told |= {f"{name}.{member}": f"{inner}" for member, inner in value.items()}
        else:
            told[name] = "\n".join(value) if name in LISTS else str(value)
    return tuple(replace(field, value=told.get(field.name, field.value if field.choices else "")) for field in empty)


def text_of_form(form: QueryDict, asked: tuple[Field, ...]) -> str:
    """The configuration text that the form says. Raises BadConfiguration where it names no route."""
    key = form.get("key", "").strip()
    if not key:
        raise BadConfiguration(["key: is missing"])
    section: dict[str, Any] = {}
    for field in asked:
        if field.name in NOT_OF_SECTION:
            continue
        value = _value(field.name, form.get(field.name, ""))
        if value in ("", []):
            continue
        table, dot, member = field.name.partition(".")
        if dot:
            section.setdefault(table, {})[member] = value
        else:
            section[field.name] = value
    namespace = form.get("namespace", "").strip()
    return as_toml({"namespace": namespace, "packs": {}, "connections": {}, "routes": {key: section}})


def _value(name: str, text: str) -> Any:
    """As the file would write it; what is no number stays a text, and the strict reader says so."""
    if name in LISTS:
        return lines(text)
    text = text.strip()
    number = NUMBERS.get(name)
    if number is None or not text.isascii() or len(text) > 18:
        return text
    try:
        return number(text)
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class OneRoute:
    """The route of a text, and the text."""

    namespace: str
    key: str
    section: RouteSection
    configuration: Configuration
    text: str


def read(text: str) -> OneRoute:
    """The one route of a configuration text. Raises BadConfiguration with every problem, as `config apply` says them."""
    if len(text) > LARGEST_TEXT:
        raise BadConfiguration([f"the text has {len(text)} characters; the limit is {LARGEST_TEXT}"])
    found = parse(text)
    others = [name for name in ("packs", "connections") if getattr(found, name)]
    if others:
        raise BadConfiguration([f"{name}: this page publishes routes only; apply the rest with config apply" for name in others])
    if len(found.routes) != 1:
        raise BadConfiguration([f"routes: name one route, [routes.KEY]; the text has {len(found.routes) or 'none'}"])
    ((key, section),) = found.routes.items()
    return OneRoute(found.namespace, key, section, found, text)


def prefix_of(text: str) -> str:
    """What stands before the names of the strict reader's sentences about the one route; empty where there is not one."""
    try:
        keys = list(tomllib.loads(text).get("routes", {}))
    except (ValueError, AttributeError, RecursionError):
        return ""
    return f"routes.{keys[0]}." if len(keys) == 1 else ""


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
