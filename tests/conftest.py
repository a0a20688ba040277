"""Fixtures of the suite: a real database on the server that HEADRACE_DATABASE_URL names, with committed data.

Tests never run inside a transaction of the test's: locks, other connections and other processes must see what is written. After
each test the tables are emptied (what migrations put there stays).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.auth import hashers
from django.db import connection, connections
from django.test.utils import setup_databases, teardown_databases
from hypothesis import HealthCheck
from hypothesis import settings as examples

from connectors.operations.ingress_audit import audit_everything
from script.lib.bytecode import keep_bytecode
from tests.support.receiver import Receiver, receiving

keep_bytecode(os.environ)
examples.register_profile("suite", suppress_health_check=[HealthCheck.too_slow], deadline=None)
examples.load_profile("suite")  # how long an example takes is the machine's business: several workers share it

KEPT_TABLES = {"django_migrations", "django_content_type", "auth_permission", "auth_group", "auth_group_permissions"}


LONGEST_FIRST = ("model", "browser", "bench", "concurrency", "integration", "unit")
"""Folders of tests that compute. A file that takes minutes has to begin early, or one worker ends long after the others."""
WAITING = "acceptance"
"""Files that mostly wait for processes that they started. All at once they would leave the processors idle, so they are spread."""
BUSY_BETWEEN = 4
"""Files that compute between two that wait: all that wait have begun long before the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files in the order in which workers take them."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.split("::")[0], []).append(item)
    places = {kind: place for place, kind in enumerate(LONGEST_FIRST)}
    waiting = [file for file in files if file.split("/")[1] == WAITING]
    busy = sorted((file for file in files if file not in waiting), key=lambda file: places.get(file.split("/")[1], len(places)))
    order: list[str] = []
    for start in range(0, len(busy), BUSY_BETWEEN):
        order += [*waiting[:1], *busy[start : start + BUSY_BETWEEN]]
        waiting = waiting[1:]
    items[:] = [item for file in (*order, *waiting) for item in files[file]]


MANY_ROWS = 1_000
"""From here on a table is made anew, which takes a while; fewer rows are quicker deleted."""


def empty_tables() -> None:
    """Remove every row but what migrations made. Names compare in lower case: some servers fold them."""
    with connection.cursor() as cursor:
        names = [name for name in connection.introspection.table_names(cursor) if name.lower() not in KEPT_TABLES]
        tables = [connection.ops.quote_name(name) for name in names]
        counts = (f"(SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT {MANY_ROWS}) AS some)" for table in tables)
        cursor.execute(f"SELECT {', '.join(counts)}")
        filled = {table: count for table, count in zip(tables, cursor.fetchone(), strict=True) if count}
        if filled:
            cursor.execute("SET FOREIGN_KEY_CHECKS = 0")
            for table, count in filled.items():
                cursor.execute(f"TRUNCATE TABLE {table}" if count == MANY_ROWS else f"DELETE FROM {table}")
            cursor.execute("SET FOREIGN_KEY_CHECKS = 1")


def forget_what_was_read() -> None:
    """The caches of this process hold rows of the test before."""
    from connectors.flows import connections
    from connectors.ingress import endpoint_facts  # here: Django's apps are loaded by now
    from connectors.registry import installed_packs
    from projection.claiming import claim

    for cache in (connections.of, endpoint_facts.find, installed_packs.of):
        cache.forget()
    claim.forget()


@pytest.fixture(scope="session", autouse=True)
def own_spool(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test writes into the spool of an installation of this checkout."""
    settings.HEADRACE_SPOOL_DIR = tmp_path_factory.mktemp("spool")


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> None:
    settings.PASSWORD_HASHERS = ["tests.support.passwords.QuickHasher"]
    hashers.reset_hashers(setting="PASSWORD_HASHERS")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An HTTP server on loopback that notes what it is sent and answers as it is told."""
    with receiving() as made:
        yield made


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_blocker: pytest.FixtureRequest,
    django_db_keepdb: bool,
    django_db_createdb: bool,
    django_db_modify_db_settings: None,
) -> Iterator[None]:
    """The suite's database. pytest-django's own makes one only for tests that carry its marks; ours ask for `database`."""
    keep = django_db_keepdb and not django_db_createdb
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False, keepdb=keep, serialized_aliases=set())
    yield
    if not django_db_keepdb:
        with django_db_blocker.unblock():
            teardown_databases(made, verbosity=0)


@pytest.fixture
def sound_database(database: None) -> Iterator[None]:
    """As `database`; what the test leaves behind breaks no invariant of the protocol."""
    yield
    report = audit_everything()
    assert report.ok, report.violations


@pytest.fixture
def database(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[None]:
    """Committed access to the database of the suite."""
    with django_db_blocker.unblock():
        try:
            yield
        finally:
            if not connection.in_atomic_block:
                connection.close()
            empty_tables()
            forget_what_was_read()
            connections.close_all()
