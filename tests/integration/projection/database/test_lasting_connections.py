"""Connections of processes that live for weeks: dropped while idle, or leading to a server that takes no writes any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection, connections, transaction

from connectors.models import Namespace
from projection.database.backends import lasting
from projection.database.outages import is_database_away, is_read_only
from tests.support.lock_waits import own_connection_id
from tests.support.read_only import read_only_server

pytestmark = pytest.mark.usefixtures("database")


def kill(connection_id: int) -> None:
    """As an administrator, a time-out of the server or a firewall does; returns once the server has forgotten it."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(f"KILL {connection_id}")
            while True:
                cursor.execute("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %s", [connection_id])
                if cursor.fetchone() == (0,):
                    return
    finally:
        other.close()


@pytest.fixture
def after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each use of a connection comes after a long pause."""
    monkeypatch.setattr(lasting, "IDLE_SECONDS", 0.0)


@pytest.mark.parametrize("alias", ["default", "ingress"])
def test_a_connection_that_was_dropped_while_idle_is_opened_anew_and_nobody_notices(after_a_pause: None, alias: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        (before,) = cursor.fetchone()
    kill(before)
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        assert cursor.fetchone() != (before,)


def test_so_is_one_that_begins_a_transaction(after_a_pause: None) -> None:
    kill(own_connection_id())
    with transaction.atomic():
        Namespace.objects.create(name="written")
    assert Namespace.objects.filter(name="written").exists()


def test_in_the_middle_of_a_transaction_it_is_an_error_and_nothing_is_half_written(after_a_pause: None) -> None:
    def write_twice() -> None:
        with transaction.atomic():
            Namespace.objects.create(name="first")
            kill(own_connection_id())
            Namespace.objects.create(name="second")

    with pytest.raises(OperationalError):
        write_twice()
    assert not Namespace.objects.filter(name__in=["first", "second"]).exists()


def test_one_in_use_is_not_asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pings: list[bool] = []
    own = connections["default"]
    real = own.is_usable
    monkeypatch.setattr(own, "is_usable", lambda: pings.append(True) or real())
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    for _ in range(5):
        Namespace.objects.exists()
    assert pings == []
    own._used_at -= lasting.IDLE_SECONDS
    Namespace.objects.exists()
    Namespace.objects.exists()
    assert pings == [True]


# ---- a server that takes no writes


def write() -> None:
    Namespace.objects.create(name="written")


@pytest.fixture
def old_server() -> Iterator[None]:
    """This thread is connected to a server that may only be read; by now the address leads to one that takes writes."""
    with read_only_server():
        Namespace.objects.exists()
    yield
    connection.close()


def test_who_may_not_write_is_connected_anew(old_server: None) -> None:
    before = own_connection_id()
    with pytest.raises(OperationalError) as refused:
        write()
    assert is_read_only(refused.value)
    write()
    assert own_connection_id() != before


def test_the_other_threads_that_only_read_do_not_stay_behind(old_server: None) -> None:
    """They would read what the old server still has, and never know."""
    own, ready, gone_on, seen = [own_connection_id()], threading.Event(), threading.Event(), list[int]()

    def read_again_and_again() -> None:
        try:
            seen.append(own_connection_id())
            ready.set()
            assert gone_on.wait(20)
            seen.append(own_connection_id())
        finally:
            connection.close()

    reader = threading.Thread(target=read_again_and_again)
    reader.start()
    assert ready.wait(20)
    with pytest.raises(OperationalError):
        write()
    gone_on.set()
    reader.join(20)
    own.append(own_connection_id())
    assert len({*own, *seen}) == 4, "each of both has another one than before"


def test_a_transaction_is_not_torn_from_its_connection(old_server: None) -> None:
    with transaction.atomic():
        before = own_connection_id()
        lasting.replace_all()
        assert own_connection_id() == before
    assert own_connection_id() != before


LOST = OperationalError(2013, "Lost connection to server during query")


def test_a_database_that_takes_no_writes_is_away() -> None:
    assert not is_database_away(LOST)
    with read_only_server():
        assert is_database_away(LOST)
    assert not is_database_away(LOST)
