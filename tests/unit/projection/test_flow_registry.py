"""A flow's name belongs to one function."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from projection import flows
from projection.flows import DuplicateFlow, Generation


def first(generation: Generation) -> None:
    return None


def second(generation: Generation) -> None:
    return None


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    flows.forget("test.named")


def test_a_name_that_another_function_has_is_refused_and_the_first_keeps_it() -> None:
    flows.flow("test.named")(first)
    with pytest.raises(DuplicateFlow, match=r"'test\.named' is defined by .*test_flow_registry and again by .*test_flow_registry"):
        flows.flow("test.named")(second)
    found = flows.find("test.named")
    assert found is not None
    assert found.run is first


def test_a_module_that_is_imported_again_gives_the_name_its_new_options() -> None:
    flows.flow("test.named", timeout=30)(first)
    flows.flow("test.named", timeout=60)(first)
    assert flows.registered()["test.named"].timeout == 60


def test_workers_with_other_flows_have_another_hash() -> None:
    before = flows.flows_hash()
    flows.flow("test.named")(first)
    assert flows.flows_hash() != before
    flows.forget("test.named")
    assert flows.flows_hash() == before
