"""`flows list`: the flows of this process, who uses them, and which ones routes ask for that it does not have."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from connectors.configuration import routes
from connectors.management.configuration_command import ConfigurationCommand, add_namespace
from projection import flows
from projection.cli import DONE, table


class Command(ConfigurationCommand):
    help = "Lists the flows of this installation and the routes that use them."

    def add_arguments(self, parser: CommandParser) -> None:
        add_namespace(self.add_verb(self.verbs(parser), "list", self.list, "list flows and the routes that use them"))

    def list(self, *, namespace: str, **_options: Any) -> int:
        users: dict[str, list[str]] = {}
        for facts in routes.all_current(namespace):
            users.setdefault(facts.flow_name, []).append(facts.key)
        known: list[dict[str, Any]] = [
            {
                "name": flow.name,
                "atomic": flow.atomic,
                "batch": flow.batch,
                "timeout_s": flow.timeout,
                "destination": flow.destination,
                "routes": users.get(flow.name, []),
            }
            for flow in sorted(flows.registered().values(), key=lambda each: each.name)
        ]
        missing = [{"name": name, "routes": keys} for name, keys in sorted(users.items()) if flows.find(name) is None]
        lines = table(
            ["flow", "atomic", "batch", "timeout", "destination", "routes"],
            [
                (f["name"], f["atomic"], f["batch"], f"{f['timeout_s']:g} s", f["destination"], ", ".join(f["routes"]))
                for f in known
            ],
        )
        lines += [
            f"not installed: {each['name']} (routes {', '.join(each['routes'])}); add its package to HEADRACE_APPS"
            for each in missing
        ]
        self.emit({"flows": known, "missing": missing}, lines)
        return DONE
