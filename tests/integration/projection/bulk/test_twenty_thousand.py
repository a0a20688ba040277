"""Twenty thousand dead letters by one job each: bounded steps, exact results. (A thousand unless TEST_SCALE=full.)"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connectors.operations.bulk_jobs import DeadLetters
from connectors.routing import router
from projection.bulk.job_rows import JobKind, JobRow, JobState
from projection.bulk.steps import ITEMS_A_STEP, run_step
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.logs import quietly
from projection.models import WorkItem
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import Recorder, recording
from tests.support.jobs_by_hand import assert_exact, codes, now, preview, run_with_workers, start
from tests.support.scale import size

pytestmark = [pytest.mark.usefixtures("sound_database"), pytest.mark.scale, pytest.mark.timeout(3600)]

ITEMS = size(1000, 20_000)
TWICE = ITEMS // 10
"""Contacts with two dead generations."""
STATEMENTS_A_STEP = 30


def dead(seen: Recorder) -> None:
    """ITEMS dead letters of ITEMS - TWICE contacts."""
    ingress = open_ingress()
    ingress.route()
    contacts = range(ITEMS - TWICE)
    for several in (contacts, contacts[:TWICE]):
        for start_at in range(0, len(several), 200):
            ingress.send_body(json.dumps({"events": [change(one) for one in several[start_at : start_at + 200]]}).encode())
        router.drain_receipts("default")
        seen.raises = [DeadLetter("bad")] * len(several)
        assert drain_claims(batch=200) == len(several)
    seen.runs.clear()
    seen.sources.clear()


def counted(job: JobRow) -> list[int]:
    """Statements of each of the job's steps until it only waits."""
    counts = []
    while (known := now(job)).due_in is not None and not (known.fixed and not known.waiting):
        with CaptureQueriesContext(connection) as asked:
            run_step(known, DeadLetters())
        counts.append(len(asked))
    return counts


@pytest.mark.parametrize("kind", list(JobKind))
def test_a_job_of_many(kind: JobKind) -> None:
    with recording() as seen, quietly():
        dead(seen)
        told = preview(kind).expected
        job = start(kind)
        counts = counted(job)
        assert max(counts) <= STATEMENTS_A_STEP
        assert len(counts) <= ITEMS // 1000 + 1 + ITEMS // ITEMS_A_STEP
        if kind is JobKind.REPLAY:
            assert (told.possible, told.deferred) == (ITEMS - TWICE, TWICE)
            assert run_with_workers(job).state is JobState.FINISHED
            drain_claims(batch=200)
            assert len(seen.sources) == ITEMS
            assert Counter(Counter(seen.sources).values()) == Counter({1: ITEMS - 2 * TWICE, 2: TWICE})
        else:
            assert told.possible == ITEMS
            assert now(job).state is JobState.FINISHED
            assert WorkItem.objects.filter(discarded_at__isnull=False).count() == ITEMS
        assert codes(job) == {"done": ITEMS}
        assert_exact(job)
