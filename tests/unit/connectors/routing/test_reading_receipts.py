"""Reading: what a receipt's bytes say, item by item; nothing that a body can hold stops its siblings (docs/protocol.md#admit)."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from connectors.delivery import Headers, Inbound, IngressRequest, Item
from connectors.pack import Pack, json_items, unsigned
from connectors.packs.generic import Generic
from connectors.routing.reading import VERDICTS_BYTES, ItemVerdict, Reading, ReceiptFacts, read_receipt, verdicts_text
from connectors.routing.route_table import PackFacts, RouteBook
from projection.facts import PER_EVENT, RouteFacts
from projection.identity import delivery_key, item_key
from projection.testing import make_route
from tests.support.deliveries import SETTINGS

PACK = PackFacts(1, "generic", "incarnation-1")
ANY = make_route(namespace="default", key="contact", provider_kinds=("*",))


@dataclass(frozen=True)
class Book(RouteBook):
    """A book whose pack needs no row."""

    code: Pack | None = None

    def pack_object(self, pack_id: int) -> Pack:
        assert self.code is not None
        return self.code


def read(
    *items: Any,
    routes: Sequence[RouteFacts] = (ANY,),
    body: bytes | None = None,
    key: str | None = None,
    account: str = "shop-a",
    **book: Any,
) -> Reading:
    """Read one receipt (id 5) of items in the shape of `tests.support.deliveries`."""
    raw = json.dumps({"events": items}).encode() if body is None else body
    request = IngressRequest("POST", "https://hooks.example.com/", Headers(), raw)
    chosen = Book("default", {1: PACK}, {1: routes}, **{"code": Generic(SETTINGS), **book})
    return read_receipt(ReceiptFacts(5, 1, key, request, account), chosen)


def item(**members: Any) -> dict[str, Any]:
    return {"id": "d-1", "kind": "contact.changed", "type": "contact", "contact": "7", "lane": "contact:7", **members}


def test_an_item_becomes_one_event_for_its_route() -> None:
    (event,) = read(item()).events
    assert (event.receipt_id, event.item, event.namespace, event.pack_incarnation) == (5, 0, "default", "incarnation-1")
    assert (event.route, event.provider_kind, event.event_kind) == (ANY, "contact.changed", "record.changed")
    assert (event.source_type, event.source_id, event.source_lane, event.delivery_id) == ("contact", "7", "contact:7", "d-1")
    assert event.delivery_key == delivery_key(item_key("default", "generic", "shop-a", "event", "d-1", 0), "contact")
    assert event.account == "shop-a"


def test_the_payload_is_the_exact_slice_of_the_body() -> None:
    body = b'{"events":[ {"id":"a", "kind":"k","type":"t","contact":12345678901234567890,"x":1.10,"e":"\\u00e9"} ]}'
    (event,) = read(body=body).events
    assert event.payload == body.decode()[12:-3].strip()
    assert event.source_id == "12345678901234567890"


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"kind": None}, id="no kind"),
        pytest.param({"contact": {"id": 7}}, id="an object as id"),
        pytest.param({"contact": "x" * 513}, id="an id that a column would cut"),
        pytest.param({"lane": "x" * 701}, id="a lane that a column would cut"),
        pytest.param({"kind": "x" * 191}, id="a kind that a column would cut"),
        pytest.param({"contact": "\ud800"}, id="a lone surrogate in an id"),
        pytest.param({"lane": "contact:\udfff"}, id="a lone surrogate in a lane"),
        pytest.param({"type": "\udfff"}, id="a lone surrogate in a type"),
    ],
)
def test_one_unreadable_item_keeps_its_siblings(bad: dict[str, Any]) -> None:
    reading = read(item(id="first"), item(id="bad", **bad), item(id="last"))
    assert [event.delivery_id for event in reading.events] == ["first", "last"]
    assert [(verdict.item, verdict.code) for verdict in reading.rejected] == [(1, "unreadable")]
    assert (reading.items, reading.error) == (3, None)
    json.dumps(reading.rejected[0].as_json()).encode()


@pytest.mark.parametrize("length", [1, 511, 512])
def test_ids_up_to_their_column_are_kept_exactly(length: int) -> None:
    (event,) = read(item(contact="𝄞" * length, lane=None)).events
    assert event.source_id == "𝄞" * length


@pytest.mark.parametrize(
    "body", [b"", b"no json", b"[1]", b'{"events": 1}', b'{"other": []}', b"\xff\xfe", b"[" * 100_000, b'{"events": [NaN]}']
)
def test_an_unreadable_body_rejects_the_receipt_with_the_reason(body: bytes) -> None:
    reading = read(body=body)
    assert reading.error
    assert (reading.items, list(reading.events), list(reading.rejected)) == (0, [], [])


def test_an_empty_array_is_no_mistake() -> None:
    reading = read()
    assert (reading.items, list(reading.events), list(reading.rejected), reading.error) == (0, [], [], None)


def test_each_matching_route_takes_the_event_with_a_key_of_its_own() -> None:
    routes = (ANY, make_route(key="audit", mode=PER_EVENT), make_route(key="deal", provider_kinds=("deal.*",)))
    events = read(item(), routes=routes).events
    assert [event.route and event.route.key for event in events] == ["contact", "audit"]
    assert len({event.delivery_key for event in events}) == 2
    assert {event.delivery_id for event in events} == {"d-1"}


def test_an_event_that_no_route_takes_is_kept_and_knows_its_keys_of_every_route_there_ever_was() -> None:
    (event,) = read(item(), routes=(), route_keys={"generic": ("contact", "old"), "hubspot": ("other",)}).events
    assert (event.route, event.event_kind, event.target_lane) == (None, "contact.changed", "")
    assert event.delivery_key == item_key("default", "generic", "shop-a", "event", "d-1", 0)
    assert event.sibling_keys == tuple(delivery_key(event.delivery_key, key) for key in ("contact", "old"))


def test_a_routed_event_has_no_sibling_keys() -> None:
    (event,) = read(item(), route_keys={"generic": ("contact", "old")}).events
    assert event.sibling_keys == ()


@pytest.mark.parametrize("absent", [None, "", "   "])
def test_without_an_id_the_event_is_identified_by_its_receipt_and_place(absent: str | None) -> None:
    events = read(item(id=absent), item(id=absent)).events
    assert [event.delivery_id for event in events] == ["receipt:5:0", "receipt:5:1"]


def test_without_an_own_id_the_request_s_id_and_the_place_identify_the_event() -> None:
    assert [event.delivery_id for event in read(item(id=None), key="req-9").events] == ["req-9"]
    assert [event.delivery_id for event in read(item(id=None), item(id=None), key="req-9").events] == ["req-9#0", "req-9#1"]


@pytest.mark.parametrize("id", ["x" * 256, "x" * 5000, "nul\x00", "\ud800", "bell\x07"])
def test_an_id_that_its_column_cannot_keep_is_kept_as_its_digest(id: str) -> None:
    (event,) = read(item(id=id)).events
    assert event.delivery_id.startswith("sha256:")
    assert event.delivery_key == delivery_key(item_key("default", "generic", "shop-a", "event", id, 0), "contact")
    (other,) = read(item(id=id + "x")).events
    assert other.delivery_key != event.delivery_key


@pytest.mark.parametrize("member", ["id", "contact", "lane"])
@pytest.mark.parametrize(
    ("left", "right"), [("a", "a "), ("a", " a"), ("a", "A"), ("e", "é"), ("🎩", "💥"), ("api_4qD", "api_4Qd")]
)
def test_ids_and_lanes_are_exact(member: str, left: str, right: str) -> None:
    one, other = (read(item(**{member: text})).events[0] for text in (left, right))
    name = {"id": "delivery_id", "contact": "source_id", "lane": "source_lane"}[member]
    assert (getattr(one, name), getattr(other, name)) == (left, right)
    assert one.delivery_key != other.delivery_key or member != "id"


@pytest.mark.parametrize("lane", [None, "", "  "])
def test_a_blank_lane_is_no_lane(lane: str | None) -> None:
    (event,) = read(item(lane=lane)).events
    assert (event.source_lane, event.is_projected) == ("", False)


def test_a_route_may_fold_ids_and_lanes_once_and_for_all() -> None:
    fold = make_route(source_id_case="fold", mode=PER_EVENT, target_lane="{id}|{lane}")
    (event,) = read(item(contact="STRASSE-Ä", lane="Contact:STRASSE"), routes=(fold,)).events
    assert (event.source_id, event.source_lane, event.target_lane) == ("strasse-ä", "contact:strasse", "strasse-ä|contact:strasse")
    (exact,) = read(item(contact="STRASSE-Ä"), routes=(ANY,)).events
    assert exact.source_id == "STRASSE-Ä"


def test_the_target_lane_is_filled_in_one_pass() -> None:
    route = make_route(mode=PER_EVENT, target_lane="{type}/{id}/{kind}/{lane}/{other}")
    (event,) = read(item(contact="{kind}", type="{id}"), routes=(route,)).events
    assert event.target_lane == "{id}/{kind}/contact.changed/contact:7/{other}"


def test_a_target_lane_that_does_not_fit_rejects_the_item() -> None:
    route = make_route(mode=PER_EVENT, target_lane="{id}" * 2)
    reading = read(item(contact="x" * 400), item(id="d-2"), routes=(route,))
    assert ([event.delivery_id for event in reading.events], len(reading.rejected)) == (["d-2"], 1)


class Fanning(Pack):
    """One item about several records."""

    signature = unsigned()

    def split(self, body: bytes) -> Sequence[Item]:
        return json_items(body)

    def read(self, item: Item) -> Sequence[Inbound]:
        return [Inbound("seen", ("contact", who), f"contact:{who}", item["id"]) for who in item["who"]]


def test_one_item_may_be_about_several_records() -> None:
    reading = read(body=b'[{"id": "d", "who": ["a", "b"]}, {"id": "e", "who": []}, {"id": "f", "who": 1}]', code=Fanning())
    assert [(event.delivery_id, event.source_id, event.item) for event in reading.events] == [("d", "a", 0), ("d/1", "b", 0)]
    assert [verdict.item for verdict in reading.rejected] == [2]


class Exploding(Fanning):
    """Foreign code at its worst: its own errors cannot be read."""

    def read(self, item: Item) -> Sequence[Inbound]:
        raise _Unspeakable


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_a_pack_whose_errors_cannot_be_read_rejects_only_its_items() -> None:
    reading = read(body=b'[{"id": "d"}]', code=Exploding())
    assert [verdict.reason for verdict in reading.rejected] == ["_Unspeakable: (its text cannot be read: RuntimeError)"]


class Doing(Fanning):
    """Foreign code that does for the items of `bad` what a test says."""

    def __init__(self, does: Callable[[Item], Any]) -> None:
        super().__init__()
        self._does = does

    def read(self, item: Item) -> Any:
        return self._does(item) if item.value["bad"] else Inbound("seen", ("contact", "a"), None, item["id"])


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    "does",
    [
        lambda _: _raise(SystemExit(3)),
        lambda _: _raise(asyncio.CancelledError()),
        lambda _: _raise(MemoryError()),
        lambda _: None,
        lambda _: "text",
        lambda _: [None],
        lambda _: itertools.repeat(Inbound("seen", ("contact", "b"), None, "endless")),
        lambda _: Inbound("seen", None, None, "no source"),
        lambda _: Inbound("seen", ("contact", "b"), 5, "no lane"),
        lambda _: Inbound(None, ("contact", "b"), None, "no kind"),
        lambda _: Inbound("seen", ("contact", "b"), None, 5),
        lambda _: Inbound("seen", ("contact", None), None, "no source id"),
        lambda _: Inbound("seen", ("contact", 1.0), None, "a float"),
    ],
)
def test_whatever_a_pack_does_with_one_item_rejects_that_item_only(does: Callable[[Item], Any]) -> None:
    reading = read(body=b'[{"id": "d", "bad": false}, {"id": "e", "bad": true}, {"id": "f", "bad": false}]', code=Doing(does))
    assert [event.delivery_id for event in reading.events] == ["d", "f"]
    assert [verdict.item for verdict in reading.rejected] == [1]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (datetime(2026, 1, 2, 3), datetime(2026, 1, 2, 3, tzinfo=UTC)),
        (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 2, 1, tzinfo=UTC)),
        (datetime.max.replace(tzinfo=timezone(-timedelta(hours=2))), None),
        ("yesterday", None),
        (5, None),
    ],
)
def test_a_pack_s_time_is_a_hint_and_never_stops_an_admission(given: Any, kept: datetime | None) -> None:
    code = Doing(lambda item: Inbound("seen", ("contact", "b"), None, item["id"], given))
    (event,) = read(body=b'[{"id": "d", "bad": true}]', code=code).events
    assert event.provider_time == kept


class Splitting(Fanning):
    def __init__(self, split: Callable[[bytes], Any]) -> None:
        super().__init__()
        self._split = split

    def split(self, body: bytes) -> Any:
        return self._split(body)


@pytest.mark.parametrize(
    "split", [lambda _: _raise(SystemExit()), lambda _: None, lambda _: 5, lambda _: itertools.repeat(Item("{}", {}))]
)
def test_a_body_that_a_pack_cannot_split_is_rejected(split: Callable[[bytes], Any]) -> None:
    reading = read(body=b"[]", code=Splitting(split))
    assert (reading.events, reading.error is not None) == ((), True)


def test_a_body_of_more_items_than_a_transaction_takes_is_rejected_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.pack.MOST_ITEMS", 3)
    assert len(read(*[item(id=str(n)) for n in range(3)]).events) == 3
    error = read(*[item(id=str(n)) for n in range(4)]).error
    assert error is not None
    assert "send smaller batches" in error


def test_a_text_is_not_kept_for_more_records_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One merge of many records would be stored whole for each of them."""
    monkeypatch.setattr("connectors.routing.reading.COPIES_BYTES", 1000)
    long = json.dumps({"id": "d", "who": ["a", "b", "c"], "text": "x" * 600})
    reading = read(body=f'[{long}, {{"id": "e", "who": ["a", "b"]}}]'.encode(), code=Fanning())
    assert [event.delivery_id for event in reading.events] == ["e", "e/1"]
    assert [verdict.item for verdict in reading.rejected] == [0]


@pytest.mark.parametrize("count", [0, 1, 100, 10_000])
def test_verdicts_are_kept_up_to_a_bound_and_the_rest_is_counted(count: int) -> None:
    def kept(verdicts: Iterable[ItemVerdict]) -> list[Any]:
        text = verdicts_text(list(verdicts))
        assert len(text) < VERDICTS_BYTES + 500
        found: list[Any] = json.loads(text)
        return found

    found = kept(ItemVerdict(n, "unreadable", "portalId is missing") for n in range(count))
    if count <= 100:
        assert [one["item"] for one in found] == list(range(count))
    else:
        left_out = count - (len(found) - 1)
        assert found[-1] == {
            "item": len(found) - 1,
            "code": "more",
            "reason": f"{left_out} more items have reasons that are not stored",
        }


def test_two_senders_are_two_accounts_and_one_account_is_one_sender() -> None:
    one, other, again = (read(item(), account=account).events[0] for account in ("shop-a", "shop-b", "shop-a"))
    assert one.delivery_key != other.delivery_key
    assert one.lane != other.lane
    assert (one.delivery_key, one.lane) == (again.delivery_key, again.lane)


def test_the_account_of_the_delivery_counts_before_that_of_the_endpoint() -> None:
    found = read(item(account="acct_1"), item(account=None), code=Generic({**SETTINGS, "account": "account"})).events
    assert [event.account for event in found] == ["acct_1", "shop-a"]


@pytest.mark.parametrize(("accounts", "given", "account"), [("none", None, ""), ("none", "x", "x"), ("delivery", 7, "7")])
def test_a_pack_says_whose_ids_it_reads(accounts: str, given: Any, account: str) -> None:
    code = Doing(lambda item: Inbound("seen", ("contact", "b"), None, item["id"], None, given))
    code.accounts = accounts  # type: ignore[misc, assignment]
    (event,) = read(body=b'[{"id": "d-1", "bad": true}]', code=code).events
    assert event.account == account


def test_an_account_that_a_delivery_must_name_and_does_not_rejects_the_item() -> None:
    code = Doing(lambda item: Inbound("seen", ("contact", "b"), None, item["id"]))
    code.accounts = "delivery"  # type: ignore[misc]
    reading = read(body=b'[{"id": "d-1", "bad": true}]', code=code)
    assert "no account" in reading.rejected[0].reason


def test_ids_that_read_alike_are_not_the_same_delivery() -> None:
    """An own id that looks as if it were made from a request's id, or from a receipt."""
    own = read(item(id="receipt:5:0")).events[0]
    made = read(item(id=None)).events[0]
    assert own.delivery_id == made.delivery_id
    assert own.delivery_key != made.delivery_key
    of_request = read(item(id=None), item(id=None), key="req").events[1]
    assert of_request.delivery_key != read(item(id="req#1")).events[0].delivery_key


@pytest.mark.parametrize(("left", "right"), [(("acct:1", "42"), ("acct", "1:42")), (("a", "b", "c"), ("a:b", "c"))])
def test_lanes_that_read_alike_are_two(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    code = Doing(lambda item: Inbound("seen", ("contact", "b"), left if item["id"] == "1" else right, item["id"]))
    one, other = read(body=b'[{"id": "1", "bad": true}, {"id": "2", "bad": true}]', code=code).events
    assert one.source_lane == other.source_lane
    assert one.lane != other.lane
    assert (one.lane.parts, other.lane.parts) == (left, right)


@pytest.mark.parametrize(
    ("lane", "reason"),
    [
        (("a", ""), "empty"),
        (tuple("abcdefghi"), "9 parts"),
        (("a", None), "no part of its lane"),
        (("x" * 400, "y" * 400), "801 characters"),
    ],
)
def test_a_lane_that_cannot_be_kept_rejects_the_item(lane: Any, reason: str) -> None:
    code = Doing(lambda item: Inbound("seen", ("contact", "b"), lane, item["id"]))
    reading = read(body=b'[{"id": "1", "bad": true}]', code=code)
    assert reason in reading.rejected[0].reason


def test_news_of_no_record_has_an_id_of_its_own() -> None:
    events = read(item(id=None, contact=None, lane=None), item(id="d-2", contact=" ", lane=None)).events
    assert [(event.source_type, event.source_id, event.is_projected) for event in events] == [
        ("contact", "receipt:5:0", False),
        ("contact", "d-2", False),
    ]
