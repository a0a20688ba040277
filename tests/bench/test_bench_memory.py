"""`bench memory` at a small size: real processes and flows; and the judgement of what was measured."""

from __future__ import annotations

import os
from typing import Any

import pytest

from connectors.bench import memory
from connectors.bench.memory import LARGEST_MIB, TOLERANCE_MIB, Memory, summary
from connectors.bench.receiver import receiving
from connectors.bench.workbench import BenchFailed
from tests.support import commands


@pytest.mark.acceptance
@pytest.mark.usefixtures("database")
def test_both_processes_are_measured_over_all_items() -> None:
    code, answer = commands.run("bench", "memory", "--items", "400")
    assert code == 0, answer
    assert (answer["items"], answer["first_items"]) == (400, 200)
    assert [run["items"] for run in answer["runs"]] == [0, 200, 400]
    for kind in ("router", "worker"):
        start, first, end = (answer[f"{kind}_{name}_mib"] for name in ("start", "first", "end"))
        assert 10 < start <= answer[f"{kind}_max_mib"]
        assert answer[f"{kind}_growth_mib"] == end - first
        assert max(first, end) <= answer[f"{kind}_max_mib"]
    assert answer["small"] is True


@pytest.mark.usefixtures("database")
def test_what_is_missing_fails_the_run() -> None:
    with receiving() as receiver, pytest.raises(BenchFailed, match="events: 0 instead of 60"):
        memory._check(40, receiver)


def measured(*pairs: tuple[float, float], most: float = 0.0) -> list[dict[str, Any]]:
    """Measurements of (router, worker) in MiB."""
    return [
        {
            "items": place,
            "router_mib": router,
            "worker_mib": worker,
            "router_most_mib": max(router, most),
            "worker_most_mib": worker,
        }
        for place, (router, worker) in enumerate(pairs)
    ]


def test_what_came_before_the_first_step_is_no_growth() -> None:
    found = summary(measured((50, 50), (80, 70), (80 + TOLERANCE_MIB, 60)))
    assert (found["router_growth_mib"], found["worker_growth_mib"], found["flat"]) == (TOLERANCE_MIB, -10, True)


@pytest.mark.parametrize("end", [(80 + TOLERANCE_MIB + 0.1, 70), (80, 70 + TOLERANCE_MIB + 0.1)])
def test_growth_of_either_process_is_told(end: tuple[float, float]) -> None:
    assert summary(measured((50, 50), (80, 70), end))["flat"] is False


def test_a_peak_between_two_measurements_is_told() -> None:
    found = summary(measured((50, 50), (80, 70), (80, 70), most=LARGEST_MIB))
    assert (found["flat"], found["small"], found["router_max_mib"]) == (True, False, LARGEST_MIB)


def test_memory_is_what_the_kernel_says() -> None:
    before = Memory.of(os.getpid())
    block = bytearray(os.urandom(1)) * (64 * 1024 * 1024)
    after = Memory.of(os.getpid())
    assert 60 < after.now - before.now < 80
    assert after.most >= after.now
    del block
    assert Memory.of(os.getpid()).most >= after.now - 1


def test_one_item_is_no_workload() -> None:
    assert commands.run("bench", "memory", "--items", "1")[0] == 2
