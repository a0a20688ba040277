"""System checks that ask the server, and the first contact with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import MySQLdb
import pytest
from cryptography.fernet import Fernet
from django.conf import settings as project
from django.core import checks as django_checks
from django.db import OperationalError, connection
from django.db.backends.mysql.base import DatabaseWrapper

from connectors.models import Connection, Endpoint
from connectors.secrets import encrypt
from ops_ui.config import server_checks, tls
from ops_ui.config.tls import is_encrypted
from ops_ui.start import CannotStart
from ops_ui.start.database_server import connect, ensure_database, has_tables
from projection.database import clock

pytestmark = pytest.mark.usefixtures("database")
DEFAULT = ["default"]


def ids(found: list[Any]) -> list[str]:
    return [message.id for message in found]


def entry(**changes: Any) -> dict[str, Any]:
    return {**project.DATABASES["default"], **changes}


def test_the_suite_s_server_passes_and_the_checks_are_registered() -> None:
    found = django_checks.run_checks(tags=[django_checks.Tags.database], databases=DEFAULT)
    assert [message for message in found if message.level >= django_checks.ERROR] == []
    names = {check.__name__ for check in django_checks.registry.registry.get_checks(include_deployment_checks=False)}
    assert {"check_leases", "check_cluster", "check_tls", "check_state_folder"} <= names


def test_another_isolation_level_is_refused() -> None:
    assert server_checks.check_isolation(DEFAULT) == []
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    found = server_checks.check_isolation(DEFAULT)
    assert ids(found) == ["headrace.E002"]
    assert "REPEATABLE READ" in found[0].msg


def test_a_secret_that_no_key_opens_is_refused(settings: Any) -> None:
    Endpoint.objects.create(pack_id=1, namespace="acme", slug="crm", secrets=encrypt([{"secret": "s"}]), created_at=clock.now())
    Connection.objects.create(namespace="acme", name="target", url="https://t.example", secrets="", created_at=clock.now())
    assert server_checks.check_secrets(DEFAULT) == []
    old = settings.HEADRACE_ENCRYPTION_KEYS
    settings.HEADRACE_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    assert ids(server_checks.check_secrets(DEFAULT)) == ["headrace.E007"]
    settings.HEADRACE_ENCRYPTION_KEYS = [*settings.HEADRACE_ENCRYPTION_KEYS, *old]
    assert server_checks.check_secrets(DEFAULT) == []


def test_a_refused_user_is_one_sentence_without_the_password() -> None:
    with pytest.raises(CannotStart) as refused:
        ensure_database(entry(USER="nobody_here", PASSWORD="hunter2"))
    sentence = str(refused.value)
    assert "refuses user 'nobody_here'" in sentence
    assert "correct the user or password in HEADRACE_DATABASE_URL" in sentence
    assert "hunter2" not in sentence


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(CannotStart, match=r"The database server at /nowhere/my\.sock does not answer \(.*\); start it, or correct"):
        ensure_database(entry(HOST="/nowhere/my.sock", PORT=""))


@pytest.fixture
def fresh_name() -> Iterator[str]:
    name = f"{connection.settings_dict['NAME']}`new"
    yield name
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {connection.ops.quote_name(name.replace('`', '``'))}")


def test_a_missing_database_is_made_once(fresh_name: str) -> None:
    assert ensure_database(entry(NAME=fresh_name)) is True
    assert ensure_database(entry(NAME=fresh_name)) is False
    assert has_tables(entry(NAME=fresh_name)) is False
    assert has_tables(entry(NAME=connection.settings_dict["NAME"])) is True


def test_ssl_required_never_ends_in_the_clear() -> None:
    """A server without TLS is refused, whatever the client library makes of REQUIRED; one that has it is used encrypted."""
    demanding = entry(
        OPTIONS={**project.DATABASES["default"]["OPTIONS"], "ssl_mode": "REQUIRED"}, NAME=connection.settings_dict["NAME"]
    )
    with connect(entry()) as plain:
        offered = _offers_tls(plain)
    if offered:
        with connect(demanding) as encrypted:
            assert is_encrypted(encrypted)
        return
    with pytest.raises(MySQLdb.OperationalError):
        connect(demanding)
    wrapper = DatabaseWrapper({**connection.settings_dict, **demanding}, "tls")
    with pytest.raises(OperationalError, match="TLS"):
        wrapper.ensure_connection()
    assert wrapper.connection is None


def test_connections_without_the_demand_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "is_encrypted", lambda _: pytest.fail("asked the server"))
    connection.close()
    connection.ensure_connection()


def _offers_tls(plain: Any) -> bool:
    with plain.cursor() as cursor:
        cursor.execute("SHOW VARIABLES LIKE 'have_ssl'")
        row = cursor.fetchone()
        if row is not None:
            return str(row[1]) == "YES"
        cursor.execute("SHOW STATUS LIKE 'Ssl_server_not_after'")
        row = cursor.fetchone()
    return bool(row and row[1])


def test_a_database_in_another_character_set_is_refused_with_the_statement_that_changes_it() -> None:
    assert server_checks.check_charset(DEFAULT) == []
    (found,) = server_checks.charset_problems("hooks", "latin1", [])
    assert found.id == "headrace.E012"
    assert "The character set of database 'hooks' is latin1" in found.msg
    assert found.hint == "Nothing was changed. Run: ALTER DATABASE `hooks` CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;"
    (found,) = server_checks.charset_problems("hooks", "utf8mb4", ["auth_user"])
    assert "CONVERT TO CHARACTER SET utf8mb4" in str(found.hint)


def test_a_binary_log_of_statements_is_refused() -> None:
    assert server_checks.check_binary_log(DEFAULT) == []
    (found,) = server_checks.check_binlog_format({"log_bin": "ON", "binlog_format": "STATEMENT"})
    assert found.id == "headrace.E013"
    for harmless in ({"log_bin": "OFF", "binlog_format": "STATEMENT"}, {"log_bin": "ON", "binlog_format": "ROW"}, {}):
        assert server_checks.check_binlog_format(harmless) == []
