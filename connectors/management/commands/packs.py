"""`packs list / install / upgrade / enable / disable / remove / pause / resume`."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from connectors import pack
from connectors.audit_log import cli_actor
from connectors.configuration import endpoints, packs, routes
from connectors.configuration.change import require_unlocked
from connectors.configuration.live_packs import live_packs
from connectors.management.configuration_command import add_namespace, add_reason
from connectors.management.pause_verbs import PauseVerbs
from connectors.states import PackState
from projection.cli import DONE, add_confirmation, confirm, demand_reason, iso, table


class Command(PauseVerbs):
    help = "Installs, upgrades, disables, enables and removes packs."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        self.add_pause_verbs(verbs, "pack")
        add_namespace(self.add_verb(verbs, "list", self.list, "list installed packs, and those available to install"))
        for verb, perform, description in (
            ("install", self.install, "install a pack"),
            ("upgrade", self.upgrade, "upgrade an installed pack to the current code"),
            ("enable", self.enable, "enable a disabled pack: accept deliveries again"),
            ("disable", self.disable, "disable a pack: refuse deliveries with 503, so that the provider retries"),
            ("remove", self.remove, "remove a pack; its endpoints answer 404, its routes are retired"),
        ):
            sub = self.add_verb(verbs, verb, perform, description)
            sub.add_argument("name", help="name of the pack")
            add_namespace(sub)
            add_reason(sub)
            if verb == "install":
                sub.add_argument(
                    "--class", dest="class_name", help="pack class, where the name is not its own: install one class several times"
                )
                sub.add_argument("--settings", metavar="JSON", help="settings of the pack as a JSON object")
            if verb == "remove":
                add_confirmation(sub)
            if verb == "disable":
                sub.add_argument("--discard", action="store_true", help="answer 410 instead, so that the provider stops sending")

    def list(self, *, namespace: str, **_options: Any) -> int:
        slugs = [(line.pack, line.slug) for line in endpoints.lines(namespace)]
        keys = [(facts.pack_id, facts.key) for facts in routes.all_current(namespace)]
        installed = [
            {
                "name": row.name,
                "class": row.code_name,
                "version": row.version,
                "state": row.state,
                "incarnation": row.incarnation,
                "installed_at": iso(row.installed_at),
                "paused_at": iso(row.paused_at),
                "resume_at": iso(row.resume_at),
                "endpoints": [slug for name, slug in slugs if name == row.name],
                "routes": [key for pack_id, key in keys if pack_id == row.id],
            }
            for row in live_packs(namespace)
        ]
        available = [{"name": name, "version": code.version} for name, code in sorted(pack.registered().items())]
        lines = table(
            ["pack", "class", "version", "state", "endpoints", "routes"],
            [
                (p["name"], p["class"], p["version"], p["state"], ", ".join(p["endpoints"]), ", ".join(p["routes"]))
                for p in installed
            ],
        )
        names = ", ".join(f"{each['name']} {each['version']}" for each in available) or "none"
        self.emit({"packs": installed, "available": available}, [*lines, f"available: {names}"])
        return DONE

    def install(self, *, namespace: str, name: str, reason: str, **options: Any) -> int:
        require_unlocked()
        row = packs.install(
            namespace,
            name,
            actor=cli_actor(),
            reason=reason,
            class_name=options["class_name"],
            settings=_settings(options["settings"]),
        )
        answer = {"name": name, "class": row.code_name, "version": row.version, "incarnation": row.incarnation}
        of = f" (class {row.class_name})" if row.class_name else ""
        self.emit({"installed": answer}, [f"installed {row}{of}"])
        return DONE

    def upgrade(self, *, namespace: str, name: str, reason: str, **_options: Any) -> int:
        require_unlocked()
        done = packs.upgrade(namespace, name, actor=cli_actor(), reason=reason)
        answer = {
            "name": name,
            "from": done.replaced.version,
            "to": done.pack.version,
            "incarnation": done.pack.incarnation,
            "endpoints_moved": done.endpoints_moved,
            "routes": list(done.routes),
        }
        moved = f"{done.endpoints_moved} endpoints moved, new route versions: {', '.join(done.routes) or 'none'}"
        self.emit({"upgraded": answer}, [f"upgraded {name} {done.replaced.version} → {done.pack.version}; {moved}"])
        return DONE

    def enable(self, *, namespace: str, name: str, reason: str, **_options: Any) -> int:
        require_unlocked()
        changed = packs.enable(namespace, name, actor=cli_actor(), reason=reason)
        self.emit({"name": name, "state": PackState.INSTALLED, "changed": changed}, [f"{name} accepts deliveries"])
        return DONE

    def disable(self, *, namespace: str, name: str, reason: str, discard: bool, **_options: Any) -> int:
        require_unlocked()
        changed = packs.disable(namespace, name, actor=cli_actor(), reason=reason, discard=discard)
        answer = "410" if discard else "503"
        self.emit(
            {"name": name, "state": PackState.DISABLED, "changed": changed},
            [f"{name} is disabled: deliveries are answered {answer}"],
        )
        return DONE

    def remove(self, *, namespace: str, name: str, reason: str, yes: bool, **_options: Any) -> int:
        require_unlocked()
        what = f"removes pack {name}: its endpoints answer 404 and its routes are retired"
        demand_reason(what, reason)
        confirm(what, name, yes=yes)
        row = packs.remove(namespace, name, actor=cli_actor(), reason=reason)
        self.emit({"removed": {"name": name, "version": row.version, "incarnation": row.incarnation}}, [f"removed {row}"])
        return DONE


def _settings(text: str | None) -> dict[str, Any] | None:
    """Raises CommandError for what is no JSON object."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CommandError(f"--settings is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise CommandError('--settings must be a JSON object, such as {"kind": "type"}.')
    return found
