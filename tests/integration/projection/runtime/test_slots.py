"""Slots of resident loops: one loop each, also after a lost connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from django.db import OperationalError, connection

from projection.runtime.slots import Slot, slot

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def other() -> Iterator[Any]:
    """A cursor of another process's connection."""
    made = connection.copy()
    try:
        yield made.cursor()
    finally:
        made.close()


def holder(cursor: Any, held: Slot) -> int | None:
    """The connection that holds the slot's lock."""
    cursor.execute("SELECT IS_USED_LOCK(%s)", [held._name])
    found: int | None = cursor.fetchone()[0]
    return found


def own_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        return int(cursor.fetchone()[0])


def test_a_taken_slot_is_refused_and_free_again_afterwards(other: Any) -> None:
    with slot("claim", 1) as held:
        assert held is not None
        assert holder(other, held) == own_id()
        other.execute("SELECT GET_LOCK(%s, 0)", [held._name])
        assert other.fetchone() == (0,)
    assert holder(other, held) is None
    other.execute("SELECT GET_LOCK(%s, 0)", [held._name])
    with slot("claim", 1) as refused:
        assert refused is None
    with slot("claim", 2) as another:
        assert another is not None


def test_a_kept_slot_costs_no_statement(other: Any, django_assert_num_queries: Any) -> None:
    with slot("route", 1) as held:
        assert held is not None
        with django_assert_num_queries(0):
            assert held.keep()


def test_a_slot_survives_a_lost_connection(other: Any) -> None:
    with slot("route", 1) as held:
        assert held is not None
        connection.close()  # what a loop does when its database went away
        other.execute(
            "SELECT GET_LOCK(%s, 10), RELEASE_LOCK(%s)", [held._name, held._name]
        )  # the server notices a close a little later
        assert other.fetchone() == (1, 1)
        assert held.keep()  # nobody can tell yet
        fresh = own_id()
        assert held.keep()
        assert holder(other, held) == fresh
    assert holder(other, held) is None


def test_a_connection_that_is_lost_while_nobody_looks_has_freed_the_slot(other: Any) -> None:
    with slot("route", 1) as held:
        assert held is not None
        other.execute(f"KILL {own_id()}")
    connection.close()
    other.execute("SELECT GET_LOCK(%s, 10)", [held._name])
    assert other.fetchone() == (1,)


def test_a_slot_that_another_loop_took_meanwhile_is_given_up(other: Any) -> None:
    with slot("route", 1) as held:
        assert held is not None
        connection.close()
        with closing(other):
            other.execute("SELECT GET_LOCK(%s, 1)", [held._name])
            own_id()
            assert not held.keep()


def test_while_the_database_is_away_nobody_can_tell_so_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> bool:
        raise OperationalError(2006, "server has gone away")

    with slot("route", 1) as held:
        assert held is not None
        connection.close()
        connection.ensure_connection()
        with monkeypatch.context() as patch:
            patch.setattr(held, "take", away)
            assert held.keep()
        assert held.keep(), "and takes it again when it is back"
