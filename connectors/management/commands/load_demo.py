"""`load_demo`: configuration and sample deliveries to look at; run at the first start (HEADRACE_DEMO), harmless to run again."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from connectors import demo
from connectors.audit_log import cli_actor
from connectors.configuration.change import require_unlocked
from connectors.demo import removal
from connectors.management.configuration_command import ConfigurationCommand
from projection.cli import DONE
from projection.logs import quietly

MOST_ORDERS: Final = 10_000
"""About a minute of posting; `bench history` creates more."""


class Command(ConfigurationCommand):
    help = (
        "Loads the demo into the namespace demo: packs, endpoints, routes, and sample deliveries through the real ingress. Loading it "
        "again changes nothing; --remove removes it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--service-url", help="URL of this service, for the demo's own receiver (default: HEADRACE_BIND)")
        parser.add_argument(
            "--receiver",
            choices=tuple(demo.SWITCH),
            help="make the demo's order receiver accept (open) or reject (closed) orders from now on (first load: closed)",
        )
        parser.add_argument(
            "--orders",
            type=int,
            default=0,
            metavar="COUNT",
            help="also post this many new orders; while the receiver is closed, they become dead letters to practise with",
        )
        parser.add_argument(
            "--remove", action="store_true", help="remove the demo instead: its namespace with everything in it (takes 5 s)"
        )

    def perform(self, **options: Any) -> int:
        if options["remove"]:
            return self._remove()
        if settings.HEADRACE_CONFIG_LOCKED:
            self.emit(
                {"skipped": "locked"},
                ["The demo was not loaded because HEADRACE_CONFIG_LOCKED is true. Set it to false to load the demo."],
            )
            return DONE
        orders = options["orders"]
        if not 0 <= orders <= MOST_ORDERS:
            raise CommandError(f"--orders must be 0 to {MOST_ORDERS}.")
        service_url = options["service_url"] or local_url()
        with quietly():
            done = demo.load(service_url, actor=cli_actor(), orders=orders, receiver=options["receiver"])
        created = [f"{step.kind} {step.name}" for step in done.report.of("created")]
        posted = ", ".join(f"{count} {code}" for code, count in done.posted.items()) or "none"
        changed = [f"{step.kind} {step.name}" for step in done.report.of("changed")]
        lines = [
            f"demo: {len(created)} packs, endpoints and routes created, {len(changed)} changed; "
            f"sample deliveries: {posted}, {done.known} sent before"
        ]
        warnings = [] if (warning := demo.refused_address(service_url)) is None else [warning]
        lines += [f"demo: warning: {each}" for each in warnings]
        self.emit({"created": created, "changed": changed, "posted": done.posted, "known": done.known, "warnings": warnings}, lines)
        return DONE

    def _remove(self) -> int:
        require_unlocked()
        removed = removal.remove(actor=cli_actor())
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in removed.items())
        self.emit({"removed": removed, "namespace": demo.NAMESPACE}, [f"demo: removed namespace {demo.NAMESPACE}: {counts}"])
        return DONE


def local_url() -> str:
    """Where this host reaches the service: the bound port, by loopback when it listens on every address."""
    host, port = settings.HEADRACE_BIND.host, settings.HEADRACE_BIND.port
    if host in ("0.0.0.0", "::", ""):  # noqa: S104  # compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
