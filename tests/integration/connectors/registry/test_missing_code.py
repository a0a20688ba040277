"""A start without the package that routes and packs need says so: their work only waits, which nobody would notice."""

from __future__ import annotations

import pytest

from connectors import pack
from connectors.registry import installed_packs
from ops_ui.start.prepare import _say_what_is_missing
from tests.support import factories

pytestmark = pytest.mark.usefixtures("database")


def test_an_installed_pack_and_a_routes_flow_that_are_not_here_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    installed = factories.install("acme_of_nobody")
    factories.route(installed, "order", flow="acme_of_nobody.order")
    _say_what_is_missing()
    pack_line, flow_line = capsys.readouterr().out.splitlines()
    assert pack_line.startswith("headrace: warning: Pack 'acme_of_nobody' is installed, but its package is not in HEADRACE_APPS")
    assert flow_line.startswith("headrace: warning: Flow 'acme_of_nobody.order' (routes: order) is not available")
    assert all("HEADRACE_APPS" in line for line in (pack_line, flow_line))


def test_what_is_here_disabled_or_retired_is_no_news() -> None:
    assert "generic" in pack.registered()
    factories.route(factories.install("generic"), "page", flow="log")
    factories.install("acme_of_nobody", state="disabled")
    assert installed_packs.missing_code() == []
