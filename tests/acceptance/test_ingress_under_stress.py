"""A database that keeps everybody waiting, and a stop in the middle: answers come in time, threads stay few, nothing is lost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from ops_ui.config.database_url import INGRESS_TIMEOUT_SECONDS
from ops_ui.config.environment import WEB_PROCESSES
from tests.acceptance.service import Process, Service, service
from tests.support import signing

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        os.environ["HEADRACE_DATABASE_URL"].startswith("tidb"), reason="TiDB takes LOCK TABLES and locks nothing, so nobody waits"
    ),
]

SECRET = "a secret of either provider"
CONFIGURATION = """
[packs.github.endpoint.code]
secrets = ["env:SECRET"]
[packs.generic.endpoint.other]
secrets = ["env:SECRET"]
"""
IN_FLIGHT = 200
THREADS = 8
"""Of a web process (`gunicorn_conf.py`)."""
SLACK_SECONDS = 5.0
"""For a busy machine."""
LOCK = "LOCK TABLES `_System_ConnectorReceipt` WRITE"


@pytest.fixture(scope="module")
def installation() -> Iterator[Service]:
    with service(SECRET=SECRET) as made:
        made.configure(CONFIGURATION)
        yield made


@pytest.fixture
def site(installation: Service) -> Iterator[Service]:
    """Without a receipt, with a web server of the test's own."""
    installation.fetch("DELETE FROM `_System_ConnectorReceipt`")
    installation.start_web()
    installation.until_serving()
    yield installation
    for process in installation.processes:
        process.kill()


def other(site: Service, number: int) -> tuple[int, str | None]:
    """A delivery to an endpoint that does not spool: status and code."""
    body = b'{"n":%d}' % number
    status, answer = site.post("/ingress/default/other", body, signing.generic(body, SECRET))
    return status, answer.get("code")


def code(site: Service, number: int) -> tuple[int, bool]:
    """A delivery to an endpoint that spools: status, and whether it was spooled."""
    body = b'{"n":%d}' % number
    status, answer = site.post("/ingress/default/code", body, signing.github(body, SECRET, delivery=f"d-{number}"))
    return status, answer.get("spooled", False)


def members(web: Process, name: str) -> list[int]:
    """A number out of /proc/<pid>/status of each process of the web server."""
    found = []
    for pid in web.group():
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        found += [int(line.split()[1]) for line in lines if line.startswith(f"{name}:")]
    return found


def receipts(site: Service) -> int:
    return int(site.fetch("SELECT COUNT(*) FROM `_System_ConnectorReceipt`")[0][0])


def test_a_blocked_database_is_answered_in_time_and_piles_up_no_threads(site: Service) -> None:
    web = site.processes[-1]
    assert [other(site, -number) for number in range(1, 20)] == [(202, None)] * 19
    assert code(site, -1) == (202, False)
    before = receipts(site)
    memory = sum(members(web, "VmRSS"))
    with closing(site.new_connection()) as stranger:
        stranger.cursor().execute(LOCK)
        since = monotonic()
        with ThreadPoolExecutor(80) as pool:
            refused = [pool.submit(other, site, number) for number in range(40)]
            spooled = [pool.submit(code, site, number) for number in range(40)]
            answers = Counter(one.result() for one in refused)
            kept = Counter(one.result() for one in spooled)
        took = monotonic() - since
        threads = members(web, "Threads")
    assert answers == {(503, "database_unavailable"): 40}
    assert kept == {(202, True): 40}
    # One round of threads waits for the time-out, at most one more for a try in between; the others do not wait at all.
    assert took < 3 * INGRESS_TIMEOUT_SECONDS + SLACK_SECONDS
    assert len(threads) == WEB_PROCESSES + 1
    assert max(threads) <= 8 + 4, "its threads, the main one, the keeper and the watcher of bodies"
    assert sum(members(web, "VmRSS")) - memory < 100 * 1024, "KiB"
    site.until(lambda: receipts(site) == before + 40, "what was spooled is drained")
    site.until(lambda: other(site, 100) == (202, None), "the database is asked again")


def test_a_stop_answers_what_is_in_flight_and_loses_no_accepted_delivery(site: Service) -> None:
    """As far as the web server goes: the supervisor holds the socket, so that what was not accepted yet waits there."""
    web = site.processes[-1]
    with closing(site.new_connection()) as stranger, ThreadPoolExecutor(IN_FLIGHT) as pool:
        stranger.cursor().execute(LOCK)
        answers = [pool.submit(code, site, number) for number in range(IN_FLIGHT)]
        blocked = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE 'INSERT INTO%%Receipt%%'"
        site.until(lambda: site.fetch(blocked)[0][0] >= WEB_PROCESSES, "deliveries wait for the lock")
        assert sum(answer.done() for answer in answers) < IN_FLIGHT - WEB_PROCESSES * THREADS, "many are under way"
        web.ask_to_stop()
        stranger.cursor().execute("UNLOCK TABLES")
        assert web.wait() == 0
        site.start_web()  # takes up what waited in the socket's queue
        assert {answer.result()[0] for answer in answers} == {202}
    site.until(
        lambda: receipts(site) == IN_FLIGHT and not [*(site.folder / "spool").glob("*.journal")], "what was spooled is drained"
    )
    ids = site.fetch("SELECT IdempotencyKey, COUNT(*) FROM `_System_ConnectorReceipt` GROUP BY IdempotencyKey")
    assert dict(ids) == {f"d-{number}": 1 for number in range(IN_FLIGHT)}
    assert site.request("GET", "/readyz") == (200, {"ready": True})
    site.assert_audit_is_clean()
