"""What the start makes of the environment: kept secrets, the private database's URL, and nothing that was set by the user."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ops_ui.config import environment
from ops_ui.config.database_url import database
from ops_ui.start import CannotStart
from ops_ui.start.installation import open_installation

FERNET_KEY = "kB0bSgZP1wTFqfS4R7mBrXgPvB9XUvFZb8bJQ7V4vKk="


def settings(state_dir: Path, **more: str) -> dict[str, str]:
    return {"HEADRACE_STATE_DIR": str(state_dir), **more}


def test_what_is_made_is_made_once_and_readable_by_the_owner_alone(tmp_path: Path) -> None:
    first, second = open_installation(settings(tmp_path)), open_installation(settings(tmp_path))
    assert first.environ == second.environ
    values = environment.read(first.environ)
    assert values == environment.read(second.environ)
    assert len(values["ENCRYPTION_KEYS"]) == 1
    assert len(values["SECRET_KEY"]) >= 48
    for path in (tmp_path / "secrets").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_first_starts_at_once_agree_on_the_keys(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: open_installation(settings(tmp_path)).environ, range(8)))
    assert len({environment.read(environ)["ENCRYPTION_KEYS"][0] for environ in made}) == 1
    assert sorted(path.name for path in (tmp_path / "secrets").iterdir()) == ["encryption_keys", "secret_key"]


def test_no_secret_stands_in_the_environment_of_the_processes(tmp_path: Path) -> None:
    made = open_installation(settings(tmp_path)).environ
    key = (tmp_path / "secrets" / "encryption_keys").read_text(encoding="ascii").strip()
    assert not any(key in value for value in made.values())


def test_settings_of_the_user_are_kept_and_empty_ones_dropped(tmp_path: Path) -> None:
    made = open_installation(
        settings(
            tmp_path,
            HEADRACE_DATABASE_URL="mysql://u@127.0.0.1/d",
            HEADRACE_ENCRYPTION_KEYS=FERNET_KEY,
            HEADRACE_SECRET_KEY="",
            PATH="/bin",
        )
    )
    assert made.private is None
    assert made.environ["HEADRACE_DATABASE_URL"] == "mysql://u@127.0.0.1/d"
    assert made.environ["PATH"] == "/bin"
    assert environment.read(made.environ)["ENCRYPTION_KEYS"] == [FERNET_KEY]
    assert not (tmp_path / "secrets" / "encryption_keys").exists()
    assert "HEADRACE_SECRET_KEY" not in made.environ


def test_the_private_database_is_entered_by_its_socket_without_a_password(tmp_path: Path) -> None:
    made = open_installation(settings(tmp_path))
    assert made.private is not None
    entry = database(made.environ["HEADRACE_DATABASE_URL"])
    assert (entry["HOST"], entry["PASSWORD"], entry["NAME"]) == (str(made.private.socket), "", "headrace")
    assert "--skip-networking" in made.private.command("mariadbd")
    assert "--innodb-flush-log-at-trx-commit=1" in made.private.command("mariadbd")


def test_a_long_state_folder_has_its_socket_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)
    made = open_installation(settings(folder))
    assert made.private is not None
    assert len(str(made.private.socket)) < 100
    assert made.private.folder == folder / "database"


@pytest.mark.parametrize(
    ("bind", "networks"),
    [("127.0.0.1:8000", ["127.0.0.1/32"]), ("[::1]:8000", ["::1/128"]), ("localhost:1", ["127.0.0.1/32"]), ("0.0.0.0:8000", [])],
)
def test_only_a_quick_start_on_loopback_may_forward_to_itself(tmp_path: Path, bind: str, networks: list[str]) -> None:
    quick = open_installation(settings(tmp_path, HEADRACE_BIND=bind))
    assert environment.read(quick.environ)["FORWARD_ALLOWED_NETWORKS"] == networks
    served = open_installation(settings(tmp_path, HEADRACE_BIND=bind, HEADRACE_DATABASE_URL="mysql://u@127.0.0.1/d"))
    assert environment.read(served.environ)["FORWARD_ALLOWED_NETWORKS"] == []
    tested = open_installation(settings(tmp_path, HEADRACE_BIND=bind), durable=False)
    assert environment.read(tested.environ)["FORWARD_ALLOWED_NETWORKS"] == []


@pytest.mark.parametrize(("given", "demo"), [({}, True), ({"HEADRACE_DEMO": "false"}, False), ({"HEADRACE_DEMO": "true"}, True)])
def test_only_a_quick_start_has_a_demo_by_itself(tmp_path: Path, given: dict[str, str], demo: bool) -> None:
    quick = environment.read(open_installation(settings(tmp_path, **given)).environ)
    assert (quick["DEMO"], quick["FORWARD_ALLOWED_NETWORKS"]) == (demo, ["127.0.0.1/32"] if demo else [])
    own = open_installation(settings(tmp_path, HEADRACE_DATABASE_URL="mysql://u@127.0.0.1/d", **given))
    assert environment.read(own.environ)["DEMO"] == (given.get("HEADRACE_DEMO") == "true")
    assert environment.read(open_installation(settings(tmp_path), durable=False).environ)["DEMO"] is False


def test_a_lost_encryption_key_is_not_replaced_by_a_new_one(tmp_path: Path) -> None:
    open_installation(settings(tmp_path))
    (tmp_path / "database" / "data").mkdir(parents=True)
    (tmp_path / "secrets" / "encryption_keys").unlink()
    with pytest.raises(CannotStart, match="put the file back from a backup"):
        open_installation(settings(tmp_path))
    assert not (tmp_path / "secrets" / "encryption_keys").exists()
