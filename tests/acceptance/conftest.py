"""What several acceptance tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.children import Nursery, nursery_in


@pytest.fixture(scope="session")
def shared_nursery(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Loading the product once is what the processes of all tests cost."""
    with nursery_in(tmp_path_factory.mktemp("nursery")) as made:
        yield made


@pytest.fixture
def nursery(shared_nursery: Nursery, database: None) -> Iterator[Nursery]:
    """Starts processes on the suite's database; none outlives the test."""
    yield shared_nursery
    shared_nursery.end_all()
