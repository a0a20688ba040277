"""Ingress: signed POSTs through the product's own gunicorn, beside a bare Django view with one INSERT."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any, Final

from django.db import connection

from connectors.bench.http_load import Load, post
from connectors.bench.processes import Process, database_url, listening, site
from connectors.bench.workbench import BenchFailed, commits_durably, empty, own_database, server
from connectors.configuration.endpoints import EndpointDraft, create
from connectors.configuration.packs import install
from connectors.configuration.stored_secrets import Secret
from connectors.ingress.paths import ingress_path
from connectors.models import Receipt

NAMESPACE: Final = "bench"
SLUG: Final = "bench"
FLOOR_TABLE: Final = "bench_floor"
"""As in `floor_site`, which only gunicorn may import."""
SLICES: Final = 10
"""Product and floor take turns so often in a repetition: what else the machine does meanwhile meets both."""
WARM_UP: Final = 200
"""Requests before the first repetition: every thread has its connection to the database."""
BODY_BYTES: Final = 10_000
"""What GitHub sends at a push of one commit."""
COMMIT_BYTES: Final = 240
"""Of one commit in the bodies made here."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One signed request: its provider's id, the digest of its body, and its whole text."""

    id: str
    sha256: str
    text: bytes


def run(
    requests: int, concurrency: int, repeat: int, body_bytes: int = BODY_BYTES, *, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Post `requests` deliveries of about `body_bytes` `repeat` times to both sites; medians, and each repetition under `runs`.

    Raises BenchFailed.
    """
    with own_database() as name:
        secret = _configure()
        with _both_sites(name) as sites:
            _compare(sites, list(_deliveries(WARM_UP, secret, body_bytes)), concurrency)
            runs = []
            for number in range(repeat):
                _clear()
                runs.append(_repetition(sites, list(_deliveries(requests, secret, body_bytes)), concurrency))
                say(
                    f"run {number + 1}: {runs[-1]['requests_per_s']:.0f} requests/s, floor {runs[-1]['floor_requests_per_s']:.0f}/s, "
                    f"ratio {runs[-1]['ratio']:.2f}"
                )
        facts = {"database": server(), "durable_commits": commits_durably(), "concurrency": concurrency, "body_bytes": body_bytes}
    medians: dict[str, Any] = {measure: median(one[measure] for one in runs) for measure in runs[0]}
    return facts | medians | {"requests": requests, "errors": sum(one["errors"] for one in runs), "runs": runs}


def _configure() -> str:
    """A GitHub endpoint and the floor's table; the endpoint's secret."""
    secret = secrets.token_hex(32)
    install(NAMESPACE, "github", actor="bench")
    create(NAMESPACE, EndpointDraft("github", SLUG, (Secret(secret),)), actor="bench")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {FLOOR_TABLE} (Id BIGINT AUTO_INCREMENT PRIMARY KEY, Body LONGBLOB NOT NULL)")
    return secret


def _clear() -> None:
    empty()
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE TABLE {FLOOR_TABLE}")


def _deliveries(count: int, secret: str, body_bytes: int = BODY_BYTES) -> Iterator[Delivery]:
    """Pushes as GitHub sends them, each with an id and a body of its own."""
    for number in range(count):
        commits = [
            {"id": f"{number:020x}{commit:020x}", "message": f"Commit {commit} of push {number}", "timestamp": "2026-06-25T12:00:00Z",
             "author": {"name": "Mona Lisa", "email": "mona@example.com", "username": "octocat"}, "modified": ["README.md"]}
            for commit in range(max(1, body_bytes // COMMIT_BYTES))
        ]  # fmt: skip
        push = {"ref": "refs/heads/main", "after": f"{number:040x}", "repository": {"id": 7, "full_name": "octo/hello"}}
        body = json.dumps(push | {"commits": commits}).encode()
        yield _delivery(f"bench-{number:012d}", body, secret)


def _delivery(delivery_id: str, body: bytes, secret: str) -> Delivery:
    headers = {
        "Host": "127.0.0.1",
        "User-Agent": "GitHub-Hookshot/bench",
        "Accept": "*/*",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "X-GitHub-Delivery": delivery_id,
        "X-GitHub-Event": "push",
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }
    lines = [f"POST {ingress_path(NAMESPACE, SLUG)} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return Delivery(delivery_id, hashlib.sha256(body).hexdigest(), "\r\n".join(lines).encode("ascii") + body)


@dataclass(frozen=True, slots=True)
class Served:
    """A site's port and its gunicorn."""

    port: int
    web: Process


@contextmanager
def _both_sites(name: str) -> Iterator[tuple[Served, Served]]:
    """Product and floor, both served by gunicorn under the product's configuration, on database `name`."""
    with ExitStack() as held:
        served = []
        for application in ("ops_ui.wsgi:application", "connectors.bench.floor_site:application"):
            listener: socket.socket = held.enter_context(listening())
            web = held.enter_context(site(database_url(name))).start_web(application, listener)
            served.append(Served(listener.getsockname()[1], web))
        yield served[0], served[1]


def _repetition(sites: tuple[Served, Served], deliveries: list[Delivery], concurrency: int) -> dict[str, Any]:
    before = [one.web.cpu_seconds() for one in sites]
    product, floor = _compare(sites, deliveries, concurrency)
    cpu = [one.web.cpu_seconds() - used for one, used in zip(sites, before, strict=True)]
    _check_product(product, deliveries)
    _check_floor(floor, deliveries)
    rates = [len(deliveries) / load.seconds for load in (product, floor)]
    p50, p99 = _percentiles(product)
    floor_p50, floor_p99 = _percentiles(floor)
    return {
        "requests": len(deliveries),
        "requests_per_s": rates[0],
        "floor_requests_per_s": rates[1],
        "ratio": rates[0] / rates[1],
        "p50_ms": p50,
        "p99_ms": p99,
        "floor_p50_ms": floor_p50,
        "floor_p99_ms": floor_p99,
        "cpu_ms": 1000 * cpu[0] / len(deliveries),
        "floor_cpu_ms": 1000 * cpu[1] / len(deliveries),
        "errors": product.errors + floor.errors,
        "client_cpu": (product.cpu_seconds + floor.cpu_seconds) / (product.seconds + floor.seconds),
    }


def _compare(sites: tuple[Served, Served], deliveries: list[Delivery], concurrency: int) -> tuple[Load, Load]:
    """The same requests to both, slice by slice, the first place taking turns."""
    loads = (Load(), Load())
    texts = {number: one.text for number, one in enumerate(deliveries)}
    size = max(concurrency, -(-len(texts) // SLICES))
    for turn, at in enumerate(range(0, len(texts), size)):
        part = {number: texts[number] for number in range(at, min(at + size, len(texts)))}
        for which in (turn % 2, 1 - turn % 2):
            loads[which].add(post(sites[which].port, part, concurrency))
    return loads


def _check_product(load: Load, deliveries: list[Delivery]) -> None:
    """Every delivery has its receipt: the one that its answer named, with its id and its exact body. Raises BenchFailed."""
    wanted = {(one.id, one.sha256): _receipt_of(load.answers[number]) for number, one in enumerate(deliveries)}
    stored = {
        (key, sha256): receipt for receipt, key, sha256 in Receipt.objects.values_list("id", "idempotency_key", "body_sha256")
    }
    _require_equal(wanted, stored, "receipts")


def _check_floor(load: Load, deliveries: list[Delivery]) -> None:
    wanted = {_receipt_of(load.answers[number]): one.sha256 for number, one in enumerate(deliveries)}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT Id, SHA2(Body, 256) FROM {FLOOR_TABLE}")
        stored: dict[int, str] = dict(cursor.fetchall())
    _require_equal(wanted, stored, "rows of the floor")


def _receipt_of(answer: bytes) -> int:
    return int(json.loads(answer)["receipt"])


def _require_equal(wanted: Mapping[Any, Any], stored: Mapping[Any, Any], what: str) -> None:
    if wanted != stored:
        missing = sum(1 for key, value in wanted.items() if stored.get(key) != value)
        raise BenchFailed(f"{what}: {missing} of {len(wanted)} are not stored as answered; {len(stored)} are stored")


def _percentiles(load: Load) -> tuple[float, float]:
    """p50 and p99 in milliseconds."""
    cuts = quantiles(load.latencies, n=100, method="inclusive")
    return 1000 * cuts[49], 1000 * cuts[98]
