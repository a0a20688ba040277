"""What docs/deployment tells a user to install fits the code: commands, settings, and times that enclose each other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class
from gunicorn.config import Config

from connectors import pack
from connectors.ingress.body_deadline import BODY_SECONDS
from ops_ui import gunicorn_conf
from ops_ui.config.environment import CHECKOUT, DEFAULT_BIND, PREFIX, SETTINGS
from ops_ui.start import prepare, supervisor
from projection.execution import stuck_threads
from tests.support import deployment_files
from tests.support.deployment_files import COMMON, FOLDER, INSTALLED, PYTHON, UNITS, value

SERVICES = sorted(UNITS.glob("*.service"))
WEB, CLUSTER, PREPARE, SOCKET = (
    UNITS / f"headrace-{name}" for name in ("web.service", "cluster.service", "prepare.service", "web.socket")
)
HAND_OVER_SECONDS = 10
"""Of a cluster that stops: leaving its slots, and its processes ending one after the other."""
MEBIBYTE = 1024**2


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)
def test_every_command_of_a_unit_exists_and_takes_its_arguments(unit: Path) -> None:
    for command in deployment_files.python_arguments(unit):
        match command:
            case ["manage.py", name, *arguments]:
                load_command_class(get_commands()[name], name).create_parser("manage.py", name).parse_args(arguments)
            case ["-m", "ops_ui.start.prepare", mode]:
                assert mode == prepare.DEPLOYED
            case ["-m", "gunicorn", "--config", config, application]:
                assert config == f"python:{gunicorn_conf.__name__}"
                assert application.replace(":", ".") == settings.WSGI_APPLICATION
            case _:
                pytest.fail(f"{unit.name} runs something else: {command}")


def test_every_setting_of_the_environment_file_exists() -> None:
    names = [name.removeprefix(PREFIX) for name in deployment_files.environment() if name.startswith(PREFIX)]
    assert names
    assert [name for name in names if name.removesuffix("_FILE") not in SETTINGS] == []


def test_no_secret_stands_in_the_environment() -> None:
    for name in ("DATABASE_URL", "SECRET_KEY", "ENCRYPTION_KEYS"):
        assert f"{PREFIX}{name}_FILE" in deployment_files.environment()
        assert PREFIX + name not in deployment_files.environment()


def test_the_units_keep_what_the_settings_name() -> None:
    assert deployment_files.environment()["HEADRACE_STATE_DIR"] == f"/var/lib/{value(COMMON, 'StateDirectory')}"
    assert value(COMMON, "WorkingDirectory") == INSTALLED


def test_web_and_cluster_share_a_folder_of_counters_that_they_may_write_to() -> None:
    lines = (FOLDER / "tmpfiles.conf").read_text(encoding="utf-8").splitlines()
    made = [line.split()[1:5] for line in lines if line.startswith("d ")]
    user = [value(COMMON, "User"), value(COMMON, "Group")]
    metrics = f"{value(COMMON, 'ReadWritePaths')}/metrics"
    assert [metrics, "0700", *user] in made
    assert [deployment_files.environment()["HEADRACE_STATE_DIR"], value(COMMON, "StateDirectoryMode"), *user] in made
    assert value(WEB, "Environment") == value(CLUSTER, "Environment") == f"PROMETHEUS_MULTIPROC_DIR={metrics}"


@pytest.mark.parametrize("unit", [WEB, CLUSTER], ids=lambda unit: unit.stem)
def test_a_stop_reaches_the_head_alone_and_a_death_is_followed_by_a_start(unit: Path) -> None:
    assert value(unit, "KillMode") == "mixed"
    assert value(unit, "Restart") == "always"
    assert value(unit, "StartLimitIntervalSec") == "0"
    assert PREPARE.name in value(unit, "Wants").split()
    assert PREPARE.name in value(unit, "After").split()


def test_the_web_server_gets_the_time_to_finish_its_requests() -> None:
    grace = seconds(value(WEB, "TimeoutStopSec"))
    assert grace > gunicorn_conf.graceful_timeout
    assert gunicorn_conf.graceful_timeout < supervisor.WEB_GRACE_SECONDS


def test_the_cluster_gets_the_time_to_finish_its_longest_flow() -> None:
    longest = settings.LONGEST_FLOW_TIMEOUT_SECONDS + max(stuck_threads.GRACE_SECONDS, stuck_threads.ATOMIC_GRACE_SECONDS)
    assert seconds(value(CLUSTER, "TimeoutStopSec")) >= longest + HAND_OVER_SECONDS


def test_the_socket_is_the_default_one_with_the_same_queue() -> None:
    assert value(SOCKET, "ListenStream") == str(DEFAULT_BIND)
    assert int(value(SOCKET, "Backlog")) == supervisor.BACKLOG


def test_each_worker_may_open_as_many_files_as_it_takes_connections() -> None:
    assert int(value(WEB, "LimitNOFILE")) >= 2 * gunicorn_conf.worker_connections


def test_gunicorn_knows_every_value_of_its_configuration() -> None:
    given = {name for name in vars(gunicorn_conf) if name.islower() and not name.startswith("_")}
    imported = {"counter_files", "environment"}
    assert sorted(given - imported - set(Config().settings)) == []


def test_nginx_passes_to_the_socket_of_the_unit() -> None:
    assert deployment_files.nginx("server")[0].split()[0] == value(SOCKET, "ListenStream")
    assert set(deployment_files.nginx("proxy_pass")) == {"http://headrace"}


def test_nginx_buffers_a_body_before_it_takes_a_thread() -> None:
    assert deployment_files.nginx("proxy_request_buffering") == ["on"]
    assert seconds(deployment_files.nginx("client_body_timeout")[0]) <= BODY_SECONDS
    largest = max(cls.max_body_bytes for cls in pack.registered().values())
    (size,) = deployment_files.nginx("client_max_body_size")
    assert int(size.removesuffix("m")) * MEBIBYTE > largest


def test_nginx_tells_who_came_and_how() -> None:
    headers = dict(header.split(maxsplit=1) for header in deployment_files.nginx("proxy_set_header"))
    assert headers["X-Forwarded-For"] == "$proxy_add_x_forwarded_for"
    assert headers["X-Forwarded-Proto"] == "$scheme"
    assert headers["Host"] == "$host"


def test_nginx_waits_for_a_restart_and_closes_idle_connections_first() -> None:
    assert seconds(deployment_files.nginx("proxy_read_timeout")[0]) > seconds(value(WEB, "TimeoutStopSec"))
    assert seconds(deployment_files.nginx("keepalive_timeout")[0]) < gunicorn_conf.keepalive
    assert "max_fails=0" in deployment_files.nginx("server")[0]
    assert deployment_files.nginx("proxy_next_upstream") == ["off"]


def test_systemd_itself_finds_nothing_to_say(tmp_path: Path) -> None:
    """Where it is installed; elsewhere the units are at least read line by line (`deployment_files.directives`)."""
    units = [path for path in UNITS.rglob("*") if path.is_file()]
    assert all(deployment_files.directives(path) for path in units)
    program = shutil.which("systemd-analyze")
    if program is None:
        return
    for path in units:
        copy = tmp_path / path.relative_to(UNITS)
        copy.parent.mkdir(exist_ok=True)
        # It looks whether the programs are there.
        text = path.read_text(encoding="utf-8").replace(PYTHON, sys.executable).replace(INSTALLED, str(CHECKOUT))
        copy.write_text(text, encoding="utf-8")
    names = sorted(str(path) for path in tmp_path.iterdir() if path.is_file())
    done = subprocess.run([program, "verify", *names], capture_output=True, text=True, timeout=60, check=False)
    ours = [line for line in done.stderr.splitlines() if "headrace" in line]
    assert (done.returncode, ours) == (0, [])


def test_the_command_of_operators_reads_the_same_environment_file() -> None:
    text = (FOLDER / "headrace").read_text(encoding="utf-8")
    assert value(COMMON, "EnvironmentFile") in text
    assert f'cd "${{ROOT:-{INSTALLED}}}"\n' in text
    assert FOLDER.joinpath("headrace").stat().st_mode & 0o111
