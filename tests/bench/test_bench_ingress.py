"""`bench ingress` at a small size: real gunicorn on both sides, and every delivery that was answered is looked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from connectors.bench import ingress
from connectors.bench.http_load import Load
from connectors.bench.ingress import Delivery
from connectors.bench.workbench import BenchFailed
from connectors.models import Pack
from tests.support import commands, factories

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("database")]

SMALL = ("bench", "ingress", "--requests", "60", "--concurrency", "4", "--repeat", "2")


def test_the_figures_of_both_sites() -> None:
    before = connection.settings_dict["NAME"]
    code, answer = commands.run(*SMALL)
    assert code == 0, answer
    assert connection.settings_dict["NAME"] == before
    for run in (answer, *answer["runs"]):
        assert run["requests"] == 60
        assert (run["requests_per_s"] > 0, run["floor_requests_per_s"] > 0) == (True, True)
        assert 0 < run["p50_ms"] <= run["p99_ms"]
        assert 0 < run["floor_p50_ms"] <= run["floor_p99_ms"]
        assert (run["cpu_ms"] > 0, run["floor_cpu_ms"] > 0) == (True, True)
        assert run["errors"] == 0
    assert len(answer["runs"]) == 2
    for run in answer["runs"]:
        assert run["ratio"] == pytest.approx(run["requests_per_s"] / run["floor_requests_per_s"])


@pytest.fixture
def answered() -> Iterator[tuple[Load, list[Delivery]]]:
    """Deliveries that both sites have stored and answered, without a web server."""
    deliveries = list(ingress._deliveries(5, ingress._configure()))
    pack = Pack.objects.get(name="github")
    load = Load()
    with connection.cursor() as cursor:
        for number, one in enumerate(deliveries):
            body = one.text.partition(b"\r\n\r\n")[2]
            row = factories.receipt(pack, body, delivery_id=one.id)
            cursor.execute("INSERT INTO bench_floor (Id, Body) VALUES (%s, %s)", [row.id, body])
            load.answers[number] = b'{"receipt": "%d"}' % row.id
    yield load, deliveries
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE bench_floor")


def check(load: Load, deliveries: list[Delivery]) -> None:
    ingress._check_product(load, deliveries)
    ingress._check_floor(load, deliveries)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DELETE FROM `_System_ConnectorReceipt` ORDER BY Id LIMIT 1", "receipts: 1 of 5 .* 4 are stored"),
        ("UPDATE `_System_ConnectorReceipt` SET BodySha256 = '' ORDER BY Id LIMIT 2", "receipts: 2 of 5"),
        ("UPDATE `_System_ConnectorReceipt` SET Id = Id + 1000 ORDER BY Id LIMIT 1", "receipts: 1 of 5"),
        ("DELETE FROM bench_floor ORDER BY Id LIMIT 1", "rows of the floor: 1 of 5"),
        ("UPDATE bench_floor SET Body = '' ORDER BY Id LIMIT 2", "rows of the floor: 2 of 5"),
        ("INSERT INTO bench_floor (Body) VALUES ('')", "rows of the floor: 0 of 5 .* 6 are stored"),
    ],
)
def test_what_was_answered_and_is_not_there_fails_the_run(answered: tuple[Load, list[Delivery]], statement: str, what: str) -> None:
    check(*answered)
    with connection.cursor() as cursor:
        cursor.execute(statement)
    with pytest.raises(BenchFailed, match=what):
        check(*answered)


@pytest.mark.parametrize("option", ["--requests=1", "--concurrency=0", "--repeat=0", "--bytes=0"])
def test_sizes_that_measure_nothing_are_refused(option: str) -> None:
    code, answer = commands.run("bench", "ingress", option)
    assert (code, answer["error"]["code"]) == (2, "usage")
