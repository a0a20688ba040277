"""Measured workloads: `bench sc400 [--sources 400 --events 10 --actions 400 --repeat 3]`, `bench drain [--items 10000 --repeat 3]`,
`bench ingress [--requests 5000 --concurrency 16 --repeat 3 --bytes 10000]`, `bench memory [--items 100000]`,
`bench wake [--deliveries 20 --idle 20]`; and a history to measure on: `bench history [--events 1000000 --work 200000 --dead 50000]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from connectors.bench import drain, history, ingress, memory, sc400, wake
from connectors.bench.history_plan import HistoryRefused, Size
from connectors.bench.workbench import BenchFailed
from projection.cli import DONE, HeadraceCommand


class Command(HeadraceCommand):
    writes_log = True
    help = "Runs a benchmark in a separate database and checks every event, work item and input."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        workload = self.add_verb(
            verbs, "sc400", self.sc400, "measure 400 sources × 10 events and 400 actions, from receipts to processed work"
        )
        workload.add_argument("--sources", type=int, default=400)
        workload.add_argument("--events", type=int, default=10, help="events per source")
        workload.add_argument("--actions", type=int, default=400, help="per-event actions among them")
        workload.add_argument("--repeat", type=int, default=3)
        drained = self.add_verb(
            verbs, "drain", self.drain, "measure per-event no-op items by one worker, beside a hand-written loop"
        )
        drained.add_argument("--items", type=int, default=10_000)
        drained.add_argument("--repeat", type=int, default=3)
        posted = self.add_verb(
            verbs, "ingress", self.ingress, "measure signed POSTs through gunicorn, beside a bare Django view with one INSERT"
        )
        posted.add_argument("--requests", type=int, default=5_000, help="requests per repetition, to each of the two")
        posted.add_argument("--concurrency", type=int, default=16, help="connections, each with one request at a time")
        posted.add_argument("--repeat", type=int, default=3)
        posted.add_argument("--bytes", type=int, default=ingress.BODY_BYTES, help="approximate size of a body")
        kept = self.add_verb(verbs, "memory", self.memory, "measure the memory of a router and a worker process")
        kept.add_argument("--items", type=int, default=100_000)
        woken = self.add_verb(verbs, "wake", self.wake, "measure how soon an idle system starts a flow, and its database load")
        woken.add_argument("--deliveries", type=int, default=20)
        woken.add_argument(
            "--idle", type=float, default=20.0, help="seconds for which the statements of the idle system are counted"
        )
        made = self.add_verb(
            verbs, "history", self.history, "create a large history in the configured database, for trials and measurements"
        )
        made.add_argument("--events", type=int, default=1_000_000)
        made.add_argument("--work", type=int, default=200_000, help="work items, open and finished")
        made.add_argument("--dead", type=int, default=50_000, help="dead letters among them")
        made.add_argument("--namespace", default="history", help="new namespace to fill; an existing one is refused")
        made.add_argument("--beside", action="store_true", help="also if the database already has events, receipts or work")

    def sc400(self, **options: Any) -> int:
        if min(options["sources"], options["events"], options["actions"] + 1, options["repeat"]) < 1:
            raise CommandError("--sources, --events and --repeat must be 1 or more, --actions 0 or more")
        workload = sc400.Workload(options["sources"], options["events"], options["actions"])
        return self._report(lambda: sc400.run(workload, options["repeat"], say=self.stderr.write))

    def drain(self, **options: Any) -> int:
        if min(options["items"], options["repeat"]) < 1:
            raise CommandError("--items and --repeat must be 1 or more")
        return self._report(lambda: drain.run(options["items"], options["repeat"], say=self.stderr.write))

    def ingress(self, **options: Any) -> int:
        sizes = [options[name] for name in ("requests", "concurrency", "repeat", "bytes")]
        if sizes[0] < 2 or min(sizes) < 1:
            raise CommandError("--requests must be 2 or more; --concurrency, --repeat and --bytes 1 or more")
        return self._report(lambda: ingress.run(*sizes, say=self.stderr.write))

    def memory(self, **options: Any) -> int:
        if options["items"] < 2:
            raise CommandError("--items must be 2 or more")
        return self._report(lambda: memory.run(options["items"], say=self.stderr.write))

    def wake(self, **options: Any) -> int:
        if options["deliveries"] < 1 or not options["idle"] >= 1:
            raise CommandError("--deliveries and --idle must be 1 or more")
        return self._report(lambda: wake.run(options["deliveries"], options["idle"], say=self.stderr.write))

    def history(self, **options: Any) -> int:
        size = Size(options["events"], options["work"], options["dead"])
        try:
            made = history.make(options["namespace"], size, beside=options["beside"], say=self.stderr.write)
        except HistoryRefused as refused:
            raise CommandError(str(refused)) from refused
        self.emit(made, [f"{name}: {value}" for name, value in made.items()])
        return DONE

    def _report(self, run: Callable[[], dict[str, Any]]) -> int:
        try:
            answer = run()
        except BenchFailed as error:
            raise CommandError(f"the benchmark failed its check: {error}") from error
        self.emit(answer, [f"{name}: {value}" for name, value in answer.items() if name != "runs"])
        return DONE
