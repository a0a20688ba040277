"""The database goes away and comes back, a web worker is killed in between: every 202 has exactly one receipt, in order."""

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
[packs.generic.endpoint.other]
secrets = ["env:SECRET"]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    with private_server() as made:
        yield made


@pytest.fixture(scope="module")
def installation(server: PrivateServer) -> Iterator[Service]:
    with service(server.url, SECRET=SECRET) as made:
        made.configure(CONFIGURATION)
        yield made


@pytest.fixture
def site(installation: Service, server: PrivateServer) -> Iterator[Service]:
    """Without a receipt and a spooled delivery, with a web server that has written down the endpoints."""
    installation.fetch("DELETE FROM `_System_ConnectorReceipt`")
    for left in (installation.folder / "spool").glob("*.journal"):
        left.unlink()
    installation.start_web()
    installation.until_serving()
    installation.until((installation.folder / "spool" / "endpoints.json").exists, "the endpoints are written down")
    yield installation
    for process in installation.processes:
        process.kill()
    server.start()


def body_of(name: str) -> bytes:
    return json.dumps({"ref": "refs/heads/main", "after": name, "repository": {"id": 7}}).encode()


def push(site: Service, name: str) -> tuple[int, dict[str, object]]:
    body = body_of(name)
    try:
        return site.post(PATH, body, signing.github(body, SECRET, delivery=name, event="push"))
    except OSError:  # the worker was killed before its answer: nobody was told anything
        return 0, {}


def workers(web: Process) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{web.pid}/task/{web.pid}/children").read_text().split()]


def stored(site: Service) -> list[str]:
    rows = site.fetch("SELECT IdempotencyKey FROM `_System_ConnectorReceipt` ORDER BY ReceivedAt, Id")
    return [str(name) for (name,) in rows]


def test_every_202_has_exactly_one_receipt_after_an_outage_with_a_kill(site: Service, server: PrivateServer) -> None:
    web = site.processes[-1]
    assert push(site, "before")[0] == 202
    assert stored(site) == ["before"]
    server.crash()
    assert push(site, "away-0") == (202, {"receipt": None, "duplicate": False, "spooled": True})
    assert push(site, "away-0")[0] == 202, "a copy is taken, too"
    assert site.post("/ingress/default/other", b"{}", signing.generic(b"{}", SECRET))[0] == 503

    names = [f"away-{number}" for number in range(1, 61)]
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(push, site, name) for name in names]
        answers[10].result()
        for pid in workers(web):
            os.kill(pid, signal.SIGKILL)
        taken = [name for name, answer in zip(names, answers, strict=True) if answer.result()[0] == 202]
    site.until(lambda: push(site, "away-new")[0] == 202, "workers that never saw the database take deliveries")
    assert len(taken) > 10

    server.start()
    site.until(lambda: push(site, "after")[0] in (200, 202) and "after" in stored(site), "the spool is drained")
    site.until(lambda: not [*(site.folder / "spool").glob("*.journal")], "the spool is empty")
    found = stored(site)
    assert len(found) == len(set(found))
    assert {"before", "away-0", "away-new", "after", *taken} <= set(found) <= {"before", "away-0", "away-new", "after", *names}
    assert (found[:2], found[-2:]) == (["before", "away-0"], ["away-new", "after"])
    assert site.request("GET", "/readyz") == (200, {"ready": True})


def test_a_power_cut_in_the_outage_and_in_the_drain_loses_and_repeats_nothing(site: Service, server: PrivateServer) -> None:
    """Everything is killed while deliveries are spooled, and again while they are drained."""
    server.crash()
    names = [f"cut-{number}" for number in range(300)]
    with ThreadPoolExecutor(4) as pool:
        taken = [
            name for name, answer in zip(names, pool.map(lambda name: push(site, name), names), strict=True) if answer[0] == 202
        ]
    assert taken == names
    site.processes[-1].kill()
    server.start()
    site.start_web()
    site.until(lambda: stored(site), "some are drained")
    site.processes[-1].kill()
    site.start_web()
    site.until(lambda: not [*(site.folder / "spool").glob("*.journal")], "the spool is empty")
    assert sorted(stored(site)) == sorted(names)


def test_a_body_above_the_packet_size_of_the_server_is_refused_for_good(site: Service, server: PrivateServer) -> None:
    """Where it spools it is taken, set aside, and stored once the server accepts it."""
    site.processes[-1].kill()
    server.execute("SET GLOBAL max_allowed_packet = 1048576")
    try:
        site.start_web()
        site.until_serving()
        for body in (json.dumps("x" * 1_100_000).encode(), json.dumps("\n" * 400_000).encode()):
            status, said = site.post("/ingress/default/other", body, signing.generic(body, SECRET))
            assert (status, said["code"]) == (507, "database_too_small")
            assert "max_allowed_packet" in said["message"]
        small = json.dumps("x" * 900_000).encode()
        assert site.post("/ingress/default/other", small, signing.generic(small, SECRET))[0] == 202
        large = json.dumps({"ref": "refs/heads/main", "repository": {"id": 7}, "text": "x" * 1_100_000}).encode()
        assert site.post(PATH, large, signing.github(large, SECRET, delivery="large", event="push"))[0] == 202
        site.until(lambda: [*(site.folder / "spool" / "aside").glob("*.refused")], "it is set aside")
        assert push(site, "beside")[0] == 202
    finally:
        server.execute("SET GLOBAL max_allowed_packet = 67108864")
    site.manage("spool", "retry")
    site.until(lambda: "large" in stored(site), "it is stored")
