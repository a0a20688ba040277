"""What the engine does becomes numbers by its log events alone: each verb under labels that configuration bounds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import OperationalError
from prometheus_client import REGISTRY

from ops_ui.monitoring import measures
from projection import logs
from projection.claiming import rescue
from projection.claiming.claim import claim
from projection.completion.complete import complete
from projection.database.transactions import run_unit
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.flows import RetryLater, Skip
from projection.leases import Ending
from projection.logs import log_event
from projection.models import WorkItem
from projection.states import State
from tests.support import ingress
from tests.support.deliveries import changes, open_ingress
from tests.support.flows_of_tests import Recorder, recording

pytestmark = pytest.mark.usefixtures("database")

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
ROUTE = {"namespace": "default", "route": "contact"}


@pytest.fixture
def flow() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


class Grown:
    """By how much a series has grown since the test began."""

    def __init__(self) -> None:
        self._before = _samples()

    def __call__(self, name: str, **labels: str) -> float:
        key = (name, tuple(sorted(labels.items())))
        return _samples().get(key, 0.0) - self._before.get(key, 0.0)


def _samples() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if metric.name.startswith("headrace_")
    }


@pytest.fixture
def grown(database: None) -> Grown:
    return Grown()


def test_one_admission_is_one_observation_of_each_stage(grown: Grown) -> None:
    site = open_ingress()
    site.route()
    site.admit(*changes(1, 3))
    for stage in measures.STAGES:
        assert grown("headrace_admission_seconds_count", stage=stage) == 1
    assert grown("headrace_admitted_events_total", namespace="default") == 3
    assert grown("headrace_known_events_total", namespace="default") == 0


def test_an_item_that_is_known_counts_as_known(grown: Grown) -> None:
    site = open_ingress()
    site.route()
    event = changes(1, 1)
    site.admit(*event)
    site.admit(*event, *changes(1, 1))
    assert grown("headrace_admitted_events_total", namespace="default") == 2
    assert grown("headrace_known_events_total", namespace="default") == 1


def test_a_generation_is_measured_at_its_first_start_alone(grown: Grown, flow: Recorder) -> None:
    site = open_ingress()
    site.route(settle=0, queue_class="bulk")
    site.admit(*changes(1, 4))
    flow.raises = [RetryLater(0)]
    drain_claims()
    WorkItem.objects.update(run_after=LONG_AGO)
    drain_claims()
    assert len(flow.runs) == 2
    assert grown("headrace_generation_events_sum", **ROUTE) == 4
    assert grown("headrace_generation_events_count", **ROUTE) == 1
    assert grown("headrace_settle_delay_seconds_count", **ROUTE) == 1
    assert grown("headrace_start_delay_seconds_count", queue_class="bulk") == 1
    assert grown("headrace_attempts_total", **ROUTE, outcome="retry") == 1
    assert grown("headrace_attempts_total", **ROUTE, outcome="processed") == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Skip("gone"), "skipped"), (RetryLater(60, count_attempt=False), "deferred"), (ValueError("no"), "retry")],
)
def test_what_became_of_an_attempt(grown: Grown, flow: Recorder, error: BaseException, outcome: str) -> None:
    site = open_ingress()
    site.route()
    site.admit(*changes(1, 1))
    flow.raises = [error]
    drain_claims()
    assert grown("headrace_attempts_total", **ROUTE, outcome=outcome) == 1


def test_a_dead_letter_counts_for_its_route(grown: Grown, flow: Recorder) -> None:
    site = open_ingress()
    site.route(retry=RetryPolicy(attempts=1))
    site.admit(*changes(1, 1))
    flow.raises = [ValueError("no")]
    drain_claims()
    assert grown("headrace_attempts_total", **ROUTE, outcome="dead") == 1


def test_a_lost_lease_and_its_rescue_count(grown: Grown, flow: Recorder) -> None:
    site = open_ingress()
    site.route()
    site.admit(*changes(1, 1))
    batch = claim(10, owner="lost", lease_seconds=60)
    WorkItem.objects.update(lease_expires_at=LONG_AGO)
    assert rescue.rescue() == 1
    complete([Ending(batch.items[0].item, batch.token, State.PROCESSED)])
    assert grown("headrace_rescued_total") == 1
    assert grown("headrace_leases_lost_total") == 1
    assert grown("headrace_attempts_total", namespace="unknown", route="unknown", outcome="rescued") == 1


def test_retries_count_by_the_databases_code(grown: Grown) -> None:
    codes = iter([1213, 1205, 1213])

    def unit() -> None:
        code = next(codes, None)
        if code:
            raise OperationalError(code, "conflict")

    run_unit("test", unit)
    assert grown("headrace_unit_retries_total", code="1213") == 2
    assert grown("headrace_unit_retries_total", code="1205") == 1


def test_a_code_that_nobody_knows_counts_among_the_others(grown: Grown) -> None:
    log_event("conflict", unit="test", error_code=4711)
    assert grown("headrace_unit_retries_total", code="other") == 1


def test_a_delivery_is_timed_when_it_is_kept(grown: Grown) -> None:
    site = ingress.open_endpoint()
    assert site.post(b"{}").status_code == 202
    assert site.post(b"{}", headers={}).status_code == 401
    assert grown("headrace_accept_seconds_count", pack="generic") == 1
    assert grown("headrace_unverified_total", pack="generic") == 1


def test_no_label_is_a_text_from_outside(flow: Recorder) -> None:
    """Records, urls, kinds and errors of a stranger's choice: whatever they are, the series stay the same."""
    site = open_ingress()
    site.route()
    marker = "https://stranger.example/?token=stranger"
    site.admit(*({**event, "contact": marker, "kind": "stranger.kind", "lane": marker} for event in changes(1, 1)))
    flow.raises = [ValueError(marker)]
    drain_claims()
    labels = {value for _, pairs in _samples() for _, value in pairs}
    assert not [value for value in labels if "stranger" in value]


def test_one_that_fails_to_count_stops_nobody(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(verb: str, fields: Any, rows: Any) -> None:
        raise KeyError(verb)

    monkeypatch.setattr(logs, "_subscribers", [broken])
    log_event("claim", count=1)
    assert [line.partition('"event": ')[2].split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        '"measure"',
        '"claim"',
    ]


def test_what_is_remembered_between_start_and_end_is_bounded(monkeypatch: pytest.MonkeyPatch, flow: Recorder) -> None:
    monkeypatch.setattr(measures, "MOST_REMEMBERED", 2)
    measures._routes.clear()
    site = open_ingress()
    site.route(mode="per_event")
    site.admit(*changes(1, 5))
    flow.raises = [RetryLater(60)] * 5
    drain_claims()
    assert len(measures._routes) <= 2
