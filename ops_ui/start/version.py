"""Which version of Headrace this is."""

from __future__ import annotations

import platform
import tomllib

import django

from ops_ui.config.environment import CHECKOUT


def version() -> str:
    """As `pyproject.toml` says it."""
    project: dict[str, str] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["version"]


def version_line() -> str:
    return f"Headrace {version()} (Django {django.get_version()}, Python {platform.python_version()})"
