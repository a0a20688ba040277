"""`connections list / disable / enable / remove`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from connectors.audit_log import cli_actor
from connectors.configuration import connections
from connectors.configuration.change import require_unlocked
from connectors.management.configuration_command import ConfigurationCommand, add_namespace, add_reason
from connectors.models import Connection, Route
from projection.cli import DONE, add_confirmation, confirm, demand_reason, iso, table


class Command(ConfigurationCommand):
    help = "Lists the connections that flows post to, disables, enables and removes them. `config apply` creates and changes them."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        add_namespace(self.add_verb(verbs, "list", self.list, "list connections and the routes that use them; no secrets"))
        for verb, perform, description in (
            ("disable", self.disable, "disable a connection: nothing is posted, its work waits and uses no attempts"),
            ("enable", self.enable, "enable a disabled connection: its work starts again"),
            ("remove", self.remove, "remove a connection that no route and no open work uses"),
        ):
            sub = self.add_verb(verbs, verb, perform, description)
            sub.add_argument("name", help="connection")
            add_namespace(sub)
            add_reason(sub)
            if verb == "remove":
                add_confirmation(sub)

    def list(self, *, namespace: str, **_options: Any) -> int:
        current = Route.objects.filter(namespace=namespace, is_current=True, deleted_at=None).exclude(connection="")
        users = [(name, key) for name, key in current.order_by("route_key").values_list("connection", "route_key")]
        found = [
            {
                "name": row.name,
                "url": row.url,
                "state": "disabled" if row.is_disabled else "enabled",
                "routes": [key for name, key in users if name == row.name],
                "created_at": iso(row.created_at),
            }
            for row in Connection.objects.filter(namespace=namespace).order_by("name")
        ]
        lines = table(
            ["connection", "state", "url", "routes"],
            [(one["name"], one["state"], one["url"], ", ".join(one["routes"])) for one in found],
        )
        self.emit({"connections": found}, lines)
        return DONE

    def disable(self, **options: Any) -> int:
        return self._set(True, **options)

    def enable(self, **options: Any) -> int:
        return self._set(False, **options)

    def _set(self, disabled: bool, *, namespace: str, name: str, reason: str, **_options: Any) -> int:
        require_unlocked()
        changed = connections.set_disabled(namespace, name, disabled, actor=cli_actor(), reason=reason)
        state = "disabled" if disabled else "enabled"
        said = "its work waits and uses no attempts" if disabled else "its work starts again"
        self.emit({"name": name, "state": state, "changed": changed}, [f"{name} is {state}: {said}"])
        return DONE

    def remove(self, *, namespace: str, name: str, reason: str, yes: bool, **_options: Any) -> int:
        require_unlocked()
        what = f"removes connection {name} and its secrets"
        demand_reason(what, reason)
        confirm(what, name, yes=yes)
        connections.remove(namespace, name, actor=cli_actor(), reason=reason)
        self.emit({"removed": {"name": name}}, [f"removed {name}"])
        return DONE
