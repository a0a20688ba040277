"""Updates of work items by their ids go by the primary key: through an index on State they would wait for rows of other lanes."""

from __future__ import annotations

from pathlib import Path

import pytest

from projection.database.catalogue import catalogue

UPDATES = {
    name: text
    for name, text in catalogue(Path(__file__).parents[4] / "projection").items()
    if text.startswith("UPDATE `_System_ConnectorWorkItem`") and "WHERE Id IN" in text
}


def has_more_than_the_ids(text: str) -> bool:
    return " AND " in text.partition("WHERE Id IN")[2]


@pytest.mark.parametrize("name", [name for name, text in UPDATES.items() if has_more_than_the_ids(text)])
def test_an_update_by_ids_that_another_index_could_serve_forces_the_primary_key(name: str) -> None:
    assert UPDATES[name].startswith("UPDATE `_System_ConnectorWorkItem` FORCE INDEX (PRIMARY)")


def test_there_are_such_updates() -> None:
    assert {"advance_generations", "activate_generations", "unblock_work_items", "claim_work_items"} <= UPDATES.keys()
