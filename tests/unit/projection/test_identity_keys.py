"""Keys that decide identity: hashes of length-prefixed parts, independent of any collation."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import replace

import pytest

from projection import identity
from projection.facts import Source, SourceLane
from projection.testing import make_route

LANE = SourceLane("", ("l",))
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
        lambda text: identity.source_key("", "contact", text),
        lambda text: identity.source_key(text, "contact", "1"),
        lambda text: identity.projection_key(route, "i", SourceLane("", (text,))),
        lambda text: identity.delivery_key(identity.item_key("n", "p", "", text), "r"),
        lambda text: identity.source_scope_key("n", "k", SourceLane("", (text,))),
        lambda text: identity.lane_key("n", "crm", SourceLane(text, ("l",)), ""),
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
    assert identity.projection_key(replace(route, **change), "i", LANE) != identity.projection_key(route, "i", LANE)


def test_incarnation_and_lane_are_part_of_the_scope_and_the_row_id_is_not() -> None:
    route = make_route()
    keys = [identity.projection_key(route, *parts) for parts in itertools.product(("i", "j"), (LANE, SourceLane("", ("m",))))]
    assert len(set(keys)) == 4
    assert identity.projection_key(replace(route, id=99, settle_seconds=9.0), "i", LANE) == keys[0]


def test_work_ids_fit_their_column_and_name_their_class() -> None:
    key = identity.projection_key(make_route(), "i", LANE)
    later = identity.generation_work_id(key, 7, 70)
    single = identity.per_event_work_id("d")
    assert (key[:4], later[:4], single[:4]) == ("csp:", "csp:", "evt:")
    assert {len(key), len(later), len(single)} == {68}
    assert key != later


def test_the_event_tells_generations_apart_only_before_ordinals() -> None:
    assert identity.generation_work_id("k", 7, 1) == identity.generation_work_id("k", 7, 2)
    assert identity.generation_work_id("k", 0, 1) != identity.generation_work_id("k", 0, 2)


def lane(*parts: str, account: str = "") -> SourceLane:
    return SourceLane(account, parts)


def test_lanes() -> None:
    one = lane("contact", "1")
    assert identity.lane_key("n", "crm", SourceLane(), "") is None
    source = identity.lane_key("n", "crm", one, "")
    target = identity.lane_key("n", "crm", one, "invoice:1")
    assert len({source, target, identity.lane_key("n", "erp", one, ""), identity.lane_key("m", "crm", one, "")}) == 4
    assert target == identity.lane_key("n", "erp", lane("contact", "2"), "invoice:1"), "companions share a target lane"
    assert identity.lane_key("n", "target", lane("x"), "") != identity.lane_key("n", "any", SourceLane(), "x")


GLUED = [(("acct:1", "42"), ("acct", "1:42")), (("a:b",), ("a", "b")), (("a", "b:c"), ("a:b", "c")), (("a", ""), ("a:",))]


@pytest.mark.parametrize(("left", "right"), GLUED)
def test_lanes_that_read_alike_have_keys_of_their_own(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    one, other, route = lane(*left), lane(*right), make_route()
    assert one.text == other.text
    for key in (
        lambda lane: identity.lane_key("n", "crm", lane, ""),
        lambda lane: identity.projection_key(route, "i", lane),
        lambda lane: identity.source_scope_key("n", "k", lane),
    ):
        assert key(one) != key(other)


def test_an_account_makes_another_of_everything() -> None:
    for key in (
        lambda account: identity.item_key("n", "p", account, "event", "d"),
        lambda account: identity.source_key(account, "contact", "1"),
        lambda account: identity.lane_key("n", "crm", lane("contact", "1", account=account), ""),
        lambda account: identity.projection_key(make_route(), "i", lane("contact", "1", account=account)),
        lambda account: identity.source_scope_key("n", "k", lane("contact", "1", account=account)),
        lambda account: identity.record_key("n", "p", "k", Source("contact", "1", account)),
    ):
        assert len({key(account) for account in ("", "shop-a", "shop-b", "contact")}) == 4


def test_an_account_does_not_run_into_what_follows_it() -> None:
    assert identity.source_key("a", "b", "c") != identity.source_key("ab", "", "c")
    assert identity.lane_key("n", "c", lane("b", account="a"), "") != identity.lane_key("n", "c", lane("a", "b"), "")


def test_a_route_with_an_order_of_its_own_has_lanes_of_its_own() -> None:
    one = lane("contact", "1")
    keys = {identity.lane_key("n", "crm", one, "", own_route) for own_route in ("", "score", "sync")}
    scopes = {identity.source_scope_key("n", "k", one, own_route) for own_route in ("", "score", "sync")}
    assert (len(keys), len(scopes)) == (3, 3)


@pytest.mark.parametrize("parts", [(), ("a",), ("a:b",), ("a", "b"), ("", "a"), ("a:", ":b", "é🎩"), ("1,2", "3")])
def test_a_lane_is_found_again_in_its_text(parts: tuple[str, ...]) -> None:
    one = SourceLane("shop-a", parts)
    assert SourceLane.of("shop-a", one.text, one.cuts) == one


def test_a_folded_lane_is_cut_anew() -> None:
    folded = SourceLane("", ("STRASSE", "GROẞ")).folded()
    assert SourceLane.of("", folded.text, folded.cuts) == folded == SourceLane("", ("strasse", "gross"))
