"""HEADRACE_APPS: whose packs and flows are loaded at start, and what stops the start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[4]
PACK = """
from connectors.pack import Pack, register

@register
class Mine(Pack):
    name = "{name}"
    def split(self, body): return []
    def read(self, item): raise KeyError
"""
FLOW = """
from projection.flows import flow

@flow("{name}")
def run(generation): ...
"""
SHOW = """
import django
django.setup()
from connectors import pack
from projection import flows
print(*pack.registered(), *flows.registered())
"""

Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start a process with the given apps, from `<app>.<module>` → source, and print the names it has registered."""

    def run(apps: str, **modules: str) -> subprocess.CompletedProcess[str]:
        for dotted, source in modules.items():
            package, _, module = dotted.partition("__")
            (tmp_path / package).mkdir(exist_ok=True)
            (tmp_path / package / "__init__.py").touch()
            (tmp_path / package / f"{module}.py").write_text(source, encoding="utf-8")
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "ops_ui.settings",
            "HEADRACE_APPS": apps,
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(tmp_path)]),
        }
        return subprocess.run(
            [sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
        )

    return run


def test_packs_and_flows_of_several_apps_are_loaded_beside_the_built_in_ones(start: Start) -> None:
    done = start(
        "app_one,app_two",
        app_one__packs=PACK.format(name="one"),
        app_one__flows=FLOW.format(name="one.sync"),
        app_two__flows=FLOW.format(name="two.sync"),
    )
    assert done.returncode == 0, done.stderr
    assert {"one", "one.sync", "two.sync", "log", "record_table", "http_forward"} <= set(done.stdout.split())


def test_an_app_may_have_neither_packs_nor_flows(start: Start) -> None:
    done = start("app_plain", app_plain__models="")
    assert done.returncode == 0, done.stderr


def test_an_app_may_be_named_by_its_configuration_class(start: Start) -> None:
    done = start(
        "app_cfg.apps.Custom",
        app_cfg__apps="from django.apps import AppConfig\nclass Custom(AppConfig):\n    name = 'app_cfg'\n",
        app_cfg__flows=FLOW.format(name="cfg.sync"),
    )
    assert done.returncode == 0, done.stderr
    assert "cfg.sync" in done.stdout.split()


@pytest.mark.parametrize(("module", "source"), [("flows", FLOW.format(name="same")), ("packs", PACK.format(name="same"))])
def test_a_name_that_two_apps_define_stops_the_start_naming_both(start: Start, module: str, source: str) -> None:
    done = start("app_one app_two", **{f"app_one__{module}": source, f"app_two__{module}": source})
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert "'same' is defined by" in last
    assert f"app_one.{module}" in last
    assert f"app_two.{module}" in last


def test_a_users_flow_cannot_take_a_built_in_name(start: Start) -> None:
    done = start("app_one", app_one__flows=FLOW.format(name="record_table"))
    assert done.returncode != 0
    assert "'record_table' is defined by" in done.stderr.splitlines()[-1]


def test_an_import_error_inside_an_app_is_shown_not_swallowed(start: Start) -> None:
    done = start("app_one", app_one__flows="import a_library_that_is_not_there\n")
    assert done.returncode != 0
    assert "a_library_that_is_not_there" in done.stderr.splitlines()[-1]


def test_an_app_that_is_not_installed_stops_the_start_in_one_sentence(start: Start) -> None:
    done = start("app_missing")
    assert done.returncode != 0
    assert "HEADRACE_APPS is malformed: it names 'app_missing', which cannot be imported" in done.stderr.splitlines()[-1]
