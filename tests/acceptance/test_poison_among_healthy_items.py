"""An item that kills whatever process runs it, among many healthy ones over three workers (docs/protocol.md#rescue)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.acceptance.service import PATIENCE_SECONDS, Process, Service, service
from tests.support.running import CHECKOUT
from tests.support.scale import size

pytestmark = [pytest.mark.acceptance, pytest.mark.scale]

HEALTHY = size(60, 500)
ATTEMPTS = 3
LEASE_SECONDS = 3
WORKERS = 3
LONGEST_SECONDS = 240.0
CONFIGURATION = f"""
[packs.generic]
settings = {{ delivery_id = "id", source_type = "'order'", source_id = "order" }}
[packs.generic.endpoint.shop]
secrets = ["env:SHOP_SECRET"]
[routes.orders]
pack = "generic"
on = ["*"]
kind = "order.changed"
mode = "per_event"
flow = "poison.order"
retry = {{ base = "1s", cap = "1s", attempts = {ATTEMPTS} }}
"""
FLOWS = """
import os, time
from projection.flows import flow

@flow("poison.order"{options})
def order(generation):
    if generation.source.id == "poison":
        os._exit(137)
    time.sleep({seconds})
"""


@pytest.fixture(params=["a quick flow", "a slow flow", "an atomic flow"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    options = ", atomic=True" if request.param == "an atomic flow" else ""
    seconds = 0.2 if request.param == "a slow flow" else 0.002
    app = tmp_path / "poison_sync"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "flows.py").write_text(FLOWS.format(options=options, seconds=seconds), encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(CHECKOUT)])
    with service(HEADRACE_APPS="poison_sync", PYTHONPATH=path, SHOP_SECRET="s") as made:
        made.configure(CONFIGURATION)
        yield made


def deliver(site: Service) -> None:
    names = [f"h{number}" for number in range(HEALTHY)]
    names.insert(HEALTHY // 3, "poison")
    bodies = [json.dumps({"type": "order.changed", "id": f"e-{name}", "order": name}) for name in names]
    path = site.folder / "orders.jsonl"
    path.write_text("\n".join(bodies), encoding="utf-8")
    site.manage("receive", "shop", str(path), seconds=2 * PATIENCE_SECONDS)
    site.manage("route_receipts", "--drain", seconds=2 * PATIENCE_SECONDS)


def run_until_all_ended(site: Service) -> tuple[float, int]:
    """Seconds that three workers took, each replaced when it dies; how many of them died."""
    crew: list[Process] = []
    lost, begun = 0, monotonic()
    while site.waiting():
        assert monotonic() - begun < LONGEST_SECONDS, site.waiting()
        gone = [one for one in crew if not one.is_alive()]
        assert {one.wait() for one in gone} <= {137}
        lost += len(gone)
        crew = [one for one in crew if one not in gone]
        while len(crew) < WORKERS:
            crew.append(site.start_worker(HEADRACE_LEASE_SECONDS=str(LEASE_SECONDS)))
        site.until(
            lambda crew=tuple(crew): not site.waiting() or not all(one.is_alive() for one in crew),
            "something ended",
            LONGEST_SECONDS,
        )
    return monotonic() - begun, lost


def test_who_kills_its_worker_dies_alone_and_no_neighbour_loses_an_attempt(site: Service) -> None:
    deliver(site)
    seconds, lost = run_until_all_ended(site)
    sys.stdout.write(f"{HEALTHY} healthy items and the poison: {seconds:.1f} s, {lost} workers lost\n")
    items = site.fetch("SELECT State, Attempts, LastError, COUNT(*) FROM `_System_ConnectorWorkItem` GROUP BY 1, 2, 3 ORDER BY 4")
    (poison, *healthy) = [row for row in items if row[0] == "dead"] + [row for row in items if row[0] != "dead"]
    assert (poison[0], poison[1], poison[3]) == ("dead", ATTEMPTS, 1)
    assert "worker lost" in poison[2]
    assert {row[:2] for row in healthy} == {("processed", 1)}, items
    assert sum(row[3] for row in healthy) == HEALTHY
    assert lost == ATTEMPTS + 1, "the first time it ran beside others"
    site.assert_audit_is_clean()
