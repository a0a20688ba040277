"""Processes that are forked from each other never share a connection to the database: what one sends another one would read."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.acceptance.service import Process, Service, service
from tests.acceptance.sockets import connections_of
from tests.support import signing
from tests.support.running import children_of

pytestmark = pytest.mark.acceptance

SECRET = "the secret of the GitHub webhook"
CONFIGURATION = """
[packs.github.endpoint.code]
secrets = ["env:SECRET"]
[routes.push]
pack = "github"
on = ["*"]
kind = "repository.event"
mode = "per_event"
flow = "log"
"""


@pytest.fixture
def site() -> Iterator[Service]:
    with service(SECRET=SECRET) as made:
        made.configure(CONFIGURATION)
        made.start()
        yield made


def push(site: Service, name: str) -> None:
    body = json.dumps({"ref": "refs/heads/main", "after": name, "repository": {"id": 7}}).encode()
    headers = signing.github(body, SECRET, delivery=name) | {"Content-Type": "application/json"}
    assert site.post("/ingress/default/code", body, headers)[0] == 202


def assert_each_has_its_own(part: Process, at_least: int) -> None:
    holders = connections_of(part.group(), os.environ["HEADRACE_DATABASE_URL"])
    assert len(set().union(*holders.values())) >= at_least, "so many processes of it are connected"
    assert {inode: pids for inode, pids in holders.items() if len(pids) > 1} == {}


def test_no_connection_is_shared_at_the_start_nor_after_processes_were_forked_anew(site: Service) -> None:
    web, cluster = site.processes
    for number in range(20):
        push(site, f"before-{number}")
    site.until_idle()
    assert_each_has_its_own(web, 2)
    assert_each_has_its_own(cluster, 4)  # three loops and the pusher
    for part, parents in ((web, [web.pid]), (cluster, children_of(cluster.pid))):
        before = {child for parent in parents for child in children_of(parent)}
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        site.until(
            lambda gone=before, parents=parents: (
                len({one for parent in parents for one in children_of(parent)} - gone) >= len(gone)
            ),
            f"the {part.name} has forked all of them again",
        )
    site.until_serving()
    for number in range(20):
        push(site, f"after-{number}")
    site.until_idle()
    assert_each_has_its_own(web, 2)
    assert_each_has_its_own(cluster, 3)
    assert site.fetch("SELECT State, COUNT(*) FROM `_System_ConnectorWorkItem` GROUP BY State") == [("processed", 40)]
