"""`routes list / publish / retire / pause / resume`."""

from __future__ import annotations

import tomllib
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from pydantic import ValidationError

from connectors.audit_log import cli_actor
from connectors.configuration import export, routes
from connectors.configuration.apply import draft_of
from connectors.configuration.change import require_unlocked
from connectors.configuration.errors import BadConfiguration, option_sentences
from connectors.configuration.file import RouteSection
from connectors.configuration.values import name
from connectors.management.configuration_command import add_missing_code, add_namespace, add_reason
from connectors.management.pause_verbs import PauseVerbs
from connectors.models import Route
from projection.cli import DONE, add_confirmation, confirm, demand_reason, iso, table
from projection.facts import RouteFacts

TEXTS: Final = {
    "pack": "installed pack whose events the route matches",
    "kind": "event kind that the route emits, e.g. contact.changed",
    "mode": "projection (one run per changed record) or per_event (one run per event)",
    "flow": "flow that handles its events, e.g. record_table or crm.contact",
    "settle": "how long a projection waits for further events, e.g. 5s",
    "work_type": "work type (default: the flow's name)",
    "source_id_case": "exact, or fold: ids that differ only in case are one record (default: exact)",
    "target_lane": "target mutation lane of a per_event route, e.g. invoice:{id}",
    "queue_class": "queue class of its work, which workers serve in turn (default: default)",
    "connection": "connection to which http_forward posts",
}
INLINE: Final = {
    "retry": "retry policy as in the file, e.g. '{ base = \"5s\", attempts = 3 }'",
    "limit": 'rate and concurrency limit as in the file, e.g. \'{ name = "api", rate = "100/10s", concurrency = 8 }\'',
}


class Command(PauseVerbs):
    help = "Publishes routes as immutable versions, lists and retires them."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        self.add_pause_verbs(verbs, "route")
        listing = self.add_verb(verbs, "list", self.list, "list current routes")
        listing.add_argument("--all", action="store_true", help="include earlier versions and retired routes")
        add_namespace(listing)
        publish = self.add_verb(verbs, "publish", self.publish, "publish a route; an unchanged one gets no new version")
        publish.add_argument("name", metavar="KEY", help="route key")
        publish.add_argument("--on", action="append", metavar="KIND", help='provider kind, "prefix.*" or "*"; repeatable')
        publish.add_argument("--mask", action="append", metavar="PATH", help="path of a field to hide in every view; repeatable")
        for option, description in (TEXTS | INLINE).items():
            publish.add_argument(f"--{option.replace('_', '-')}", help=description.replace("%", "%%"))
        add_missing_code(publish)
        add_namespace(publish)
        add_reason(publish)
        retire = self.add_verb(
            verbs, "retire", self.retire, "retire a route: new events no longer match it; its existing work finishes"
        )
        retire.add_argument("name", metavar="KEY", help="route key")
        add_namespace(retire)
        add_reason(retire)
        add_confirmation(retire)

    def list(self, *, namespace: str, all: bool, **_options: Any) -> int:
        rows = Route.objects.filter(namespace=namespace).order_by("route_key", "-version")
        if not all:
            rows = rows.filter(is_current=True, deleted_at=None)
        found = [_row(row) for row in rows]
        headers = ["route", "version", "pack", "kind", "mode", "settle", "flow", "state"]
        lines = table(headers, [[line[header if header != "route" else "key"] for header in headers] for line in found])
        self.emit({"routes": found}, lines)
        return DONE

    def publish(self, *, namespace: str, reason: str, allow_missing_code: bool, **options: Any) -> int:
        require_unlocked()
        key, section = options["name"], _section(options)
        draft = draft_of(key, section)
        published = routes.publish(namespace, draft, actor=cli_actor(), reason=reason, allow_missing_code=allow_missing_code)
        version = published.route_facts.version
        answer = {
            "key": key,
            "version": version,
            "created": published.created,
            "changes": list(published.changes),
            "warnings": list(published.warnings),
        }
        verb = "published" if published.created else "unchanged:"
        self.emit(answer, [f"{verb} {key} v{version}", *published.changes, *(f"warning: {text}" for text in published.warnings)])
        return DONE

    def retire(self, *, namespace: str, reason: str, **options: Any) -> int:
        require_unlocked()
        what = f"retires route {options['name']}"
        demand_reason(what, reason)
        confirm(what, options["name"], yes=options["yes"])
        facts = routes.retire(namespace, options["name"], actor=cli_actor(), reason=reason)
        self.emit({"retired": {"key": facts.key, "version": facts.version}}, [f"retired {facts.key} v{facts.version}"])
        return DONE


def _section(options: dict[str, Any]) -> RouteSection:
    """The route that the options describe. Raises BadConfiguration, as for the same words in a file."""
    members = {option: options[option] for option in (*TEXTS, "on", "mask") if options[option] is not None}
    for option in INLINE:
        if options[option] is not None:
            members[option] = _inline(option, options[option])
    try:
        name(options["name"])
        return RouteSection.model_validate(members)
    except ValidationError as error:
        raise BadConfiguration(option_sentences(error, RouteSection)) from None
    except ValueError as error:
        raise BadConfiguration([f"KEY: {error}"]) from None


def _inline(option: str, text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"--{option} is not valid; write it as in the file ({INLINE[option]}): {error}") from None


def _row(row: Route) -> dict[str, Any]:
    facts = RouteFacts.from_snapshot(row.snapshot)
    section = export.route_section(facts)
    state = "retired" if row.deleted_at else "current" if row.is_current else "superseded"
    return {
        "key": row.route_key,
        "version": row.version,
        "state": state,
        "settle": "",
        **section,
        "work_type": facts.work_type,
        "pack_id": row.pack_id,
        "paused_at": iso(row.paused_at),
        "resume_at": iso(row.resume_at),
        "created_at": iso(row.created_at),
        "retired_at": iso(row.deleted_at),
    }
