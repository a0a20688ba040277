"""Tests of your own flows, without a database: `pytest_plugins = ["projection.testing"]` in your conftest.py.

    def test_a_deleted_contact_is_skipped(make_generation):
        generation = make_generation('{"propertyName":"email"}', source=("contact", "42"), attempt=2)
        with pytest.raises(Skip):
            contact(generation)

What needs the database (deliver, settle, drain …) is in `connectors.testing`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from projection.exact_json import dump
from projection.facts import PROJECTION, Input, RouteFacts, Source
from projection.flows import DEFAULT_TIMEOUT_SECONDS, Generation
from projection.identity import digest, sha256_text

ROUTE: Final = RouteFacts(
    id=1,
    namespace="test",
    pack_id=1,
    pack_name="generic",
    key="main",
    version=1,
    provider_kinds=("*",),
    event_kind="record.changed",
    mode=PROJECTION,
    companion_pack="headrace",
    companion_flow="log",
    work_type="log",
)
"""A projection route to `log`; change what your test is about with `make_route`."""


UNSAID: Final = Source("record", "1")


def make_route(**changes: Any) -> RouteFacts:
    """`ROUTE` with some members changed, e.g. `make_route(connection="crm", retry=RetryPolicy(cap=60))`."""
    return replace(ROUTE, **changes)


def make_input(
    payload: Any = None,
    *,
    ordinal: int = 1,
    event_id: int | None = None,
    kind: str = "record.propertyChange",
    source: tuple[str, str] | None = None,
    account: str = "",
    delivery_id: str | None = None,
    provider_time: datetime | None = None,
    replay_of_event_id: int | None = None,
) -> Input:
    """One event as a flow sees it. `payload` is the exact text (str), or a value that is written as JSON. Without a `source` it is of the
    source of the generation that it is given to."""
    text = payload if isinstance(payload, str) else dump({} if payload is None else payload)
    return Input(
        event_id=ordinal if event_id is None else event_id,
        ordinal=ordinal,
        kind=kind,
        source=UNSAID if source is None else Source(*source, account),
        delivery_id=f"delivery-{ordinal}" if delivery_id is None else delivery_id,
        provider_time=provider_time,
        payload=text,
        payload_sha256=sha256_text(text),
        created=datetime.now(UTC),
        replay_of_event_id=replay_of_event_id,
    )


def make_generation(
    *payloads: Any,
    route: RouteFacts = ROUTE,
    attempt: int = 1,
    source: tuple[str, str] = ("record", "1"),
    account: str = "",
    kind: str = "record.propertyChange",
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    atomic: bool = False,
) -> Generation:
    """A generation as the worker gives it to a flow, without a database.

    Each payload is an exact text, a value that is written as JSON, or an `Input` (`make_input`); without any there is one empty
    object. `timeout` is seconds until the deadline. `generation.commit()` opens no transaction here, and is refused for `atomic`
    flows as in production.
    """
    inputs = tuple(
        _of(each, Source(*source, account))
        if isinstance(each, Input)
        else make_input(each, ordinal=place, kind=kind, source=source, account=account)
        for place, each in enumerate(payloads or ({},), start=1)
    )
    lane = ":".join(source)
    return Generation(
        work_id=f"csp:{digest('test', route.snapshot(), lane, inputs[-1].ordinal)}",
        attempt=attempt,
        deadline=datetime.now(UTC) + timedelta(seconds=timeout),
        namespace=route.namespace,
        route=route,
        source=Source(*source, account),
        source_lane=lane,
        selected=inputs[-1],
        inputs=inputs,
        projection_key=f"csp:{digest('test', lane)}" if route.is_projection else None,
        _commit=None if atomic else _commit,
    )


def _of(each: Input, source: Source) -> Input:
    return replace(each, source=source) if each.source is UNSAID else each


def _commit(_generation: Generation) -> AbstractContextManager[None]:
    return nullcontext()


@pytest.fixture(name="make_generation")
def make_generation_fixture() -> Callable[..., Generation]:
    """The function `make_generation`."""
    return make_generation
