"""Settings: what is read, and that each bad value is one sentence naming the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops_ui.config import environment
from ops_ui.config.environment import BadSetting, Bind, read

FERNET_KEY = "kB0bSgZP1wTFqfS4R7mBrXgPvB9XUvFZb8bJQ7V4vKk="


def test_an_empty_environment_gives_the_defaults() -> None:
    values = read({"PATH": "/bin"})
    assert values["BIND"] == Bind("127.0.0.1", 8000)
    assert values["LEASE_SECONDS"] == 60
    assert values["DATABASE_URL"] is None
    assert values["ENCRYPTION_KEYS"] == []


def test_an_empty_value_counts_as_unset() -> None:
    assert read({"HEADRACE_LEASE_SECONDS": "", "HEADRACE_SECRET_KEY_FILE": ""})["LEASE_SECONDS"] == 60


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("LEASE_SECONDS", "90", 90),
        ("CONFIG_LOCKED", "true", True),
        ("CONFIG_LOCKED", "0", False),
        ("CONSOLE_READ_ONLY", "1", True),
        ("ALLOWED_HOSTS", "a.example, b.example", ["a.example", "b.example"]),
        ("FORWARD_ALLOWED_NETWORKS", "10.0.0.0/8 ::1/128", ["10.0.0.0/8", "::1/128"]),
        ("PUBLIC_URL", "https://hooks.example.com/in/", "https://hooks.example.com/in"),
        ("BIND", "8001", Bind("127.0.0.1", 8001)),
        ("BIND", "0.0.0.0:80", Bind("0.0.0.0", 80)),
        ("BIND", "[::1]:0", Bind("::1", 0)),
        ("STATE_DIR", "state", environment.CHECKOUT / "state"),
        ("STATE_DIR", "/var/lib/headrace", Path("/var/lib/headrace")),
        ("ENCRYPTION_KEYS", f"{FERNET_KEY} {FERNET_KEY}", [FERNET_KEY, FERNET_KEY]),
    ],
)
def test_a_value_is_read(name: str, raw: str, value: object) -> None:
    assert read({f"HEADRACE_{name}": raw})[name] == value


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("LEASE_SECONDS", "1"),
        ("LEASE_SECONDS", "sixty"),
        ("LEASE_SECONDS", "-60"),
        ("LEASE_SECONDS", "6" * 5000),
        ("LEASE_SECONDS", "٦٠"),
        ("MAX_BODY_BYTES", "5MiB"),
        ("CONFIG_LOCKED", "maybe"),
        ("CONSOLE_READ_ONLY", "2"),
        ("ALLOWED_HOSTS", "https://a.example"),
        ("FORWARD_ALLOWED_NETWORKS", "10.0.0.1/8"),
        ("PUBLIC_URL", "hooks.example.com"),
        ("PUBLIC_URL", "https://user@hooks.example.com"),
        ("PUBLIC_URL", "https://hooks.example.com?x=1"),
        ("PUBLIC_URL", "https://[oops"),
        ("BIND", "localhost"),
        ("BIND", ":8000"),
        ("BIND", "127.0.0.1:65536"),
        ("BIND", "::1:8000"),
        ("APPS", "no_such_package_anywhere"),
        ("SECRET_KEY", "short"),
        ("ENCRYPTION_KEYS", "not-a-fernet-key"),
        ("ENCRYPTION_KEYS", f"{FERNET_KEY} {FERNET_KEY[:-2]}"),
    ],
)
def test_a_malformed_value_is_refused_by_name(name: str, raw: str) -> None:
    with pytest.raises(BadSetting) as refused:
        read({f"HEADRACE_{name}": raw})
    sentence = str(refused.value)
    assert sentence.startswith(f"HEADRACE_{name} is malformed: it ")
    assert sentence.endswith(".")
    assert "\n" not in sentence


@pytest.mark.parametrize("name", ["SECRET_KEY", "ENCRYPTION_KEYS"])
def test_a_refused_secret_is_not_shown(name: str) -> None:
    with pytest.raises(BadSetting) as refused:
        read({f"HEADRACE_{name}": "hunter2-hunter2"})
    assert "hunter2" not in str(refused.value)


def test_an_unknown_setting_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(
        BadSetting,
        match=r"HEADRACE_LEASE_SECOND is not a Headrace setting; did you mean HEADRACE_LEASE_SECONDS\? known: .*HEADRACE_LEASE_SECONDS",
    ):
        read({"HEADRACE_LEASE_SECOND": "60"})


def test_a_value_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "lease").write_text("75\n", encoding="utf-8")
    assert read({"HEADRACE_LEASE_SECONDS_FILE": str(tmp_path / "lease")})["LEASE_SECONDS"] == 75


def test_a_value_and_its_file_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="HEADRACE_LEASE_SECONDS and HEADRACE_LEASE_SECONDS_FILE are both set"):
        read({"HEADRACE_LEASE_SECONDS": "60", "HEADRACE_LEASE_SECONDS_FILE": str(tmp_path)})


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_an_unusable_file_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "lease"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadSetting, match="HEADRACE_LEASE_SECONDS_FILE names "):
        read({"HEADRACE_LEASE_SECONDS_FILE": str(path)})


def test_sockets_of_a_long_state_folder_get_a_short_one() -> None:
    long, other = Path("/srv") / ("x" * 90), Path("/srv") / ("y" * 90)
    assert environment.socket_folder(Path("/srv/headrace")) == Path("/srv/headrace")
    assert len(str(environment.socket_folder(long))) < environment.LONGEST_STATE_DIR
    assert environment.socket_folder(long) != environment.socket_folder(other)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HEADRACE_PORT", "tcp://10.43.9.7:80"),
        ("HEADRACE_SERVICE_HOST", "10.43.9.7"),
        ("HEADRACE_SERVICE_PORT", "80"),
        ("HEADRACE_SERVICE_PORT_HTTP", "80"),
        ("HEADRACE_PORT_80_TCP", "tcp://10.43.9.7:80"),
        ("HEADRACE_PORT_80_TCP_PROTO", "tcp"),
        ("HEADRACE_PORT_80_TCP_PORT", "80"),
        ("HEADRACE_PORT_80_TCP_ADDR", "10.43.9.7"),
        ("HEADRACE_WEB_SERVICE_HOST", "10.43.9.7"),
        ("HEADRACE_WEB_PORT", "udp://10.43.9.7:80"),
    ],
)
def test_what_kubernetes_sets_for_a_service_of_this_name_is_no_setting(name: str, value: str) -> None:
    assert environment.read({name: value}) == environment.read({})


@pytest.mark.parametrize("name", ["HEADRACE_PORT", "HEADRACE_WEB_PORT", "HEADRACE_A_B_PORT", "HEADRACE_HOST", "HEADRACE_SERVICE"])
def test_a_mistake_that_only_looks_like_it_is_still_one(name: str) -> None:
    with pytest.raises(BadSetting, match="is not a Headrace setting"):
        environment.read({name: "8000"})


@pytest.mark.parametrize(
    ("text", "value"), [("True", True), ("YES", True), ("on", True), ("1", True), ("Off", False), ("no", False)]
)
def test_a_boolean_is_read_in_the_usual_spellings(text: str, value: bool) -> None:
    assert environment.read({"HEADRACE_CONFIG_LOCKED": text})["CONFIG_LOCKED"] is value


def test_a_value_file_from_a_windows_editor_is_read(tmp_path: Path) -> None:
    (tmp_path / "days").write_bytes(b"\xef\xbb\xbf7\r\n")
    assert environment.read({"HEADRACE_RETENTION_DAYS_FILE": str(tmp_path / "days")})["RETENTION_DAYS"] == 7


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(BadSetting) as refused:
        read({"HEADRACE_BIND": "here", "HEADRACE_LEASE_SECONDS": "a minute", "HEADRACE_COLOUR": "blue"})
    assert [line.partition(" ")[0] for line in str(refused.value).splitlines()] == [
        "HEADRACE_COLOUR",
        "HEADRACE_LEASE_SECONDS",
        "HEADRACE_BIND",
    ]
