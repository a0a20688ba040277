"""Wake-up: how soon an idle system starts a flow after a delivery, and what being idle costs the database.

gunicorn and the django-q2 cluster run as the product runs them, behind a relay that counts every command that they send. A delivery
counts from the moment at which it is sent to the one at which the flow's own request has arrived: more than from commit to start.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from queue import Empty
from random import Random
from statistics import median
from time import monotonic
from typing import Any, Final

import MySQLdb
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from connectors.bench.processes import PATIENCE_SECONDS, Site, database_url, listening, site
from connectors.bench.receiver import Receiver, receiving
from connectors.bench.relay import Relay, relay
from connectors.bench.workbench import BenchFailed, own_database, server
from connectors.configuration.apply import apply
from connectors.configuration.file import parse
from connectors.ingress.paths import ingress_path
from connectors.tasks import CLAIM_WORKERS, ROUTERS
from projection.models import Worker, WorkItem
from projection.runtime.loop import POLL_SECONDS
from projection.states import NONTERMINAL

NAMESPACE: Final = "bench"
FLOOR_TABLE: Final = "bench_floor"
CONFIGURATION: Final = """
namespace = "bench"
[packs.github.endpoint.bench]
secrets = ["plain:{secret}"]
[connections.bench]
url = "{url}"
secret = "plain:whsec_{forward_secret}"
[routes.bench]
pack = "github"
on = ["*"]
kind = "bench"
mode = "per_event"
flow = "http_forward"
connection = "bench"
"""
LOOPS: Final = ROUTERS + CLAIM_WORKERS
"""Resident loops, each of which polls at least once in POLL_SECONDS."""


def run(deliveries: int, idle_seconds: float, *, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Send deliveries one by one to an idle system, then let it be idle; milliseconds and statements a second. Raises BenchFailed.

    Raises ImproperlyConfigured where the database is reached by TLS.
    """
    if "ssl_mode" in connection.settings_dict["OPTIONS"]:
        raise ImproperlyConfigured(
            "bench wake counts statements on their way, which TLS hides; give it a database URL without ssl="
        )
    with own_database() as name, receiving() as receiver:
        secret = _configure(receiver)
        place = connection.settings_dict
        with relay(str(place["HOST"]), str(place["PORT"])) as counter, _system(counter.url(database_url(name))) as (made, port):
            _deliver(port, "warm-up", secret, receiver)
            waits = [_idle_then_deliver(made, port, f"delivery-{number}", secret, receiver) for number in range(deliveries)]
            say(f"from delivery to flow: median {1000 * median(waits):.0f} ms, longest {1000 * max(waits):.0f} ms")
            idle, questions = _idle_costs(made, counter, idle_seconds)
            say(f"idle: {idle:.1f} statements per second")
        polling = _bare_polling(deliveries, 1 / idle)
        facts = {"database": server(), "deliveries": deliveries}
    return facts | {
        "wake_ms": 1000 * median(waits),
        "longest_wake_ms": 1000 * max(waits),
        "polling_ms": 1000 * median(polling),
        "idle_seconds": idle_seconds,
        "idle_statements_per_s": idle,
        "polls_per_s": LOOPS / POLL_SECONDS,
        "server_questions_per_s": questions,
        "runs": [1000 * wait for wait in waits],
    }


def _configure(receiver: Receiver) -> str:
    """A GitHub endpoint whose events are forwarded at once, and the floor's table; the endpoint's secret."""
    secret = secrets.token_hex(32)
    text = CONFIGURATION.format(secret=secret, url=receiver.url, forward_secret="YmVuY2g" * 6)
    apply(parse(text), actor="bench")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {FLOOR_TABLE} (Id BIGINT AUTO_INCREMENT PRIMARY KEY, At DATETIME(6) NOT NULL)")
    return secret


@contextmanager
def _system(url: str) -> Iterator[tuple[Site, int]]:
    """gunicorn and the cluster, once every resident loop has begun; and the port of the ingress."""
    with ExitStack() as held:
        listener = held.enter_context(listening())
        made = held.enter_context(site(url))
        made.start_web("ops_ui.wsgi:application", listener)
        made.start("cluster", "manage.py", "qcluster")
        made.until(lambda: Worker.objects.count() >= LOOPS, "the loops of the cluster have begun")
        yield made, listener.getsockname()[1]


def _idle_then_deliver(made: Site, port: int, name: str, secret: str, receiver: Receiver) -> float:
    """Let the system fall asleep, for a time that meets its polls at any phase; seconds from a delivery to its flow."""
    made.until(lambda: not WorkItem.objects.filter(state__in=NONTERMINAL).exists(), "nothing is left to do")
    _pass(Random(name).uniform(POLL_SECONDS, 2 * POLL_SECONDS))  # noqa: S311  # a phase is no secret
    return _deliver(port, name, secret, receiver)


def _deliver(port: int, name: str, secret: str, receiver: Receiver) -> float:
    """Seconds from the sending of a delivery to the request of its flow. Raises BenchFailed."""
    body = json.dumps({"ref": "refs/heads/main", "after": name, "repository": {"id": 7}}).encode()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Delivery": name,
        "X-GitHub-Event": "push",
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)) as web:
        web.connect()
        sent = monotonic()
        web.request("POST", ingress_path(NAMESPACE, "bench"), body, headers)
        answer = web.getresponse()
        text = answer.read()
    if answer.status != 202:
        raise BenchFailed(f"{name} was answered {answer.status}: {text.decode('utf-8', 'replace')[:200]}")
    try:
        return receiver.moments.get(timeout=PATIENCE_SECONDS) - sent
    except Empty:
        raise BenchFailed(f"{name} was stored, and its flow did not start in {PATIENCE_SECONDS:g} s") from None


def _idle_costs(made: Site, counter: Relay, seconds: float) -> tuple[float, float | None]:
    """Commands a second of the system's processes, and statements a second by the server's own count (all its clients; None = it
    does not count)."""
    made.until(lambda: not WorkItem.objects.filter(state__in=NONTERMINAL).exists(), "nothing is left to do")
    _pass(2 * POLL_SECONDS)
    questions, commands, since = _questions(), counter.commands, monotonic()
    _pass(seconds)
    passed, more = monotonic() - since, counter.commands - commands
    now = _questions()
    by_server = None if questions is None or now is None else (now - questions - 1) / passed  # the one that asked is ours
    for process in made.processes:
        process.require_alive()
    return more / passed, by_server


def _questions() -> int | None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
        row = cursor.fetchone()
    return None if row is None else int(row[1])


def _bare_polling(rows: int, period: float) -> list[float]:
    """The floor: seconds until a bare loop that asks every `period` seconds has seen a row, from its insertion on."""
    seen: list[float] = []
    stop, found = threading.Event(), threading.Semaphore(0)

    def poll() -> None:
        with closing(MySQLdb.connect(**connection.get_connection_params())) as plain:
            plain.autocommit(True)
            cursor = plain.cursor()
            last = 0
            while not stop.wait(period):
                cursor.execute(f"SELECT Id FROM {FLOOR_TABLE} WHERE Id > %s ORDER BY Id LIMIT 1", [last])
                for row in cursor.fetchall():
                    last = row[0]
                    seen.append(monotonic())
                    found.release()

    poller = threading.Thread(target=poll, daemon=True)
    poller.start()
    waits = []
    for number in range(rows):
        _pass(Random(number).uniform(0, period))  # noqa: S311  # a phase is no secret
        inserted = monotonic()
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {FLOOR_TABLE} (At) VALUES (UTC_TIMESTAMP(6))")
        if not found.acquire(timeout=PATIENCE_SECONDS):
            raise BenchFailed("the bare loop did not see its row")
        waits.append(seen[-1] - inserted)
    stop.set()
    poller.join()
    return waits


def _pass(seconds: float) -> None:
    """Let time pass in which nothing is awaited: what is measured is a system that nobody asks for anything."""
    threading.Event().wait(seconds)
