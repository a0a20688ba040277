"""A flow's name belongs to one function, and calling that function runs it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from projection import flows
from projection.flows import DuplicateFlow, Flow, Generation, NotAFlow


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


async def coroutine(generation: Generation) -> None:
    raise AssertionError("it ran")


async def asynchronous_generator(generation: Generation) -> Any:
    yield generation


def generator(generation: Generation) -> Any:
    yield generation


class AsynchronousCallable:
    async def __call__(self, generation: Generation) -> None:
        raise AssertionError("it ran")


@functools.wraps(coroutine)
def decorated(generation: Generation) -> Any:
    return coroutine(generation)


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (coroutine, "write it with `def`"),
        (asynchronous_generator, "write it with `def`"),
        (functools.partial(coroutine), "write it with `def`"),
        (AsynchronousCallable(), "write it with `def`"),
        (decorated, "write it with `def`"),
        (generator, "write it without `yield`"),
        (Generation, "is not a function"),
        ("contact", "is not a function"),
    ],
)
def test_what_would_never_run_is_refused_with_what_to_write(function: Any, advice: str) -> None:
    with pytest.raises(NotAFlow, match=advice):
        flows.flow("test.named")(function)
    assert flows.find("test.named") is None


def test_a_flow_without_a_name_is_refused_where_it_is_written() -> None:
    with pytest.raises(NotAFlow, match=r'write @flow\("first"\)'):
        flows.flow(first)


@pytest.mark.parametrize("made", [coroutine, asynchronous_generator, generator])
def test_a_flow_that_returns_work_that_was_never_done_has_failed(made: Any) -> None:
    with pytest.raises(NotAFlow, match="instead of running"):
        flows.run(Flow("test.named", made), None)
