"""HEADRACE_DATABASE_URL: which server, which engine, under TLS or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops_ui.config.database_url import database, demands_tls, is_local
from ops_ui.config.environment import BadSetting


@pytest.mark.parametrize(
    ("url", "engine", "port"),
    [
        ("mysql://u:p@db.example/headrace", "projection.database.backends.mysql", "3306"),
        ("mariadb://u@127.0.0.1:3399/headrace", "projection.database.backends.mysql", "3399"),
        ("tidb://u@db.example/headrace", "projection.database.backends.tidb", "4000"),
    ],
)
def test_the_scheme_chooses_engine_and_port(url: str, engine: str, port: str) -> None:
    settings = database(url)
    assert (settings["ENGINE"], settings["PORT"], settings["NAME"]) == (engine, port, "headrace")
    assert settings["OPTIONS"]["isolation_level"] == "read committed"


def test_user_password_and_name_are_percent_decoded() -> None:
    settings = database("mysql://a%40b:p%23%2F%3F@h/head%20race")
    assert (settings["USER"], settings["PASSWORD"], settings["NAME"]) == ("a@b", "p#/?", "head race")


def test_a_socket_replaces_host_and_port() -> None:
    settings = database("mysql://root@localhost/headrace?socket=/run/my.sock")
    assert (settings["HOST"], settings["PORT"]) == ("/run/my.sock", "")


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("sqlite:///db.sqlite3", "starts with 'sqlite': Headrace runs on MariaDB, MySQL and TiDB only"),
        ("postgres://u:hunter2@h/d", "starts with 'postgres'"),
        ("headrace", "starts with 'no scheme'"),
        ("mysql://u:hunter2@h", "has no database"),
        ("mysql://u:hunter2@h/a/b", "an invalid database name"),
        ("mysql://h/headrace", "has no user"),
        ("mysql://u:hunter2@h:port/d", "an invalid host or port"),
        ("mysql://u:hunter2#x@h/d", "an invalid host or port|contains a '#'|has no"),
        ("mysql://u:hunter2@h/d?timeout=3", "an unknown option 'timeout'"),
        ("mysql://u:hunter2@h/d?socket=my.sock", "not an absolute path"),
        ("mysql://u:hunter2@h/d?socket=/a&socket=/b", "exactly one value"),
        ("mysql://u:hunter2@h/d?ssl=maybe", "invalid TLS options"),
        ("mysql://u:hunter2@h/d?ssl=verify-full", "invalid TLS options"),
        ("mysql://u:hunter2@h/d?ca=/etc/ca.pem", "invalid TLS options"),
        ("mysql://u:hunter2@h/d?ssl=verify-full&ca=/no/such.pem", "names ca=/no/such.pem, which is not a file"),
    ],
)
def test_any_other_url_is_one_sentence_without_the_password(url: str, part: str) -> None:
    with pytest.raises(BadSetting, match=part) as refused:
        database(url)
    sentence = str(refused.value)
    assert sentence.startswith("HEADRACE_DATABASE_URL ")
    assert "hunter2" not in sentence
    assert "\n" not in sentence


def test_tls_is_demanded_by_the_url(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("", encoding="ascii")
    required = database("mysql://u@h/d?ssl=required")
    verified = database(f"mysql://u@h/d?ssl=verify-full&ca={authority}")
    assert demands_tls(required)
    assert verified["OPTIONS"]["ssl_mode"] == "VERIFY_IDENTITY"
    assert verified["OPTIONS"]["ssl"] == {"ca": str(authority)}
    assert not demands_tls(database("mysql://u@h/d"))


@pytest.mark.parametrize(
    ("host", "local"),
    [("localhost", True), ("127.3.4.5", True), ("[::1]", True), ("10.0.0.1", False), ("db.example", False)],
)
def test_loopback_is_this_host(host: str, local: bool) -> None:
    assert is_local(database(f"mysql://u@{host}/d")) is local
