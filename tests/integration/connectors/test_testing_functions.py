"""The test functions for users' own packs: they drive the product's own path."""

from __future__ import annotations

import pytest

from connectors.models import Receipt
from connectors.testing import assert_inputs, configure, deliver, drain, generations, inputs_of, settle
from projection.flows import DeadLetter
from projection.replay.decision import Replayed
from projection.replay.replay import replay
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("database")

CONFIGURATION = """
[packs.generic]
settings = { signature = { kind = "none" }, kind = "kind", source_type = "'order'", source_id = "id", lane = "join(':', ['order', id])" }

[packs.generic.endpoint.shop]

[routes.order]
pack = "generic"
on = ["*"]
kind = "order.changed"
mode = "projection"
settle = "1h"
flow = "test.record"

[routes.each]
pack = "generic"
on = ["*"]
kind = "order.seen"
mode = "per_event"
flow = "test.each"
"""
FIRST, SECOND = '{ "id": "7", "kind": "order.created", "n": 1.10 }', '{"id": "7", "kind": "order.paid", "n": 2}'


def test_deliveries_settle_and_run_with_their_exact_inputs() -> None:
    with recording() as seen, recording("test.each") as each:
        configure(CONFIGURATION)
        assert [outcome.code for outcome in deliver("shop", FIRST, SECOND)] == ["accepted", "accepted"]
        assert drain() == 2
        assert (len(each.runs), len(seen.runs)) == (2, 0)
        assert settle() == 1
        assert drain() == 1
        (generation,) = generations(("order", "7"), flow="test.record")
        assert generation.state == "processed"
        assert_inputs(generation, FIRST, {"id": "7", "kind": "order.paid", "n": 2})
        for item, payload in zip(generations(("order", "7"), flow="test.each"), (FIRST, SECOND), strict=True):
            assert_inputs(item, payload)


def test_an_event_after_the_settling_time_settles_anew() -> None:
    with recording(), recording("test.each"):
        configure(CONFIGURATION)
        deliver("shop", FIRST)
        settle()
        drain()
        deliver("shop", SECOND)
        assert settle() == 1
        assert drain() == 2
        assert [item.state for item in generations(("order", "7"), flow="test.record")] == ["processed", "processed"]


def test_the_inputs_of_a_replay_are_those_of_the_dead_generation() -> None:
    with recording() as seen, recording("test.each"):
        configure(CONFIGURATION)
        deliver("shop", FIRST, SECOND)
        settle()
        seen.raises.append(DeadLetter("no"))
        drain()
        (dead,) = generations(("order", "7"), flow="test.record")
        replayed = replay(dead.work_id, actor="test", reason="test")
        assert isinstance(replayed, Replayed)
        again = generations(("order", "7"), flow="test.record")[-1]
        assert again.replay_of_work_id == dead.work_id
        assert_inputs(again, FIRST, SECOND)
        assert [each.ordinal for each in inputs_of(again)] == [each.ordinal for each in inputs_of(dead)]


@pytest.mark.parametrize(
    "expected", [(FIRST,), (SECOND, FIRST), (FIRST, SECOND, SECOND), (FIRST, '{"id":"7"}'), (FIRST, {"id": "8"}), ()]
)
def test_other_inputs_than_expected_fail_and_are_shown(expected: tuple[object, ...]) -> None:
    with recording(), recording("test.each"):
        configure(CONFIGURATION)
        deliver("shop", FIRST, SECOND)
        settle()
        (generation,) = generations(("order", "7"), flow="test.record")
        with pytest.raises(AssertionError, match="has 2 inputs") as failed:
            assert_inputs(generation, *expected)
        assert FIRST in str(failed.value)


def test_configuring_again_changes_nothing_and_forgets_what_was_remembered() -> None:
    with recording(), recording("test.each"):
        configure(CONFIGURATION)
        assert not [step for step in configure(CONFIGURATION).steps if step.outcome != "unchanged"]


def test_an_unknown_endpoint_is_named() -> None:
    with pytest.raises(LookupError, match="no endpoint 'shop' in namespace 'default'"):
        deliver("shop", {})
    assert not Receipt.objects.exists()
