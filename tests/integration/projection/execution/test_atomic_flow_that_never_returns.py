"""An atomic flow runs in its worker's own thread: when it never returns, the process leaves, and another takes its item over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from projection.claiming.rescue import rescue
from projection.execution.stuck_threads import EXIT_CODE
from projection.execution.worker import drain_claims
from tests.support.deliveries import change, open_ingress, states
from tests.support.flows_of_tests import recording, write, written
from tests.support.workers_by_hand import let_leases_run_out

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = """
import sys, threading
import django
django.setup()
from django.conf import settings
from projection import flows
from projection.execution import stuck_threads, worker
settings.HEADRACE_LEASE_SECONDS = 1
stuck_threads.ATOMIC_GRACE_SECONDS = 0.1
from tests.support.flows_of_tests import write
@flows.flow("test.record", atomic=True, timeout=0.1)
def hang(generation):
    write(generation)
    threading.Event().wait()
worker.drain_claims()
"""


@pytest.mark.usefixtures("sound_database")
def test_its_process_leaves_and_the_item_runs_once_elsewhere() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(7))
    base, _, query = os.environ["HEADRACE_DATABASE_URL"].partition("?")
    url = f"{base.rpartition('/')[0]}/{connection.settings_dict['NAME']}" + (f"?{query}" if query else "")
    environment = os.environ | {"HEADRACE_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "ops_ui.settings"}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, timeout=40, check=False, capture_output=True, text=True
    )
    assert (ended.returncode, "did not return" in ended.stdout + ended.stderr) == (EXIT_CODE, True)
    assert (states(7), written()) == (["processing"], 0)
    let_leases_run_out()
    rescue()
    with recording(atomic=True) as seen:
        seen.acts.append(write)
        drain_claims()
    assert (states(7), written()) == (["processed"], 1)
