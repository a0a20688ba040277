"""The private MariaDB leaves the other database servers of its host alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.acceptance.private_server import IS_INSTALLED, private_server
from tests.support.running import state_folder

pytestmark = [pytest.mark.acceptance, pytest.mark.skipif(not IS_INSTALLED, reason="MariaDB is not installed here")]


def test_its_start_keeps_the_temporary_tables_of_other_servers() -> None:
    """Every server that starts clears its folder for them; another server crashed when its own were gone."""
    with tempfile.NamedTemporaryFile(prefix="#sql-temptable-", suffix=".MAI") as foreign, private_server():
        assert Path(foreign.name).exists()


def test_it_is_made_and_runs_in_a_folder_with_a_space() -> None:
    with state_folder() as folder, private_server(folder / "my data") as server:
        assert server.execute("SELECT @@datadir") == [(f"{folder}/my data/data/",)]
