"""What every workload needs: a database of its own, the number of texts sent, and the plain floor beside our figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import MySQLdb
from django.db import connection

from connectors.registry import installed_packs
from projection import flows
from projection.admission import activation
from projection.claiming import claim
from projection.database import catalogue
from projection.database.catalogue import LONGEST_INSERT_BYTES
from projection.execution.heartbeat import Heartbeat
from projection.execution.worker import ClaimWorker
from projection.flows import Generation

EMPTIED: Final = (
    "_System_ConnectorReceipt",
    "_System_ConnectorEvent",
    "_System_ConnectorWorkItem",
    "_System_ConnectorWorkFailure",
    "_System_ConnectorWorker",
)


class BenchFailed(RuntimeError):
    """A workload lost, doubled or reordered something: the message says what; its times mean nothing."""


@contextmanager
def own_database() -> Iterator[str]:
    """A fresh database beside the configured one, migrated and activated; dropped at the end. Yields its name."""
    original, test = connection.settings_dict["NAME"], connection.settings_dict["TEST"]
    before, test["NAME"] = test.get("NAME"), f"{original}_bench"
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        _forget()
        activation.activate("bench")
        yield str(connection.settings_dict["NAME"])
    finally:
        connection.creation.destroy_test_db(original, verbosity=0)
        test["NAME"] = before
        _forget()


def _forget() -> None:
    """What this process remembers about the other database."""
    installed_packs.of.forget()
    activation.forget()
    claim.forget()
    catalogue.max_allowed_packet.cache_clear()


def empty() -> None:
    """Start the next repetition with empty tables and ordinals from 1."""
    with connection.cursor() as cursor:
        for table in EMPTIED:
            cursor.execute(f"TRUNCATE TABLE `{table}`")
        cursor.execute("UPDATE `_System_ConnectorNamespace` SET NextEnqueueOrdinal = 1")


@dataclass
class Texts:
    """Number of statement texts that were sent; BEGIN and COMMIT are calls of the client library and do not count."""

    count: int = 0


@contextmanager
def texts_sent() -> Iterator[Texts]:
    """Count every text that this thread's connection sends, each piece of a multi-row insert too."""
    connection.ensure_connection()
    raw = connection.connection
    texts = Texts()
    original = raw.query

    def query(text: bytes) -> Any:
        texts.count += 1
        return original(text)

    raw.query = query
    try:
        yield texts
    finally:
        raw.query = original


def floor_seconds(tables: Sequence[str]) -> float:
    """The floor: plain mysqlclient inserting the rows that these tables now hold into empty ones with the same indexes, one transaction.

    Its texts are as long as ours, and it commits durably like ours.
    """
    plain = MySQLdb.connect(**connection.get_connection_params())
    try:
        cursor = plain.cursor()
        cursor.max_stmt_length = LONGEST_INSERT_BYTES
        prepared = []
        for table in tables:
            cursor.execute(f"SELECT * FROM `{table}`")
            rows = cursor.fetchall()
            names = ", ".join(f"`{column[0]}`" for column in cursor.description)
            holes = ", ".join(["%s"] * len(cursor.description))
            cursor.execute(f"DROP TABLE IF EXISTS `floor{table}`")
            cursor.execute(f"CREATE TABLE `floor{table}` LIKE `{table}`")
            prepared.append((f"INSERT INTO `floor{table}` ({names}) VALUES ({holes})", rows))
        plain.commit()
        started = perf_counter()
        for text, rows in prepared:
            cursor.executemany(text, rows)
        plain.commit()
        seconds = perf_counter() - started
        for table in tables:
            cursor.execute(f"DROP TABLE `floor{table}`")
        return seconds
    finally:
        plain.close()


def run_worker(noop: Callable[[Generation], None], *, batch: int | None = None) -> tuple[float, dict[str, float]]:
    """Execute everything that is due by one worker, with `noop` as the flow `bench.noop`: seconds in all, and by stage."""
    flows.flow("bench.noop")(noop)
    try:
        with Heartbeat("worker", lease_seconds=60) as heartbeat:
            worker = ClaimWorker(heartbeat, batch=batch)
            started = perf_counter()
            worker.drain()
            seconds = perf_counter() - started
            worker.close()
        return seconds, dict(worker.seconds)
    finally:
        flows.forget("bench.noop")


def commits_durably() -> bool | None:
    """Whether the server syncs its log at each commit; None = it does not say so by InnoDB's setting (TiDB always does)."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL VARIABLES LIKE 'innodb_flush_log_at_trx_commit'")
        row = cursor.fetchone()
    return None if row is None else str(row[1]) == "1"


def server() -> str:
    """Product and version of the server, for the report."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        return str(cursor.fetchone()[0])
