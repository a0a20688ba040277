"""System checks that need no server: the rules, on both sides of each edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as project

from ops_ui.config import checks, server_checks
from ops_ui.config.database_url import database
from projection import flows

MEBIBYTE = 1024**2


def ids(found: list[Any]) -> list[str]:
    return [message.id for message in found]


@pytest.mark.parametrize(
    ("version", "refused"),
    [
        ("10.5.99-MariaDB", True),
        ("10.6.0-MariaDB-log", False),
        ("10.11.19-MariaDB-0+deb12u1", False),
        ("5.5.5-10.5.4-MariaDB", True),
        ("5.5.5-10.11.2-MariaDB", False),
        ("11.8.1-MariaDB", False),
        ("5.7.44-log", True),
        ("8.0.36", False),
        ("9.7.4", False),
        ("8.0.11-TiDB-v7.5.1", True),
        ("8.0.11-TiDB-v8.5.3", False),
        ("something else", True),
    ],
)
def test_a_server_older_than_supported_is_refused(version: str, refused: bool) -> None:
    found = server_checks.check_version(version)
    assert ids(found) == (["headrace.E009"] if refused else [])


def test_the_refusal_of_an_old_server_names_both_versions_and_the_way_out() -> None:
    (found,) = server_checks.check_version("10.5.4-MariaDB")
    assert found.msg == "The database server is MariaDB 10.5, but Headrace needs 10.6 or newer."
    assert "Upgrade it" in str(found.hint)


def test_a_lease_must_last_as_long_as_the_longest_flow(settings: Any) -> None:
    flows.flow("test.slow", timeout=450)(lambda generation: None)
    try:
        settings.HEADRACE_LEASE_SECONDS = 450
        assert ids(checks.check_leases()) == []
        settings.HEADRACE_LEASE_SECONDS = 449
        (found,) = checks.check_leases()
        assert found.id == "headrace.E004"
        assert "flow 'test.slow'" in found.msg
    finally:
        flows.forget("test.slow")


def test_the_times_of_the_project_pass() -> None:
    assert checks.check_cluster() == []
    assert checks.check_leases() == []


def test_a_cluster_that_would_start_a_running_loop_twice_is_refused(settings: Any) -> None:
    settings.Q_CLUSTER = project.Q_CLUSTER | {"retry": project.Q_CLUSTER["timeout"]}
    assert ids(checks.check_cluster()) == ["headrace.E005"]


@pytest.mark.parametrize(
    ("times", "refused", "told"),
    [
        ({"timeout": None, "retry": 5}, ["headrace.E005"], "timeout (none) is not below its retry (5 s)"),
        ({"timeout": None, "retry": 10**9}, ["headrace.E005"], "timeout (none)"),
        ({"timeout": 5, "retry": 5}, ["headrace.E005", "headrace.E006"], "timeout (5 s) is not below its retry (5 s)"),
        ({"timeout": 5, "retry": 6}, ["headrace.E006"], "needs 960 s"),
        ({}, ["headrace.E005"], "timeout (none) is not below its retry (60 s)"),
    ],
)
def test_a_cluster_whose_times_would_deliver_a_running_task_again_is_refused(
    times: dict[str, Any], refused: list[str], told: str, settings: Any
) -> None:
    others = {name: value for name, value in project.Q_CLUSTER.items() if name not in ("timeout", "retry")}
    settings.Q_CLUSTER = others | times
    found = checks.check_cluster()
    assert ids(found) == refused
    assert told in found[0].msg


def test_a_cluster_that_would_kill_a_healthy_loop_is_refused(settings: Any) -> None:
    settings.Q_CLUSTER = project.Q_CLUSTER | {"timeout": project.Q_CLUSTER["timeout"] - 1}
    assert ids(checks.check_cluster()) == ["headrace.E006"]


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("mysql://u@db.example/d", True),
        ("mysql://u@db.example/d?ssl=required", False),
        ("mysql://u@127.0.0.1/d", False),
        ("mysql://u@localhost/d?socket=/run/my.sock", False),
    ],
)
def test_another_host_needs_tls(url: str, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(project.DATABASES, "default", database(url))
    assert ids(checks.check_tls()) == (["headrace.E008"] if refused else [])


@pytest.mark.parametrize(("url", "warned"), [("https://hooks.example", False), ("http://hooks.example", True), ("", True)])
def test_a_deployment_without_https_is_told_what_to_set(url: str, warned: bool, settings: Any) -> None:
    settings.HEADRACE_PUBLIC_URL = url
    assert ids(checks.check_https()) == (["headrace.W011"] if warned else [])


def test_the_packet_must_hold_the_largest_body(settings: Any) -> None:
    settings.HEADRACE_MAX_BODY_BYTES = 25 * MEBIBYTE
    assert ids(server_checks.check_packet_size(51 * MEBIBYTE)) == []
    assert ids(server_checks.check_packet_size(51 * MEBIBYTE - 1)) == ["headrace.E003"]


def test_a_packet_too_small_for_one_pack_only_is_a_warning(settings: Any) -> None:
    settings.HEADRACE_MAX_BODY_BYTES = None
    assert ids(server_checks.check_packet_size(64 * MEBIBYTE)) == []
    found = server_checks.check_packet_size(16 * MEBIBYTE)
    assert ids(found) == ["headrace.W003"]
    assert "github" in found[0].msg
    assert ids(server_checks.check_packet_size(10 * MEBIBYTE)) == ["headrace.E003"]


def test_a_state_folder_under_a_file_is_refused(settings: Any, tmp_path: Path) -> None:
    settings.STATE_DIR = tmp_path / "state"
    assert checks.check_state_folder() == []
    (tmp_path / "file").write_text("", encoding="ascii")
    settings.STATE_DIR = tmp_path / "file" / "state"
    assert ids(checks.check_state_folder()) == ["headrace.E010"]
