"""A user's own package from outside the repository: pack, four forms of flow, models with a migration, run by the real commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.db import connection

from tests.support.receiver import Receiver, Reply, receiving

pytestmark = pytest.mark.acceptance

REPOSITORY = Path(__file__).parents[2]
SAMPLE = REPOSITORY / "tests" / "sample_app"


@dataclass
class Site:
    """An installation with the package: its environment, its database, its commands."""

    folder: Path
    database: str
    environment: dict[str, str]

    def run(self, *command: str, input: str | None = None, expect: int = 0) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, input=input, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == expect, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def manage(self, *arguments: str, input: str | None = None, expect: int = 0) -> dict[str, Any]:
        """A command's JSON answer."""
        text = self.run(sys.executable, str(REPOSITORY / "manage.py"), *arguments, "--json", input=input, expect=expect)
        answer: dict[str, Any] = json.loads(text.splitlines()[-1])
        return answer

    def deliver(self, *deliveries: tuple[str, Sequence[dict[str, Any]]]) -> dict[str, Any]:
        """Deliveries (id, events) through `receive`, then the router and the worker until nothing is due."""
        lines = [json.dumps({"headers": {"X-Acme-Id": name}, "body": {"events": events}}) for name, events in deliveries]
        received = self.manage("receive", "shop", "-", input="\n".join(lines))
        self.manage("route_receipts", "--drain")
        self.manage("run_worker", "--drain")
        return received

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(columns)} FROM `{self.database}`.`{table}` ORDER BY {', '.join(columns)}")
            return list(cursor.fetchall())

    def states(self, flow: str) -> list[tuple[str, int]]:
        """(state, attempts) of the flow's work items, by source lane."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT State, Attempts FROM `{self.database}`.`_System_ConnectorWorkItem` WHERE CompanionPack = 'acme' "
                "AND CompanionFlow = %s ORDER BY SourceLane, Id",
                [flow],
            )
            return list(cursor.fetchall())


@pytest.fixture
def stock_service() -> Iterator[Receiver]:
    with receiving() as running:
        running.reply = Reply(body=b"12 pieces")
        yield running


@pytest.fixture
def package(tmp_path: Path, stock_service: Receiver) -> Site:
    """The package in a folder of its own, and an environment that uses it; there is no such database."""
    shutil.copytree(SAMPLE, tmp_path / "site", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HEADRACE_")} | {
        "HEADRACE_DATABASE_URL": "mysql://nobody@127.0.0.1:1/none",
        "HEADRACE_SECRET_KEY": uuid.uuid4().hex * 2,
        "HEADRACE_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        "HEADRACE_STATE_DIR": str(tmp_path / "state"),
        "HEADRACE_APPS": "acme_sync",
        "DJANGO_SETTINGS_MODULE": "ops_ui.settings",
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(REPOSITORY)]),
        "ACME_SECRET": "the secret of the shop",
        "ACME_STOCK_URL": stock_service.url("/stock"),
    }
    return Site(tmp_path / "site", "", environment)


@pytest.fixture
def site(package: Site, database: None) -> Iterator[Site]:
    """The package migrated into a database of its own, and configured."""
    package.database = f"test_acme_{uuid.uuid4().hex[:12]}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{package.database}` CHARACTER SET utf8mb4")
    url, _, query = os.environ["HEADRACE_DATABASE_URL"].partition("?")
    package.environment["HEADRACE_DATABASE_URL"] = f"{url.rpartition('/')[0]}/{package.database}" + (f"?{query}" if query else "")
    try:
        package.run(sys.executable, str(REPOSITORY / "manage.py"), "migrate", "--run-syncdb", "--verbosity", "0")
        package.manage("activate_projection")
        package.manage("config", "apply", "acme.toml")
        yield package
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE `{package.database}`")


def order(number: str, kind: str = "changed", **members: Any) -> dict[str, Any]:
    return {"id": number, "type": f"order.{kind}", "total": "10.10", **members}


def test_a_package_from_outside_runs_in_every_form_of_flow(site: Site, stock_service: Receiver) -> None:
    received = site.deliver(("d1", [order("1", "created"), order("2", "created"), order("1", total="12.50")]))
    assert received["received"] == 1

    # atomic: one execution with all inputs of the record
    assert site.rows("acme_sync_order", "number", "total", "folded") == [("1", "12.50", 2), ("2", "10.10", 1)]
    assert site.states("order") == [("processed", 1)] * 2
    # plain
    texts = [row[0] for row in site.rows("acme_sync_notice", "text")]
    assert texts == ["1: order.created order.changed", "2: order.created"]
    # network first, then the atomic tail
    assert site.rows("acme_sync_stock", "number", "answer", "commits") == [("1", "12 pieces", 1), ("2", "12 pieces", 1)]
    assert stock_service.requests.qsize() == 2
    # atomic batch: one call for the claimed batch
    assert site.rows("acme_sync_batch", "orders", "inputs") == [("1 2", 3)]

    # the same again changes nothing; news makes one more generation
    assert site.deliver(("d1", [order("1", "created"), order("2", "created"), order("1", total="12.50")]))["duplicates"] == 1
    site.deliver(("d2", [order("2", total="99.00")]))
    assert site.rows("acme_sync_order", "number", "total", "folded") == [("1", "12.50", 2), ("2", "99.00", 2)]
    assert site.rows("acme_sync_stock", "number", "commits") == [("1", 1), ("2", 2)]
    assert site.manage("audit")["violations"] == []
    known = {flow["name"] for flow in site.manage("flows", "list")["flows"]}
    assert {"acme.order", "acme.notice", "acme.stock", "acme.totals", "record_table"} <= known


def test_what_a_failed_atomic_flow_wrote_is_gone_and_its_siblings_stay(site: Site) -> None:
    site.deliver(("d1", [order("1"), order("2", poison=True), order("3")]))
    assert site.rows("acme_sync_order", "number") == [("1",), ("3",)]
    assert site.states("order") == [("processed", 1), ("retry", 1), ("processed", 1)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT Error FROM `{site.database}`.`_System_ConnectorWorkFailure`")
        assert ["this order cannot be booked" in row[0] for row in cursor.fetchall()] == [True]


def test_a_skipped_commit_flow_writes_nothing(site: Site, stock_service: Receiver) -> None:
    stock_service.reply = Reply(404)
    site.deliver(("d1", [order("1")]))
    assert site.states("stock") == [("skipped", 1)]
    assert site.rows("acme_sync_stock", "number") == []


def test_the_users_own_flow_tests_need_no_database(package: Site) -> None:
    output = package.run(
        sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(package.folder), "-p", "projection.testing",
        str(package.folder / "acme_sync" / "flow_tests.py"),
    )  # fmt: skip
    assert "1 passed" in output


@pytest.mark.parametrize(
    ("apps", "sentence"),
    [
        ("acme_sink", "HEADRACE_APPS is malformed: it names 'acme_sink', which cannot be imported"),
        ("acme_sync,acme_copy", "'acme' is defined by acme_sync.packs and again by acme_copy.packs"),
    ],
)
def test_a_package_that_cannot_be_used_stops_the_start_in_one_sentence(package: Site, apps: str, sentence: str) -> None:
    (package.folder / "acme_copy").mkdir()
    (package.folder / "acme_copy" / "__init__.py").touch()
    shutil.copy(package.folder / "acme_sync" / "packs.py", package.folder / "acme_copy" / "packs.py")
    package.environment["HEADRACE_APPS"] = apps
    command = [sys.executable, str(REPOSITORY / "manage.py"), "route_receipts", "--drain"]
    done = subprocess.run(command, cwd=package.folder, env=package.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert sentence in done.stderr
