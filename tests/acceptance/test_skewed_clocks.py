"""Hosts whose clocks are hours off, in both directions, and one whose clock is set back in the middle of a flow.

Leases, due times, settling, retries, limits and ages are the database's: the same, whatever a host believes. Each process here has a
clock of its own (`tests/skewed_clock`), and what is asserted are times that the database gave.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.acceptance.service import Process, Service, service
from tests.support import signing
from tests.support.receiver import Receiver, Reply
from tests.support.running import CHECKOUT

pytestmark = pytest.mark.acceptance

SECRET = "the secret of the GitHub webhook"
CLOCKS = Path(__file__).parents[1] / "skewed_clock"
HOURS = 5 * 3600
LEASE_SECONDS = 9
SETTLE = timedelta(seconds=2)
CONFIGURATION = """
[packs.github.endpoint.code]
secrets = ["env:SECRET"]
[connections.builds]
url = "{url}"
secret = "env:FORWARD_SECRET"
[routes.forward]
pack = "github"
on = ["push"]
kind = "repository.pushed"
mode = "per_event"
flow = "http_forward"
connection = "builds"
retry = {{ base = "1s", attempts = 5 }}
[routes.settled]
pack = "github"
on = ["create"]
kind = "repository.changed"
mode = "projection"
settle = "2s"
flow = "log"
[routes.limited]
pack = "github"
on = ["delete"]
kind = "branch.deleted"
mode = "per_event"
flow = "log"
limit = {{ name = "api", rate = "2/s" }}
"""


@pytest.fixture
def site(receiver: Receiver) -> Iterator[Service]:
    with service(SECRET=SECRET, FORWARD_SECRET=signing.STANDARD_SECRET) as made:
        made.configure(CONFIGURATION.format(url=receiver.url("/builds")))
        yield made


class Host:
    """A host of the installation: its name, its clock, its state folder."""

    def __init__(self, site: Service, name: str, ahead_seconds: float, **environment: str) -> None:
        self._clock = site.folder / f"clock-of-{name}"
        self.set_clock(ahead_seconds)
        paths = os.pathsep.join([str(CLOCKS), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        self.environment = {"PYTHONPATH": paths, "SKEW_FILE": str(self._clock), "SKEW_HOST": name, **environment}
        self.environment |= {"HEADRACE_STATE_DIR": str(site.folder / name), "HEADRACE_LEASE_SECONDS": str(LEASE_SECONDS)}
        self._site = site

    def set_clock(self, ahead_seconds: float) -> None:
        fresh = self._clock.with_suffix(".new")
        fresh.write_text(str(ahead_seconds))
        fresh.replace(self._clock)

    def start(self, *command: str) -> Process:
        """A resident loop, outside django-q2, once it is registered."""
        rows = "SELECT COUNT(*) FROM `_System_ConnectorWorker`"
        before = self._site.fetch(rows)
        process = self._site._start(command[0], ["manage.py", *command], self.environment)
        self._site.until(lambda: self._site.fetch(rows) != before, f"{command[0]} is registered")
        return process


def deliver(site: Service, kind: str, *names: str) -> None:
    """Deliveries of one repository, about one branch or each about its own, stored by a process whose clock is right."""
    lines = []
    for name in names:
        branch = f"refs/heads/{name if kind == 'delete' else 'main'}"
        body = {"ref": branch, "ref_type": "branch", "after": name, "repository": {"id": 7}}
        lines.append(json.dumps({"headers": {"x-github-event": kind, "x-github-delivery": name}, "body": body}))
    path = site.folder / "deliveries.jsonl"
    path.write_text("\n".join(lines))
    assert site.manage("receive", "code", str(path))["received"] == len(names)


def assert_its_clock_is_off(process: Process, by_seconds: float, site: Service) -> None:
    """What it says is dated by its host: so the test does test something."""
    first = next(json.loads(line) for line in process.log.read_text().splitlines() if line.startswith("{"))
    off = datetime.fromisoformat(first["timestamp"]) - site.now().replace(tzinfo=UTC)
    assert abs(off.total_seconds() - by_seconds) < 120


def times(site: Service, kind: str) -> list[dict[str, Any]]:
    """Of the items of a route kind, in order: what the database says of each."""
    columns = ("State", "Attempts", "RunAfter", "ClaimedAt", "TerminalAt")
    picked = ", ".join(f"w.{name}" for name in columns)
    rows = site.fetch(
        f"SELECT {picked}, e.CreatedDate FROM `_System_ConnectorWorkItem` w JOIN `_System_ConnectorEvent` e ON e.Id = w.EventId "
        "WHERE e.EventKind = %s ORDER BY w.ClaimedAt, w.Id",
        kind,
    )
    return [dict(zip((*columns, "CreatedDate"), row, strict=True)) for row in rows]


@pytest.mark.parametrize(("ahead", "zone"), [(HOURS, "UTC"), (-HOURS, "Asia/Tokyo")], ids=["ahead", "behind"])
def test_due_times_settling_retries_and_limits_are_the_same_on_a_host_that_is_hours_off(
    site: Service, receiver: Receiver, ahead: float, zone: str
) -> None:
    host = Host(site, "off", ahead, TZ=zone)
    parts = [host.start("route_receipts"), host.start("run_worker")]
    before = site.now()
    receiver.replies.put(Reply(500))
    receiver.replies.put(Reply(503, {"retry-after": "2"}))
    deliver(site, "push", "p-1")
    deliver(site, "create", "c-1", "c-2")
    deliver(site, "delete", *(f"g-{number}" for number in range(7)))
    site.until_idle()
    after = site.now()
    for part in parts:
        assert_its_clock_is_off(part, ahead, site)

    (settled,) = times(site, "repository.changed")
    waited = settled["ClaimedAt"] - settled["CreatedDate"]
    assert settled["State"] == "processed"
    assert timedelta(seconds=-0.5) < settled["RunAfter"] - settled["CreatedDate"] - SETTLE < timedelta(seconds=0.5)
    assert SETTLE - timedelta(seconds=0.5) < waited < after - before

    (forwarded,) = times(site, "repository.pushed")
    assert (forwarded["State"], receiver.requests.qsize()) == ("processed", 3)
    took = forwarded["TerminalAt"] - forwarded["CreatedDate"]
    assert timedelta(seconds=2.5) < took < after - before, "a retry after about a second, and the two seconds that were asked for"
    assert len(site.table("WorkFailure")) == 2

    deleted = [each["ClaimedAt"] for each in times(site, "branch.deleted")]
    assert len(deleted) == 7
    assert timedelta(seconds=2.0) < deleted[-1] - deleted[0] < after - before, "seven at two a second"

    for table, column in (("WorkItem", "ClaimedAt"), ("WorkItem", "TerminalAt"), ("Event", "CreatedDate"), ("Worker", "SeenAt")):
        found = site.fetch(f"SELECT MIN({column}), MAX({column}) FROM `_System_Connector{table}`")[0]
        assert before - timedelta(seconds=60) < min(found) <= max(found) <= site.now(), f"{table}.{column}"
    assert site.manage("health")["progressing"] is True
    site.assert_audit_is_clean()


@pytest.fixture
def held(receiver: Receiver) -> Iterator[Callable[[], None]]:
    """The receiver does not answer the first request before this is called; all others at once."""
    go_on = Event()
    receiver.replies.put(Reply(wait=lambda: go_on.wait(60)))
    yield go_on.set
    go_on.set()


@contextmanager
def in_flight(site: Service, receiver: Receiver) -> Iterator[datetime]:
    """A delivery whose flow has begun; yields when its first lease ends, by the database."""
    deliver(site, "push", "held")
    site.until(lambda: not receiver.requests.empty(), "the flow is in the middle of its request")
    yield lease_of_what_runs(site)


def lease_of_what_runs(site: Service) -> datetime:
    ((ends,),) = site.fetch("SELECT LeaseExpiresAt FROM `_System_ConnectorWorkItem` WHERE State = 'processing'")
    moment: datetime = ends
    return moment


@pytest.mark.parametrize("ahead", [-600, HOURS])
def test_a_lease_that_lives_is_taken_by_nobody_whose_clock_says_that_it_is_over(
    site: Service, receiver: Receiver, held: Callable[[], None], ahead: float
) -> None:
    """The other host looks all the time, and does what else is due. The first one is off the other way, and set back meanwhile."""
    first, second = Host(site, "first", -ahead), Host(site, "second", ahead, TZ="America/New_York")
    first.start("route_receipts")
    first.start("run_worker")
    with in_flight(site, receiver) as ends:
        second.start("run_worker")
        first.set_clock(-ahead - 120)
        site.until(lambda: site.now() > ends, "the lease that was taken first would be over")
        assert lease_of_what_runs(site) > site.now(), "it was extended"
        deliver(site, "delete", "other")
        site.until(lambda: [each["State"] for each in times(site, "branch.deleted")] == ["processed"], "others are claimed")
    held()
    site.until_idle()
    assert receiver.requests.qsize() == 1
    assert [(each["State"], each["Attempts"]) for each in times(site, "repository.pushed")] == [("processed", 1)]
    assert site.table("WorkFailure") == []
    site.assert_audit_is_clean()


@pytest.mark.parametrize("ahead", [HOURS, -HOURS], ids=["ahead", "behind"])
def test_the_lease_of_a_dead_worker_ends_when_the_database_says_so(
    site: Service, receiver: Receiver, held: Callable[[], None], ahead: float
) -> None:
    first, second = Host(site, "first", -ahead), Host(site, "second", ahead)
    first.start("route_receipts")
    worker = first.start("run_worker")
    with in_flight(site, receiver):
        worker.kill()
        ends = lease_of_what_runs(site)
        second.start("run_worker")
        site.until_idle()
    held()
    (item,) = times(site, "repository.pushed")
    assert (item["State"], item["Attempts"], receiver.requests.qsize()) == ("processed", 2, 2)
    assert ends <= item["ClaimedAt"] < ends + timedelta(seconds=LEASE_SECONDS)
    site.assert_audit_is_clean()


# ---- what people see

WORLD = """if True:
    import json
    from datetime import timedelta
    from connectors.models import Pack, Route
    from projection.database import clock
    from tests.support import console_world
    paths = console_world.build().paths
    for model in (Pack, Route):
        model.objects.update(paused_at=clock.now(), resume_at=clock.now() + timedelta(hours=4))
    console_world.user("administrator")
    print(json.dumps(paths))
"""
PAGES = """if True:
    import json, re, sys
    from django.db import connection
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client
    settings.ALLOWED_HOSTS = ["*"]
    with connection.cursor() as cursor:
        cursor.execute("SET timestamp = %s", [float(sys.argv[1])])
    client = Client()
    client.force_login(User.objects.get())
    def text(path):
        response = client.get(path)
        assert response.status_code == 200, (path, response.status_code)
        return re.sub(r'csrfmiddlewaretoken" value="[^"]*"|X-CSRFToken[^}]*', "", response.content.decode())
    print(json.dumps({path: text(path) for path in sys.argv[2:]}))
"""


def pages(environment: dict[str, str], moment: float, paths: list[str]) -> dict[str, str]:
    """Each page as a process with this environment renders it while the database's clock stands at `moment`."""
    command = [sys.executable, "-c", "import django; django.setup()\n" + PAGES, str(moment), *paths]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_console_shows_the_same_ages_whatever_the_clock_of_its_host(site: Service) -> None:
    build = "import django; django.setup()\n" + WORLD
    right = site.environment | {"PYTHONPATH": str(CHECKOUT)}
    built = subprocess.run([sys.executable, "-c", build], cwd=CHECKOUT, env=right, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    paths = list(json.loads(built.stdout.splitlines()[-1]).values())
    moment = site.now().replace(tzinfo=UTC).timestamp() + 2 * 3600
    expected = pages(right, moment, paths)
    assert any(re.search(r"2 h|2 hours", text) for text in expected.values()), "some of them show an age"
    assert ">paused<" in expected["/admin/packs/"], "and one a pause that ends in two hours"
    for ahead in (HOURS, -HOURS):
        shown = pages(
            right | {**Host(site, "off", ahead).environment, "HEADRACE_STATE_DIR": right["HEADRACE_STATE_DIR"]}, moment, paths
        )
        assert [path for path in paths if shown[path] != expected[path]] == []
