"""The disk under HEADRACE_STATE_DIR is full: every request has its answer, what was acknowledged is there, and the numbers come back."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.private_server import IS_INSTALLED, PrivateServer, private_server
from tests.acceptance.service import Process, Service, service
from tests.support import signing
from tests.support.small_disk import SmallDisk, small_disk

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        not (IS_INSTALLED and os.environ["HEADRACE_DATABASE_URL"].startswith(("mysql", "mariadb"))),
        reason="the suite's own server is not ours to stop, and MariaDB is not installed here",
    ),
]

SECRET = "a secret of GitHub"
PATH = "/ingress/default/code"
CONFIGURATION = """
[packs.github.endpoint.code]
secrets = ["env:SECRET"]
"""


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    with private_server() as made:
        yield made


@pytest.fixture
def site(server: PrivateServer) -> Iterator[Service]:
    with service(server.url, SECRET=SECRET) as made:
        made.configure(CONFIGURATION)
        yield made


@pytest.fixture
def disk(site: Service) -> Iterator[SmallDisk]:
    """Under spool, counters and everything else of the state folder, and nothing but that."""
    with small_disk(site.folder / "disk", "2m") as made:
        site.environment["HEADRACE_STATE_DIR"] = str(made.folder)
        (made.folder / "metrics").mkdir()
        (site.folder / "metrics").symlink_to(made.folder / "metrics")
        yield made
        for process in site.processes:
            process.kill()


def push(site: Service, name: str) -> int:
    """The status; 0: there was no answer."""
    body = json.dumps({"ref": "refs/heads/main", "after": name, "repository": {"id": 7}, "text": "x" * 5_000}).encode()
    try:
        return site.post(PATH, body, signing.github(body, SECRET, delivery=name, event="push"))[0]
    except OSError:
        return 0


def push_all(site: Service, names: list[str]) -> dict[str, int]:
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(names, pool.map(lambda name: push(site, name), names), strict=True))


def names(kind: str) -> list[str]:
    return [f"{kind}-{number}" for number in range(40)]


def workers(web: Process) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{web.pid}/task/{web.pid}/children").read_text().split()]


def stored(site: Service) -> set[str]:
    return {str(name) for (name,) in site.fetch("SELECT IdempotencyKey FROM `_System_ConnectorReceipt`")}


def received(site: Service) -> float:
    """What the processes of this host counted together."""
    text = site.request("GET", "/metrics")[1]
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("headrace_received_total{"))


def test_a_full_state_disk_leaves_no_request_without_an_answer(site: Service, server: PrivateServer, disk: SmallDisk) -> None:
    web, cluster = site.start()
    site.until((disk.folder / "spool" / "endpoints.json").exists, "the endpoints are written down")
    living = workers(web)
    disk.fill()

    assert set(push_all(site, names("full")).values()) == {202}, "the database is there, and takes them"
    assert site.request("GET", "/metrics")[0] == 200
    assert workers(web) == living, "nobody died"

    for pid in living:
        os.kill(pid, signal.SIGKILL)
    site.until(lambda: push(site, "first") in (200, 202), "new workers start on the full disk")
    assert set(push_all(site, names("again")).values()) == {202}
    assert received(site) >= 0
    assert web.is_alive()
    assert cluster.is_alive()

    server.crash()
    answers = push_all(site, names("away"))
    assert set(answers.values()) <= {202, 503}, "spooled, or refused for want of space"
    assert 503 in answers.values()
    assert site.request("GET", "/healthz")[0] == 200
    server.start()

    disk.free()
    site.until(lambda: push(site, "after") in (200, 202), "deliveries are stored")
    site.until(lambda: not [*(disk.folder / "spool").glob("*.journal")], "the spool is empty")
    taken = {name for name, status in answers.items() if status == 202}
    found = stored(site)
    assert {*names("full"), *names("again"), "first", "after", *taken} <= found
    site.until(lambda: received(site) >= len(names("again")), "the numbers of those that live are written")
    site.until_idle()
    site.assert_audit_is_clean()
    assert (web.is_alive(), cluster.is_alive()) == (True, True)
