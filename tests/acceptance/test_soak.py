"""Deliveries of four providers, some of them twice, while processes are killed at random, the database restarts, and the disks of the
database and of the state folder are full for a while, beside a delivery whose flow kills its process: nothing is lost, nothing is
doubled, memory stays flat, and the audit finds nothing.

The usual run is short. `TEST_SCALE=full` takes ten minutes at 200 requests a second: where the machine does not carry that beside the
senders and the database, new deliveries wait while the backlog is long, and the rate that it did carry is printed. SOAK_SECONDS and
SOAK_SEED choose another length, and the same chances again.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from tests.acceptance.private_server import IS_INSTALLED, PrivateServer, private_server
from tests.acceptance.service import Service, service
from tests.soak import logs, verdict
from tests.soak.backlog import Watch
from tests.soak.deliveries import CONFIGURATION, SECRET, Mix
from tests.soak.disturbances import Disturbances, Plan, Site
from tests.soak.ledger import Ledger
from tests.soak.memory import Memory
from tests.soak.senders import Senders
from tests.support import signing
from tests.support.running import CHECKOUT, state_folder
from tests.support.scale import size
from tests.support.small_disk import SmallDisk, block_disk, small_disk

pytestmark = [pytest.mark.acceptance, pytest.mark.scale, pytest.mark.timeout(size(900, 3000))]

HAS_SERVER = IS_INSTALLED and os.environ["HEADRACE_DATABASE_URL"].startswith(("mysql", "mariadb"))
SECONDS = float(os.environ.get("SOAK_SECONDS") or size(20, 600))
RATE = size(40, 200)
IS_SHORT = SECONDS < 60
PLAN = Plan(
    seconds=SECONDS,
    pause=(1.5, 3.0) if IS_SHORT else (2.0, 5.0),
    crashes_at=(SECONDS / 3,),
    stops_at=() if IS_SHORT else (SECONDS * 2 / 3,),
    full_at=tuple(
        (SECONDS * part, names) for part, names in ((0.15, ("state",)), (0.55, ("database",)), (0.8, ("database", "state")))
    ),
    away=1.0 if IS_SHORT else 4.0,
)
LEASE_SECONDS = 5
LONGEST_BACKLOG = 20 * RATE
"""Deliveries that are not accepted yet, or receipts and work items that have not ended: new deliveries wait while one is longer."""
DRAIN_SECONDS = size(240, 900)
AUDIT_SECONDS = 600.0
MOST_MEBIBYTES = 200.0
GROWTH_MEBIBYTES = 12.0
TRACEBACKS_AN_OUTAGE = 3
"""Of the database. What is killed says nothing."""
SHOWN_TROUBLES = 12
SEED = int(os.environ.get("SOAK_SEED") or random.SystemRandom().randrange(10**6))


@pytest.fixture
def disks() -> Iterator[dict[str, SmallDisk]]:
    """Disks to fill, by what is on them; none where a disk cannot be mounted, or the server is not the test's own."""
    with ExitStack() as held:
        folder = held.enter_context(state_folder())
        try:
            found = {
                "database": held.enter_context(block_disk(folder / "database", size(1000, 12000))),
                "state": held.enter_context(small_disk(folder / "state", "64m")),
            }
        except pytest.skip.Exception as reason:
            sys.stdout.write(f"no disk is filled: {reason}\n")
            found = {}
        yield found if HAS_SERVER else {}


@pytest.fixture
def server(disks: dict[str, SmallDisk]) -> Iterator[PrivateServer | None]:
    """A server of the test's own where MariaDB is installed and the suite runs on MariaDB; None = the suite's server stays up."""
    if not HAS_SERVER:
        yield None
        return
    with private_server(disks["database"].folder / "database" if disks else None) as made:
        yield made


@pytest.fixture
def installation(server: PrivateServer | None, disks: dict[str, SmallDisk]) -> Iterator[Service]:
    settings = {
        "SECRET": SECRET,
        "STANDARD_SECRET": signing.STANDARD_SECRET,
        "HEADRACE_APPS": "soak_sync",
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT / "tests" / "soak_app"), str(CHECKOUT)]),
    }
    with service(server.url if server else None, **settings) as made:
        made.configure(CONFIGURATION)
        if disks:
            made.environment["HEADRACE_STATE_DIR"] = str(disks["state"].folder)
        yield made
        for process in made.processes:
            process.kill()


@dataclass
class Soak:
    """One run and what it left."""

    installation: Service
    site: Site
    ledger: Ledger
    senders: Senders
    disturbances: Disturbances
    watch: Watch
    memory: Memory
    carried: float = 0.0
    """Deliveries a second that were accepted, over the whole time."""

    def run(self) -> None:
        since = monotonic()
        for each in (self.watch, self.senders, self.disturbances):
            each.start()
        try:
            self.installation.until(
                lambda: self.disturbances.failure or monotonic() - since >= SECONDS, "the time is over", SECONDS + 60
            )
            self.carried = self.ledger.accepted / (monotonic() - since)
            self.senders.make_no_more()
            self.installation.until(lambda: not self.senders.open, "every delivery is accepted", DRAIN_SECONDS)
            self.installation.until_idle(DRAIN_SECONDS)
        finally:
            self.disturbances.finish()
            self.senders.stop()
            self.watch.stop()

    def sentences(self) -> list[str]:
        fetch = self.installation.fetch
        events, work = (fetch(f"SELECT COUNT(*) FROM `_System_Connector{name}`")[0][0] for name in ("Event", "WorkItem"))
        outcomes = fetch("SELECT Outcome, COUNT(*) FROM `_System_ConnectorWorkFailure` GROUP BY Outcome")
        doubled = fetch("SELECT COUNT(*) - COUNT(DISTINCT fact) FROM soak_applied WHERE route IN %s", verdict.AT_LEAST_ONCE)[0][0]
        return [
            f"seed {SEED}, {SECONDS:.0f} s, {RATE} requests a second wanted",
            f"carried {self.carried:.0f} a second: {self.ledger.accepted} deliveries accepted, {self.ledger.repeated} of them again; "
            f"new ones held back for {self.senders.held_seconds:.0f} s; furthest behind {self.watch.furthest}",
            f"answers: {dict(self.ledger.answers.most_common())}",
            f"killed: {dict(self.disturbances.kills)}; started again: {dict(self.site.restarts)}; "
            f"database away: {[(how, round(seconds, 1)) for how, seconds in self.disturbances.away_seconds]}; "
            f"disks full for {PLAN.away} s: {[' and '.join(names) for names in self.disturbances.filled]}",
            f"{events} events, {work} work items, failed attempts {dict(outcomes)}, plain executions beyond the first {doubled}",
            *self.memory.table(),
            f"tracebacks in the logs: {logs.tracebacks(self.logs())}",
            *(f"{count} × {what}" for what, count in logs.troubles(self.logs()).most_common(SHOWN_TROUBLES)),
        ]

    def logs(self) -> list[Path]:
        return [process.log for process in self.installation.processes]


@pytest.fixture
def soak(installation: Service, server: PrivateServer | None, disks: dict[str, SmallDisk]) -> Soak:
    since = installation.now()
    site = Site(installation, HEADRACE_LEASE_SECONDS=str(LEASE_SECONDS))
    installation.until_serving()
    installation.until_loops_run(since)
    memory, ledger = Memory(), Ledger()

    def sample() -> None:
        database = {server.pid: "database"} if server is not None and server.is_running() else {}
        memory.sample(site.parents() | site.children() | database)

    watch = Watch(installation.new_connection, sample)
    disturbances = Disturbances(site, server, disks, PLAN, lambda: watch.loops, SEED)
    senders = Senders(installation.port, Mix(SEED), ledger, rate=RATE, seed=SEED)
    senders.may_send = lambda: max(senders.open, watch.behind) < LONGEST_BACKLOG
    return Soak(installation, site, ledger, senders, disturbances, watch, memory)


def test_nothing_is_lost_or_doubled_while_everything_is_killed(
    soak: Soak, server: PrivateServer | None, disks: dict[str, SmallDisk]
) -> None:
    soak.run()
    sys.stdout.write("\n".join([*soak.sentences(), ""]))
    assert soak.ledger.wrong == []
    assert soak.ledger.accepted > 0
    assert soak.ledger.repeated > 0
    assert len(soak.disturbances.away_seconds) == (len(PLAN.crashes_at + PLAN.stops_at) if server is not None else 0)
    assert len(soak.disturbances.filled) == (len(PLAN.full_at) if disks else 0)
    faults = verdict.findings(soak.installation, soak.ledger)
    assert faults == [], "\n".join(faults)
    report = soak.installation.manage("audit", seconds=AUDIT_SECONDS)
    assert (report["ok"], report["violations"]) == (True, [])
    assert_memory_is_flat(soak)
    assert logs.tracebacks(soak.logs()) <= TRACEBACKS_AN_OUTAGE * (
        len(soak.disturbances.away_seconds) + len(soak.disturbances.filled)
    )


def assert_memory_is_flat(soak: Soak) -> None:
    """No process grows in the time that it has (those that were killed early are too young to tell), and none is large."""
    database = [key for key in soak.memory.samples if key[0] == "database"]
    ours = {key: values for key, values in soak.memory.samples.items() if key not in database}
    assert max(max(values) for values in ours.values()) < MOST_MEBIBYTES
    parents = {"gunicorn's master", "head of the cluster", "sentinel of the cluster"}
    assert {name for name, _ in ours} >= parents
    growing = {key: growth for key, growth in soak.memory.growth(5).items() if key[0] in parents and growth > GROWTH_MEBIBYTES}
    assert growing == {}
