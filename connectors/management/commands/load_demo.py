"""`load_demo`: configuration and sample deliveries to look at; run at the first start, harmless to run again."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from connectors import demo
from connectors.audit_log import cli_actor
from connectors.configuration_command import ConfigurationCommand
from projection.cli import DONE
from projection.logs import quietly


class Command(ConfigurationCommand):
    help = (
        "Load the demo: packs, endpoints, routes, and sample deliveries through the real ingress. Loading it again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--service-url", help="where this service answers, for the demo's own receiver (default: HEADRACE_BIND)"
        )

    def perform(self, **options: Any) -> int:
        if settings.HEADRACE_CONFIG_LOCKED:
            self.emit({"skipped": "locked"}, ["the demo is not loaded: HEADRACE_CONFIG_LOCKED is on"])
            return DONE
        with quietly():
            done = demo.load(options["service_url"] or local_url(), actor=cli_actor())
        created = [f"{step.kind} {step.name}" for step in done.report.of("created")]
        posted = ", ".join(f"{count} {code}" for code, count in done.posted.items()) or "none"
        lines = [f"demo: {len(created)} parts made, samples posted: {posted}; {done.known} were there already"]
        self.emit({"created": created, "posted": done.posted, "known": done.known}, lines)
        return DONE


def local_url() -> str:
    """Where this host reaches the service: the bound port, by loopback when it listens on every address."""
    host, port = settings.HEADRACE_BIND.host, settings.HEADRACE_BIND.port
    if host in ("0.0.0.0", "::", ""):  # noqa: S104  # compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
