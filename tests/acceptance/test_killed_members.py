"""Each process of a cluster is killed alone, at rest and at work: what it ran starts again at once, and no other one is held up by it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.acceptance.service import Service, service
from tests.support import signing
from tests.support.running import children_of

pytestmark = pytest.mark.acceptance

SECRET = "the secret of the GitHub webhook"
ROUNDS = 2
LEASE_SECONDS = 3
MEMBERS = 6
"""Children of the sentinel: four workers, of which one is idle, the monitor, the pusher."""
BACK_SECONDS = 25.0
"""The guard looks each second; a pusher polls every two; the rest is for a busy machine."""
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
        made.start(HEADRACE_LEASE_SECONDS=str(LEASE_SECONDS))
        yield made


def push(site: Service, name: str) -> None:
    body = json.dumps({"ref": "refs/heads/main", "after": name, "repository": {"id": 7}}).encode()
    headers = signing.github(body, SECRET, delivery=name) | {"Content-Type": "application/json"}
    assert site.post("/ingress/default/code", body, headers)[0] == 202


def members(site: Service) -> list[int]:
    (sentinel,) = children_of(site.processes[-1].pid)
    return sorted(children_of(sentinel))


def loops(site: Service) -> list[tuple[str, int]]:
    """(kind, process id) of the loops whose processes live."""
    rows = site.fetch("SELECT Kind, Pid FROM `_System_ConnectorWorker`")
    return sorted((kind, pid) for kind, pid in rows if pid in members(site))


def no_schedule_helps(site: Service) -> None:
    site.fetch("UPDATE django_q_schedule SET next_run = UTC_TIMESTAMP() + INTERVAL 1 DAY")


def test_whichever_process_is_killed_its_loop_is_back_without_the_schedule(site: Service) -> None:
    no_schedule_helps(site)
    for turn in range(ROUNDS):
        for place in range(MEMBERS):
            site.until(lambda: len(members(site)) == MEMBERS, "the cluster is whole", BACK_SECONDS)
            site.until(lambda: len(loops(site)) == 3, "each loop runs", BACK_SECONDS)
            victim = members(site)[place]
            os.kill(victim, signal.SIGKILL)
            site.until(lambda gone=victim: gone not in members(site), "it is gone", BACK_SECONDS)
            push(site, f"{turn}-{place}")
            site.until(
                lambda: [kind for kind, _ in loops(site)] == ["router", "worker", "worker"], "each loop is back", BACK_SECONDS
            )
            site.until_idle(BACK_SECONDS)
    assert site.fetch("SELECT State, COUNT(*) FROM `_System_ConnectorWorkItem` GROUP BY State") == [("processed", ROUNDS * MEMBERS)]
    assert site.processes[-1].is_alive()
    site.assert_audit_is_clean()


def test_an_idle_process_that_is_killed_does_not_keep_the_others_from_their_tasks(site: Service) -> None:
    """It waits for a task, so it would be the one that holds the lock of a queue that has one."""
    no_schedule_helps(site)
    for _ in range(3):
        site.until(lambda: len(loops(site)) == 3 and len(members(site)) == MEMBERS, "each loop runs", BACK_SECONDS)
        busy = {pid for _, pid in loops(site)}
        for pid in members(site):
            if pid not in busy:
                os.kill(pid, signal.SIGKILL)
    router = next(pid for kind, pid in loops(site) if kind == "router")
    os.kill(router, signal.SIGKILL)
    push(site, "after all that")
    site.until_idle(BACK_SECONDS)
    assert [kind for kind, _ in loops(site)].count("router") == 1
