"""Units: one transaction that commits whole or not at all, run again whole on a conflict; and what a statement may carry."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DataError, IntegrityError, InterfaceError, OperationalError, connection, transaction

from connectors.bench.workbench import texts_sent
from connectors.models import Namespace
from projection.database import catalogue
from projection.database.outages import is_connection_lost
from projection.database.transactions import ATTEMPTS, duplicate_key, is_conflict, is_server_conflict, run_unit
from projection.execution.worker import drain_claims
from projection.models import Event, WorkItem
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.rivals import Rival

pytestmark = pytest.mark.usefixtures("sound_database")


def names() -> set[str]:
    return set(Namespace.objects.values_list("name", flat=True))


def unit(errors: list[Exception]) -> Callable[[], int]:
    """Writes one row a run, then raises the next error; returns how many runs there were."""
    runs: list[int] = []

    def run() -> int:
        runs.append(1)
        Namespace.objects.create(name=f"run {len(runs)}")
        if errors:
            raise errors.pop(0)
        return len(runs)

    return run


@pytest.mark.parametrize("code", [1020, 1205, 1213, 8002, 8022, 8028, 9007])
def test_a_conflict_rolls_back_and_runs_the_unit_again(code: int) -> None:
    assert run_unit("test", unit([OperationalError(code, "conflict")] * 2)) == 3
    assert names() == {"run 3"}


@pytest.mark.parametrize("key", ["ProjectionActiveKey", "t.LaneHolderKey"])
def test_a_raced_key_is_a_conflict(key: str) -> None:
    assert run_unit("test", unit([IntegrityError(1062, f"Duplicate entry 'x' for key '{key}'")])) == 2


@pytest.mark.parametrize(
    "error",
    [
        IntegrityError(1062, "Duplicate entry 'x' for key 'WorkId'"),
        DataError(1406, "Data too long"),
        OperationalError(2006, "gone away"),
        ValueError("mine"),
        OperationalError("no number"),
        OperationalError(),
    ],
)
def test_anything_else_ends_the_unit_at_once_and_leaves_nothing(error: Exception) -> None:
    with pytest.raises(type(error)):
        run_unit("test", unit([error]))
    assert names() == set()


def test_conflicts_that_do_not_end_are_raised() -> None:
    errors: list[Exception] = [OperationalError(1213, "deadlock")] * 99
    with pytest.raises(OperationalError, match="deadlock"):
        run_unit("test", unit(errors))
    assert (names(), 99 - len(errors)) == (set(), ATTEMPTS)


def test_a_unit_never_joins_another_transaction() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError):
        run_unit("test", unit([]))


def test_after_a_lock_wait_time_out_nothing_of_the_unit_is_left() -> None:
    """Error 1205 undoes only its statement: a unit that went on would commit the rest."""
    Namespace.objects.create(name="held")

    def wait_for_it() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SET innodb_lock_wait_timeout = 1")
        with pytest.raises(OperationalError) as raised:
            run_unit("test", lambda: (Namespace.objects.create(name="half"), _lock("held")), attempts=1)
        assert is_server_conflict(raised.value)
        return "rolled back"

    with transaction.atomic():
        _lock("held")
        assert Rival(wait_for_it).result() == "rolled back"
    assert names() == {"held"}


def _lock(name: str) -> Namespace:
    return Namespace.objects.select_for_update().get(name=name)


@pytest.mark.parametrize("column", ["projection_active_key", "lane_holder_key", "work_id", "replay_of_work_id"])
def test_the_server_s_own_message_names_the_unique_key(column: str) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7), change(8))
    value = "f" * 64
    first, second = WorkItem.objects.order_by("id")
    kept = getattr(second, column)
    WorkItem.objects.filter(id=first.id).update(**{column: value})
    with pytest.raises(IntegrityError) as raised:
        WorkItem.objects.filter(id=second.id).update(**{column: value})
    assert duplicate_key(raised.value) == WorkItem._meta.get_field(column).db_column
    assert is_conflict(raised.value) is (column in ("projection_active_key", "lane_holder_key"))
    WorkItem.objects.filter(id=first.id).update(**{column: getattr(first, column)})
    assert getattr(WorkItem.objects.get(id=second.id), column) == kept


@pytest.mark.parametrize("error", [OperationalError(2013, "Lost connection"), InterfaceError(0, "")], ids=["lost", "unusable"])
def test_a_lost_connection_is_told_from_a_conflict(error: Exception) -> None:
    assert (is_connection_lost(error), is_conflict(error)) == (True, False)
    assert duplicate_key(error) is None


HOSTILE: list[Any] = [
    "100 % %s %(ids)s {work_columns} {ids}",
    "');--\\ \" ` \n\r\t\x1a",
    "🎩\u2028é",
    "\\u0000 \\ud800",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_values_are_never_taken_for_statement_text(text: str) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(text, id=text, note=text))
    event = Event.objects.get()
    assert (event.source_id, json.loads(event.payload)["note"]) == (text, text)
    with recording() as seen:
        seen.raises.append(ValueError(text))
        assert drain_claims() == 1
    assert WorkItem.objects.get().state == "retry"


def test_inserts_are_cut_to_what_the_server_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    monkeypatch.setattr(catalogue, "LONGEST_INSERT_BYTES", 8_000)
    with texts_sent() as whole:
        ingress.admit(*[change(n, note="x" * 1000) for n in range(20)])
    assert whole.count > 20
    assert Event.objects.count() == WorkItem.objects.count() == 20


def test_a_row_larger_than_a_piece_is_sent_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    monkeypatch.setattr(catalogue, "LONGEST_INSERT_BYTES", 8_000)
    ingress.admit(change(7), change(8, note="x" * 100_000), change(9))
    assert sorted(len(event.payload) > 100_000 for event in Event.objects.all()) == [False, False, True]


def test_a_single_statement_never_joins_another_transaction_either() -> None:
    sent: list[int] = []
    with transaction.atomic(), pytest.raises(RuntimeError, match="beat must not run inside another transaction"):
        run_unit("beat", lambda: sent.append(1), one_statement=True)
    assert sent == []
