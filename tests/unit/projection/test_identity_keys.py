"""Keys that decide identity: hashes of length-prefixed parts, independent of any collation."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import replace

import pytest

from projection import identity
from projection.testing import make_route

LOOK_ALIKES = ["api_4qD", "api_4Qd", "é", "e", "🎩", "💥", "a", "a ", " a", "", "A", "\ud800", "\ud801", "\\ud800", "e\u0301"]


def test_a_digest_is_64_hex_digits() -> None:
    assert re.fullmatch("[0-9a-f]{64}", identity.digest("a", 1))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (("a", "bc"), ("ab", "c")),
        (("ab",), ("a", "b")),
        (("", "a"), ("a", "")),
        (("1:a",), ("", "a")),
        ((), ("",)),
        (("é",), ("e\u0301",)),
    ],
)
def test_parts_never_run_into_each_other(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert identity.digest(*left) != identity.digest(*right)


def test_lengths_are_counted_in_bytes() -> None:
    assert identity.digest("é") == hashlib.sha256(b"2:\xc3\xa9").hexdigest()


def test_a_number_is_its_digits() -> None:
    assert identity.digest(42) == identity.digest("42")


def test_texts_that_collations_equate_have_keys_of_their_own() -> None:
    route = make_route()
    for key in (
        lambda text: identity.source_key("contact", text),
        lambda text: identity.projection_key(route, "i", text),
        lambda text: identity.delivery_key("n", "p", text, "r"),
        lambda text: identity.source_scope_key("n", "k", text),
        identity.digest,
        identity.sha256_text,
    ):
        assert len({key(text) for text in LOOK_ALIKES}) == len(LOOK_ALIKES)


@pytest.mark.parametrize(
    "change",
    [
        {"namespace": "other"},
        {"event_kind": "other"},
        {"key": "other"},
        {"version": 2},
        {"companion_pack": "other"},
        {"companion_flow": "other"},
        {"work_type": "other"},
    ],
)
def test_each_part_of_the_scope_makes_another_projection(change: dict[str, object]) -> None:
    route = make_route()
    assert identity.projection_key(replace(route, **change), "i", "l") != identity.projection_key(route, "i", "l")


def test_incarnation_and_lane_are_part_of_the_scope_and_the_row_id_is_not() -> None:
    route = make_route()
    keys = [identity.projection_key(route, *parts) for parts in itertools.product(("i", "j"), ("l", "m"))]
    assert len(set(keys)) == 4
    assert identity.projection_key(replace(route, id=99, settle_seconds=9.0), "i", "l") == keys[0]


def test_work_ids_fit_their_column_and_name_their_class() -> None:
    key = identity.projection_key(make_route(), "i", "l")
    later = identity.generation_work_id(key, 7, 70)
    single = identity.per_event_work_id("d")
    assert (key[:4], later[:4], single[:4]) == ("csp:", "csp:", "evt:")
    assert {len(key), len(later), len(single)} == {68}
    assert key != later


def test_the_event_tells_generations_apart_only_before_ordinals() -> None:
    assert identity.generation_work_id("k", 7, 1) == identity.generation_work_id("k", 7, 2)
    assert identity.generation_work_id("k", 0, 1) != identity.generation_work_id("k", 0, 2)


def test_lanes() -> None:
    assert identity.lane_key("n", "crm", "", "") is None
    source = identity.lane_key("n", "crm", "contact:1", "")
    target = identity.lane_key("n", "crm", "contact:1", "invoice:1")
    assert (
        len({source, target, identity.lane_key("n", "erp", "contact:1", ""), identity.lane_key("m", "crm", "contact:1", "")}) == 4
    )
    assert target == identity.lane_key("n", "erp", "contact:2", "invoice:1"), "companions share a target lane"
    assert identity.lane_key("n", "target", "x", "") != identity.lane_key("n", "any", "", "x")
