"""The disk of the database is full, then the one under HEADRACE_STATE_DIR too, then both have space again.

Real ones: an ext4 disk under a MariaDB of the test's own, and a small one under the state folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.acceptance.private_server import IS_INSTALLED, PrivateServer, private_server
from tests.acceptance.service import Service, service
from tests.support import signing
from tests.support.running import state_folder
from tests.support.small_disk import SmallDisk, block_disk, small_disk

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        not (IS_INSTALLED and os.environ["HEADRACE_DATABASE_URL"].startswith(("mysql", "mariadb"))),
        reason="the disk of the suite's own server is not ours to fill, and MariaDB is not installed here",
    ),
]

SECRET = "a secret of GitHub"
CONFIGURATION = """
[packs.github.endpoint.code]
secrets = ["env:SECRET"]
[routes.push]
pack = "github"
on = ["push"]
kind = "code.pushed"
mode = "per_event"
flow = "log"
"""
DISK_MEBIBYTES = 800
"""An empty installation takes less than half of it."""
SPOOL_DISK = "4m"


@pytest.fixture
def database_disk() -> Iterator[SmallDisk]:
    with state_folder() as folder, block_disk(folder / "disk", DISK_MEBIBYTES) as made:
        yield made


@pytest.fixture
def server(database_disk: SmallDisk) -> Iterator[PrivateServer]:
    with private_server(database_disk.folder / "database") as made:
        yield made


@pytest.fixture
def site(server: PrivateServer) -> Iterator[Service]:
    with service(server.url, SECRET=SECRET) as made:
        made.configure(CONFIGURATION)
        yield made


@pytest.fixture
def state_disk(site: Service) -> Iterator[SmallDisk]:
    with small_disk(site.folder / "disk", SPOOL_DISK) as made:
        site.environment["HEADRACE_STATE_DIR"] = str(made.folder)
        yield made
        for process in site.processes:
            process.kill()


def push(site: Service, name: str) -> int:
    """The status; 0: there was no answer."""
    body = json.dumps({"ref": "refs/heads/main", "after": name, "repository": {"id": 7}, "text": name * 3_000}).encode()
    try:
        return site.post("/ingress/default/code", body, signing.github(body, SECRET, delivery=name, event="push"))[0]
    except OSError:
        return 0


def push_all(site: Service, kind: str, count: int) -> dict[str, int]:
    names = [f"{kind}-{number}" for number in range(count)]
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(names, pool.map(lambda name: push(site, name), names), strict=True))


def until_it_says_that_its_disk_is_full(site: Service, answers: dict[str, int]) -> None:
    """Deliveries come until not one more fits; each is in `answers`."""

    def is_told() -> bool:
        answers.update(push_all(site, f"more-{len(answers)}", 20))
        code, answer = site.request("GET", "/readyz")
        return (code, isinstance(answer, dict) and answer.get("code")) == (503, "database_full")

    site.until(is_told, "/readyz says that the disk of the database is full")


def test_full_disks_use_no_attempt_and_lose_nothing_and_all_goes_on_by_itself(
    site: Service, database_disk: SmallDisk, state_disk: SmallDisk
) -> None:
    site.start()
    site.until((state_disk.folder / "spool" / "endpoints.json").exists, "the endpoints are written down")
    answers = push_all(site, "before", 40)
    site.until_idle()

    answers |= push_all(site, "busy", 40)
    database_disk.fill()
    until_it_says_that_its_disk_is_full(site, answers)
    health = site.manage("health", expect=2)
    assert health["reasons"][0]["code"] == "database_full"
    answers |= push_all(site, "database-full", 40)
    assert set(answers.values()) <= {202, 503}, "stored, spooled, or refused; never without an answer"
    assert 202 in {answers[name] for name in answers if name.startswith("database-full")}, (
        "the spool takes what the database does not"
    )

    state_disk.fill()
    both = push_all(site, "both-full", 40)
    assert set(both.values()) <= {202, 503}
    assert 503 in both.values()
    assert site.request("GET", "/healthz")[0] == 200

    state_disk.free()
    database_disk.free()
    site.until(lambda: site.request("GET", "/readyz")[0] == 200, "the web server is ready again")
    site.until(lambda: not [*(state_disk.folder / "spool").glob("*.journal")], "the spool is empty")
    site.until_idle()
    taken = {name for name, status in (answers | both).items() if status == 202}
    receipts = {str(name) for (name,) in site.fetch("SELECT IdempotencyKey FROM `_System_ConnectorReceipt`")}
    assert taken <= receipts
    assert site.fetch("SELECT State, MAX(Attempts) FROM `_System_ConnectorReceipt` GROUP BY State") == [("routed", 0)]
    states = site.fetch("SELECT State, MAX(Attempts), COUNT(*) FROM `_System_ConnectorWorkItem` GROUP BY State")
    assert states == [("processed", 1, len(receipts))]
    site.assert_audit_is_clean()
    assert all(process.is_alive() for process in site.processes)
