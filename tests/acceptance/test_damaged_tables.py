"""A server that was killed on a full disk, or a failed disk, leaves tables that cannot be read: `health` and `audit` name them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.private_server import IS_INSTALLED, PrivateServer, private_server
from tests.acceptance.service import Service, service
from tests.support.running import state_folder

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        not (IS_INSTALLED and os.environ["HEADRACE_DATABASE_URL"].startswith(("mysql", "mariadb"))),
        reason="the tables of the suite's own server are not ours to damage, and MariaDB is not installed here",
    ),
]

OVERWRITTEN = "_System_ConnectorWorkFailure"
LOST = "_System_ConnectorEvent"
PAGE_BYTES = 16384
DAMAGED_PAGES = 3
"""The first pages of a file say what it holds; from here on there are its rows."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with state_folder() as made:
        yield made


@pytest.fixture
def server(folder: Path) -> Iterator[PrivateServer]:
    with private_server(folder / "database") as made:
        yield made


@pytest.fixture
def site(server: PrivateServer) -> Iterator[Service]:
    with service(server.url) as made:
        yield made


def overwrite_rows(file: Path) -> None:
    with file.open("r+b") as opened:
        for page in range(DAMAGED_PAGES, file.stat().st_size // PAGE_BYTES):
            opened.seek(page * PAGE_BYTES + 100)
            opened.write(b"\xde\xad\xbe\xef" * 100)


def test_health_and_audit_name_the_tables_that_cannot_be_read(site: Service, server: PrivateServer, folder: Path) -> None:
    assert site.manage("health")["ready"] is True
    site.assert_audit_is_clean()
    ((name,),) = site.fetch("SELECT DATABASE()")
    files = folder / "database" / "data" / name
    server.stop()
    overwrite_rows(files / f"{OVERWRITTEN}.ibd")
    server.start()

    reasons = {one["code"]: one["reason"] for one in site.manage("health", expect=1)["reasons"]}
    assert f"Table {OVERWRITTEN} is damaged, and what needs it fails: " in reasons["table_damaged"]
    report = site.manage("audit", expect=1)
    assert [(one["invariant"], one["id"]) for one in report["violations"]] == [("tables_readable", OVERWRITTEN)]

    server.stop()
    (files / f"{LOST}.ibd").unlink()
    server.start()
    health = site.manage("health", expect=2)
    assert health["ready"] is False, "no delivery can be admitted"
    assert {one["code"] for one in health["reasons"]} == {"table_damaged"}
    assert all(any(name in one["reason"] for one in health["reasons"]) for name in (OVERWRITTEN, LOST))
    report = site.manage("audit", expect=1)
    assert {one["id"] for one in report["violations"]} == {OVERWRITTEN, LOST}
