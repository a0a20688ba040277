"""The router outside django-q2: `route_receipts [--once or --drain or --reroute RECEIPT]`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from connectors import audit_log
from connectors.operations import verbs
from connectors.routing.router import RouteReport, drain_receipts, namespaces_with_pending, route_batch
from connectors.tasks import route_loop
from projection.cli import DONE, FINDINGS, HeadraceCommand, batch_size, refusal
from projection.runtime.stop_flag import stop_on_signals


class Command(HeadraceCommand):
    writes_log = True
    help = (
        "Routes pending receipts. --once: one batch per namespace; --drain: everything due now; otherwise until SIGTERM or Ctrl-C."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument("--once", action="store_true", help="route one batch per namespace, then exit")
        mode.add_argument("--drain", action="store_true", help="exit when nothing is pending")
        mode.add_argument("--reroute", type=int, metavar="RECEIPT", help="route a quarantined receipt again")
        parser.add_argument("--reason", default="", help="reason, for the audit log")
        parser.add_argument("--batch", type=int, help="maximum number of receipts per transaction (default: HEADRACE_ROUTER_BATCH)")

    def perform(self, **options: Any) -> int:
        if options["reroute"] is not None:
            return self._reroute(options["reroute"], options["reason"])
        report, batch = RouteReport(), batch_size(options["batch"])
        if options["once"]:
            for name in namespaces_with_pending():
                report += route_batch(name, batch)
        elif options["drain"]:
            report = drain_receipts(batch=batch)
        else:
            with stop_on_signals() as stop:
                report = RouteReport(receipts=route_loop(batch=batch, stop=stop))
        answer = asdict(report)
        for internal in ("stages", "seen"):
            answer.pop(internal)
        self.emit(answer, [f"{value} {name.replace('_', ' ')}" for name, value in answer.items() if value or name == "receipts"])
        return DONE

    def _reroute(self, receipt_id: int, reason: str) -> int:
        refused = verbs.reroute(receipt_id, actor=audit_log.cli_actor(), reason=reason)
        if refused is None:
            self.emit({"rerouted": [receipt_id], "refused": []}, [f"receipt {receipt_id} will be routed again"])
            return DONE
        self.emit({"rerouted": [], "refused": [refusal(receipt_id, refused.code, refused.reason)]}, [refused.reason])
        return FINDINGS
