from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.model.beginning import Beginning, begin, forget_flows, register_flows


@pytest.fixture
def beginning(database: None) -> Iterator[Beginning]:
    """A configured, empty database; sequences put it back to this state by themselves."""
    register_flows()
    yield begin()
    forget_flows()
