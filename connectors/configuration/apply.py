"""Configuration as code: make the database what a file says, in one transaction; a dry run is the same transaction, rolled back.

Applying adds and changes; it removes what the database has beside the file only where it is named to it (`prune`). Else `diff` reports
that as drift.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from connectors import audit_log
from connectors.configuration import connections, endpoints, packs, routes, stored_secrets
from connectors.configuration.change import ConfigurationRefused, NotFound, lock_namespace
from connectors.configuration.connections import ConnectionDraft
from connectors.configuration.endpoints import EndpointDraft
from connectors.configuration.errors import BadConfiguration
from connectors.configuration.file import MODES, Configuration, ConnectionSection, EndpointSection, PackSection, RouteSection
from connectors.configuration.live_packs import live_pack, live_packs
from connectors.configuration.packs import InstallationRefused
from connectors.configuration.report import Extra, Kind, Report, Step
from connectors.configuration.routes import RouteDraft
from connectors.configuration.stored_secrets import Secret
from connectors.ingress.limit_values import EndpointLimits
from connectors.models import Connection
from connectors.states import EndpointState, PackState
from projection.database.transactions import run_unit


class _RolledBack(Exception):
    """Carries a dry run's report out of the transaction that it undoes."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


@dataclass(slots=True)
class _Run:
    """One pass over a file: the steps so far, and every part that was refused."""

    namespace: str
    actor: str
    reason: str
    steps: list[Step] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """Where the problems are."""
    allow_missing_code: bool = False

    def attempt(self, where: str, step: Callable[[], Step]) -> bool:
        """Take one step; a refusal becomes a line of its own, so that a file's faults are all told at once. False = refused."""
        try:
            self.steps.append(step())
        except (ConfigurationRefused, NotFound) as refusal:
            self.problems += [f"{where}: {line}" for line in str(refusal).splitlines()]
            self.refused.add(where)
            return False
        return True


APPLY_ACTION: Final = "config.apply"


def apply(
    configuration: Configuration,
    *,
    actor: str,
    reason: str = "",
    dry_run: bool = False,
    prune: Collection[Extra] = (),
    allow_missing_code: bool = False,
) -> Report:
    """Make the namespace what the file says; applying again changes nothing. One transaction: all of it, or nothing.

    `prune`: what an earlier report named as extra and is to be removed; whatever else has come since stays. `allow_missing_code`: a
    flow that is not installed here is a warning.
    Raises BadConfiguration with a line for each fault (unknown pack, missing secret …).
    """

    def unit() -> Report:
        run = _Run(configuration.namespace, actor, reason, allow_missing_code=allow_missing_code)
        report = _pass(run, configuration, dry_run, prune)
        if dry_run:
            raise _RolledBack(report)
        return report

    try:
        return run_unit("config_apply", unit)
    except _RolledBack as undone:
        return undone.report


def _pass(run: _Run, configuration: Configuration, dry_run: bool, prune: Collection[Extra]) -> Report:
    lock_namespace(configuration.namespace)
    for name, connection in configuration.connections.items():
        _connection(run, name, connection)
    for name, section in configuration.packs.items():
        if _pack(run, name, section):
            for slug, endpoint in section.endpoint.items():
                _endpoint(run, name, slug, endpoint)
    for key, route in configuration.routes.items():
        _route(run, key, route)
    _prune(run, [extra for extra in extras(configuration) if extra in prune])
    if run.problems:
        raise BadConfiguration(run.problems)
    run.warnings.extend(_disabled(configuration))
    report = Report(run.namespace, dry_run, tuple(run.steps), tuple(run.warnings), tuple(extras(configuration)))
    if report.changes_something:
        counts = {outcome: len(report.of(outcome)) for outcome in ("created", "changed", "unchanged", "removed")}
        changed = sum(counts.values()) - counts["unchanged"]
        audit_log.record(run.actor, APPLY_ACTION, run.namespace, run.reason, count=changed, detail=counts)
    return report


def _connection(run: _Run, name: str, section: ConnectionSection) -> None:
    def put() -> Step:
        draft = ConnectionDraft(name, section.url, _secrets(section.references))
        return _step("connection", name, connections.put(run.namespace, draft, actor=run.actor, reason=run.reason))

    run.attempt(f"connections.{name}", put)


def _pack(run: _Run, name: str, section: PackSection) -> bool:
    """Install, upgrade (when the file names the code's version and another one is installed) or configure. False = refused."""

    def put() -> Step:
        present = live_pack(run.namespace, name)
        shared = {"actor": run.actor, "reason": run.reason}
        if present is None:
            packs.install(
                run.namespace, name, class_name=section.class_, version=section.version, settings=section.settings, **shared
            )
            return Step("pack", name, "created")
        if section.class_ is not None and section.class_ != present.code_name:
            raise InstallationRefused(
                f"it is installed as class {present.code_name!r}, and the file says {section.class_!r}; "
                "remove it first, or give the new one another name"
            )
        if section.version is not None and section.version != present.version:
            upgraded = packs.upgrade(run.namespace, name, version=section.version, settings=section.settings, **shared)
            moved = f"new route versions: {', '.join(upgraded.routes) or 'none'}"
            return Step("pack", name, "changed", (f"version: {present.version} → {section.version}", moved))
        settings_changed = section.settings is not None and packs.configure(run.namespace, name, section.settings, **shared)
        return _step("pack", name, ("settings: replaced",) if settings_changed else ())

    return run.attempt(f"packs.{name}", put)


def _endpoint(run: _Run, pack_name: str, slug: str, section: EndpointSection) -> None:
    def put() -> Step:
        draft = EndpointDraft(
            pack_name=pack_name,
            slug=slug,
            secrets=_secrets(section.secrets),
            public_url=section.public_url,
            signature=section.signature,
            unverified=section.unverified,
            account=section.account,
            limits=EndpointLimits(section.max_body_bytes, section.limit, section.concurrency, section.spool),
        )
        if slug not in {line.slug for line in endpoints.lines(run.namespace)}:
            endpoints.create(run.namespace, draft, actor=run.actor, reason=run.reason)
            return Step("endpoint", slug, "created")
        return _step("endpoint", slug, endpoints.change(run.namespace, draft, actor=run.actor, reason=run.reason))

    run.attempt(f"packs.{pack_name}.endpoint.{slug}", put)


def _route(run: _Run, key: str, section: RouteSection) -> None:
    places: Final[dict[Literal["pack", "connection"], str]] = {
        "pack": f"packs.{section.pack}",
        "connection": f"connections.{section.connection}",
    }

    def put() -> Step:
        draft = draft_of(key, section)
        unchecked = {kind for kind, place in places.items() if place in run.refused}
        if unchecked:  # what is wrong with them is told there; nothing will be kept
            routes.check(run.namespace, draft, allow_missing_code=run.allow_missing_code, unchecked=unchecked)
            return Step("route", key, "unchanged")
        published = routes.publish(
            run.namespace, draft, actor=run.actor, reason=run.reason, allow_missing_code=run.allow_missing_code
        )
        run.warnings.extend(published.warnings)
        if not published.created:
            return Step("route", key, "unchanged")
        if not published.changes:
            return Step("route", key, "created")
        return Step("route", key, "changed", (f"version: {published.route_facts.version}", *published.changes))

    run.attempt(f"routes.{key}", put)


def _disabled(configuration: Configuration) -> Iterator[str]:
    """What the file names and an operator has disabled: applying leaves it so."""
    for row in live_packs(configuration.namespace):
        if row.name in configuration.packs and row.state == PackState.DISABLED:
            yield f"pack {row.name} is disabled; to accept deliveries again, run `packs enable {row.name}`"
    named = {slug for section in configuration.packs.values() for slug in section.endpoint}
    for line in endpoints.lines(configuration.namespace):
        if line.slug in named and line.state == EndpointState.DISABLED:
            yield f"endpoint {line.slug} is disabled; to accept deliveries again, run `endpoints enable {line.slug}`"
    for connection in Connection.objects.filter(namespace=configuration.namespace).order_by("name"):
        if connection.name in configuration.connections and connection.is_disabled:
            yield f"connection {connection.name} is disabled; to post to it again, run `connections enable {connection.name}`"


def _prune(run: _Run, unnamed: Sequence[Extra]) -> None:
    """Remove these: routes before the packs and connections that they use. A pack takes its own endpoints and routes along."""
    shared = {"actor": run.actor, "reason": run.reason}
    removals: dict[Kind, Callable[[str], object]] = {
        "route": lambda name: routes.retire(run.namespace, name, **shared),
        "endpoint": lambda name: endpoints.remove(run.namespace, name, **shared),
        "pack": lambda name: packs.remove(run.namespace, name, **shared),
        "connection": lambda name: connections.remove(run.namespace, name, **shared),
    }
    for kind, remove in removals.items():
        for extra in unnamed:
            if extra.kind == kind:
                run.attempt(f"{kind} {extra.name}", partial(_removed, kind, extra.name, remove))


def _removed(kind: Kind, name: str, remove: Callable[[str], object]) -> Step:
    remove(name)
    return Step(kind, name, "removed")


def draft_of(key: str, section: RouteSection) -> RouteDraft:
    """The draft of a route section."""
    return RouteDraft(
        key=key,
        pack_name=section.pack,
        provider_kinds=section.on,
        event_kind=section.kind,
        mode=MODES[section.mode],
        flow=section.flow,
        work_type=section.work_type or "",
        settle_seconds=section.settle,
        source_id_case=section.source_id_case,
        target_lane=section.target_lane,
        order=section.order,
        queue_class=section.queue_class,
        retry=section.retry.policy(),
        limit=section.limit.limit() if section.limit else None,
        masks=section.mask,
        connection=section.connection or "",
    )


def _secrets(references: tuple[str, ...] | None) -> tuple[Secret, ...] | None:
    if references is None:
        return None
    return tuple(stored_secrets.from_reference(reference, "secrets") for reference in references)


def _step(kind: Kind, name: str, changes: tuple[str, ...] | None) -> Step:
    if changes is None:
        return Step(kind, name, "created")
    return Step(kind, name, "changed" if changes else "unchanged", changes)


def extras(configuration: Configuration) -> Iterator[Extra]:
    """What the namespace has and the file does not name. Four queries."""
    namespace = configuration.namespace
    for row in Connection.objects.filter(namespace=namespace).order_by("name"):
        if row.name not in configuration.connections:
            yield Extra("connection", row.name)
    for pack_row in live_packs(namespace):
        if pack_row.name not in configuration.packs:
            yield Extra("pack", pack_row.name)
    named = {slug for section in configuration.packs.values() for slug in section.endpoint}
    for line in endpoints.lines(namespace):
        if line.slug not in named:
            yield Extra("endpoint", line.slug)
    for facts in routes.all_current(namespace):
        if facts.key not in configuration.routes:
            yield Extra("route", facts.key)
