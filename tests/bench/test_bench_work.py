"""`bench sc400` and `bench drain` at a small size: the figures that are promised, and what fails a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from connectors.bench import drain, sc400
from connectors.bench.workbench import BenchFailed
from connectors.routing.router import RouteReport
from projection.flows import Generation
from projection.models import Event, WorkItem
from tests.support import commands

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("database")]

STAGES = {"prepare", "settle", "facts", "projections", "lanes"}
SECONDS = ("raw_insert_s", "admission_s", "claim_s", "input_read_s", "complete_s", "combined_s", "end_to_end_s")


def database() -> str:
    return str(connection.settings_dict["NAME"])


def is_gone() -> bool:
    """Whether the database of the workload is."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        return f"{database()}_bench" not in {row[0] for row in cursor.fetchall()}


def test_the_figures_of_an_admission_and_its_work() -> None:
    before = database()
    code, answer = commands.run("bench", "sc400", "--sources", "7", "--events", "3", "--actions", "5", "--repeat", "2")
    assert code == 0, answer
    assert (database(), is_gone()) == (before, True)
    assert len(answer["runs"]) == 2
    for run in (answer, *answer["runs"]):
        assert (run["events"], run["work_items"], run["inputs"], run["receipts"]) == (26, 12, 21, 1)
        assert set(run["stages"]) == STAGES
        assert all(run[name] > 0 for name in SECONDS)
        assert 5 < run["statements"] <= 60
    for run in answer["runs"]:
        assert 0 < sum(run["stages"].values()) <= run["admission_s"]
        assert run["admission_over_raw"] == pytest.approx(run["admission_s"] / run["raw_insert_s"])
        assert run["combined_s"] == pytest.approx(run["admission_s"] + run["input_read_s"])
        assert run["end_to_end_s"] >= run["admission_s"]
    assert answer["database"]
    assert not Event.objects.exists(), "nothing of it is in ours"


def test_the_statements_of_an_admission_do_not_grow_with_its_sources() -> None:
    few, many = (
        commands.run("bench", "sc400", "--sources", sources, "--events", "2", "--actions", "0", "--repeat", "1")[1]["statements"]
        for sources in ("2", "100")
    )
    assert few == many


def test_the_figures_of_a_drain() -> None:
    before = database()
    code, answer = commands.run("bench", "drain", "--items", "130", "--repeat", "2")
    assert code == 0, answer
    assert (database(), is_gone()) == (before, True)
    assert len(answer["runs"]) == 2
    for run in (answer, *answer["runs"]):
        assert run["items"] == 130
        assert run["items_per_s"] > 0
        assert run["loop_items_per_s"] > 0
    for run in answer["runs"]:
        assert run["ratio"] == pytest.approx(run["items_per_s"] / run["loop_items_per_s"])
    assert not WorkItem.objects.exists()


def test_people_get_a_line_for_each_figure() -> None:
    code, text = commands.say("bench", "drain", "--items", "1", "--repeat", "1")
    assert code == 0
    assert "items: 1" in text
    assert "runs" not in text


def losing(real: Callable[..., Any], sql: str) -> Callable[..., Any]:
    """The real step; then somebody changes what it wrote."""

    def step(*arguments: Any, **options: Any) -> Any:
        found = real(*arguments, **options)
        with connection.cursor() as cursor:
            cursor.execute(sql)
        return found

    return step


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("DELETE FROM `_System_ConnectorEvent` ORDER BY Id LIMIT 1", "events stored: 11 instead of 12"),
        ("DELETE FROM `_System_ConnectorWorkItem` ORDER BY Id LIMIT 1", "work items: 7 instead of 8"),
        ("UPDATE `_System_ConnectorWorkItem` SET State = 'dead' ORDER BY Id LIMIT 2", "work items processed: 6 instead of 8"),
    ],
)
def test_what_an_admission_lost_fails_the_run(monkeypatch: pytest.MonkeyPatch, sql: str, what: str) -> None:
    monkeypatch.setattr(sc400, "_drain", losing(sc400._drain, sql))
    code, answer = commands.run("bench", "sc400", "--sources", "4", "--events", "2", "--actions", "4", "--repeat", "1")
    assert (code, is_gone()) == (2, True)
    assert what in answer["error"]["reason"]


def test_an_execution_too_much_fails_the_run() -> None:
    workload = sc400.Workload(1, 1, 0)
    seen = sc400._Seen(inputs=[1, 1], items=2)
    with pytest.raises(BenchFailed, match="events stored: 0 instead of 1"):
        sc400._check(workload, RouteReport(events=1), seen)


def test_an_item_that_did_not_run_fails_the_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_less(noop: Callable[[Generation], None], **_: Any) -> tuple[float, dict[str, float]]:
        return 1.0, {}

    monkeypatch.setattr(drain, "run_worker", one_less)
    code, answer = commands.run("bench", "drain", "--items", "3", "--repeat", "1")
    assert code == 2
    assert "the benchmark failed its check: 0 of 3 items ran, 0 are processed" in answer["error"]["reason"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("sc400", "--sources=0"),
        ("sc400", "--events=0"),
        ("sc400", "--actions=-1"),
        ("sc400", "--repeat=0"),
        ("drain", "--items=0"),
        ("drain", "--repeat=0"),
    ],
)
def test_sizes_that_measure_nothing_are_refused(arguments: tuple[str, ...]) -> None:
    code, answer = commands.run("bench", *arguments)
    assert (code, answer["error"]["code"]) == (2, "usage")
