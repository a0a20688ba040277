"""`manage.py check --deploy` finds nothing in a production environment, and says what to set in one that is none."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from ops_ui.config.environment import CHECKOUT, PREFIX

PATIENCE_SECONDS = 120.0


def check(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """The documented command, with its secrets in files, on the server of the suite."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environ |= {"DJANGO_SETTINGS_MODULE": "ops_ui.settings", "HEADRACE_STATE_DIR": str(folder / "state")}
    for name, value in {
        "DATABASE_URL": os.environ["HEADRACE_DATABASE_URL"],
        "SECRET_KEY": secrets.token_urlsafe(48),
        "ENCRYPTION_KEYS": Fernet.generate_key().decode(),
    }.items():
        path = folder / name.lower()
        path.write_text(value + "\n", encoding="ascii")
        environ[f"{PREFIX}{name}_FILE"] = str(path)
    command = [sys.executable, "manage.py", "check", "--deploy", "--database", "default", "--fail-level", "WARNING"]
    return subprocess.run(
        command,
        cwd=CHECKOUT,
        env=environ | {f"{PREFIX}{name}": value for name, value in settings.items()},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.mark.usefixtures("database")
def test_a_production_environment_is_clean(tmp_path: Path) -> None:
    done = check(
        tmp_path,
        PUBLIC_URL="https://hooks.example.com",
        ALLOWED_HOSTS="console.example.com",
        MAX_BODY_BYTES="1048576",  # the server of the suite may have its default packet
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues" in done.stdout


@pytest.mark.usefixtures("database")
def test_without_a_public_https_name_it_says_which_setting_is_missing(tmp_path: Path) -> None:
    done = check(tmp_path, MAX_BODY_BYTES="1048576")
    assert done.returncode == 1
    assert "headrace.W011" in done.stderr
    assert "HEADRACE_PUBLIC_URL" in done.stderr
