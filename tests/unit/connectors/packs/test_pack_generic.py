"""The generic pack: settings say how a sender signs and where ids, kinds, lanes and times are."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.delivery import Headers, Inbound, IngressRequest
from connectors.pack import NO_RECORD, NotJson, Unreadable
from connectors.packs.generic import Generic


def read(settings: dict[str, Any], body: bytes, **headers: str) -> list[Inbound]:
    pack = Generic(settings)
    request = IngressRequest("POST", "https://x", Headers({name.replace("_", "-"): text for name, text in headers.items()}), body)
    return [pack.read(item) for item in pack.split_request(request)]


def test_the_defaults() -> None:
    (found,) = read({}, b'{"id": "c-7", "v": 1}')
    assert found == Inbound("event", ("event", "c-7"), ("event", "c-7"))
    (typed,) = read({}, b'{"id": 1, "type": "order.paid"}')
    assert (typed.kind, typed.source, typed.lane) == ("order.paid", ("order", "1"), ("order", "1"))


def test_everything_can_be_found_elsewhere() -> None:
    settings = {
        "delivery_id": 'headers."X-Acme-Id"',
        "kind": "meta.kind",
        "source_type": "'order'",
        "source_id": "order.number",
        "lane": "join(':', [tenant, to_string(order.number)])",
        "time": "meta.at",
    }
    body = b'{"tenant": "t1", "order": {"number": 12345678901234567.890}, "meta": {"kind": "paid", "at": 1700000000}}'
    (found,) = read(settings, body, x_acme_id="d-1")
    assert (found.kind, found.source, found.delivery_id) == ("paid", ("order", "12345678901234567.890"), "d-1")
    assert found.lane == "t1:12345678901234567.890"
    assert str(found.time) == "2023-11-14 22:13:20+00:00"
    assert "x-acme-id" in Generic(settings).stored_headers()


PAIRS = [
    ("7615917337495251231", "7615917337495251232"),
    ("9007199254740993", "9007199254740992"),
    ("10.10", "10.1"),
    ("12345678901234567.89", "12345678901234567.88"),
    ("1E2", "100"),
    ("18446744073709551616", "18446744073709551617"),
]


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_numbers_in_identity_keep_every_digit(one: str, two: str) -> None:
    for literal in (one, two):
        (found,) = read({}, f'{{"id": {literal}}}'.encode())
        assert found.source == ("event", literal)
        assert found.lane == ("event", literal)


def test_items_are_exact_slices_and_see_the_body_around_them() -> None:
    settings = {"items": "data.events", "lane": "join('/', [body.tenant, id])", "delivery_id": "id"}
    body = b'{"tenant": "t1", "data": {"events": [{"id":"a", "x": 1.10} , {"id":"b"}]}}'
    pack = Generic(settings)
    items = pack.split(body)
    assert [item.text for item in items] == ['{"id":"a", "x": 1.10}', '{"id":"b"}']
    assert [inbound.lane for inbound in read(settings, body)] == ["t1/a", "t1/b"]
    request = IngressRequest("POST", "https://x", Headers(), body)
    assert pack.delivery_id(request) is None


@pytest.mark.parametrize("items", ["@", "events[]", "events[*]"])
def test_items_may_be_the_whole_body_or_an_array(items: str) -> None:
    body = b'[{"id":1},{"id":2}]' if items == "@" else b'{"events":[{"id":1},{"id":2}]}'
    assert [found.source[1] for found in read({"items": items}, body)] == ["1", "2"]


def test_an_empty_array_has_no_items() -> None:
    assert read({"items": "events"}, b'{"events": []}') == []


@pytest.mark.parametrize("body", [b"{}", b'{"events": {}}', b'{"events": null}'])
def test_a_body_without_the_array_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable, match="no array at 'events'"):
        read({"items": "events"}, body)


def test_the_request_id_is_read_before_routing_and_blank_is_none() -> None:
    pack = Generic({"delivery_id": "id"})
    for body, expected in ((b'{"id": "evt_1"}', "evt_1"), (b'{"id": ""}', None), (b'{"id": "   "}', None), (b"{}", None)):
        assert pack.delivery_id(IngressRequest("POST", "https://x", Headers(), body)) == expected


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"sourceid": "x"}, "sourceid"),
        ({"lane": "a..b"}, "lane"),
        ({"lane": "!" * 900 + "a"}, "lane is nested too deeply"),
        ({"lane": "a." * 3000 + "b"}, "lane has 6001 characters"),
        ({"items": "events[?x]"}, "items"),
        ({"items": "events", "delivery_id": 'headers."x-id"'}, "delivery_id"),
        ({"items": "events", "delivery_id": "body.id"}, "delivery_id"),
        ({"signature": "hmac"}, "signature"),
        ({"signature": {"kind": "rsa"}}, "signature.kind"),
        ({"signature": {"kind": "hmac"}}, "signature.header"),
        ({"signature": {"kind": "hmac", "header": "X Bad"}}, "signature.header"),
        ({"signature": {"kind": "hmac", "header": "X-S", "encoding": "hex32"}}, "signature.encoding"),
        ({"signature": {"kind": "token", "header": "X-T", "encoding": "hex"}}, "signature.encoding"),
        ({"signature": {"kind": "hmac", "header": "X-S", "prefix": 5}}, "signature.prefix"),
        ({"signature": {"kind": "token", "header": "X-T"}, "lane": 'headers."x-t"'}, "lane"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Generic(settings)


def test_the_signature_kinds() -> None:
    assert Generic().scheme().name == "hmac-sha256"
    assert Generic({"signature": {"kind": "token", "header": "X-T"}}).scheme().name == "token"
    assert not Generic({"signature": {"kind": "none"}}).scheme().needs_secret


@pytest.mark.parametrize("body", [b'{"id": {}}', b'{"id": []}', b'{"id": true}', b'{"id": false}', b"{}", b"5"])
def test_what_cannot_be_an_id_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read({}, body)


@pytest.mark.parametrize("id", ["null", '""', '"  "'])
@pytest.mark.parametrize("source_id", ["id", "order.id"])
def test_an_item_with_an_empty_id_is_kept_as_news_of_no_record(id: str, source_id: str) -> None:
    body = f'{{"id": {id}, "type": "order.paid", "order": {{"id": {id}}}}}'.encode()
    (found,) = read({"source_id": source_id}, body)
    assert (found.kind, found.source, found.lane) == ("order.paid", ("order", NO_RECORD), None)


def test_an_item_without_the_member_of_the_id_names_the_setting_to_correct() -> None:
    for settings in ({}, {"source_id": "order.id"}, {"source_id": "orders[1].id"}):
        with pytest.raises(Unreadable, match="correct the pack's setting source_id"):
            read(settings, b'{"type": "order.paid", "order": {}, "orders": [{"id": 1}]}')


@pytest.mark.parametrize(
    ("kind", "source_type"),
    [("orders/create", "orders"), ("jira:issue_updated", "jira"), ("order.paid", "order"), ("a/b:c.d", "a"), ("paid", "paid")],
)
def test_the_type_is_what_stands_before_the_first_separator_of_the_kind(kind: str, source_type: str) -> None:
    (found,) = read({}, f'{{"id": 1, "type": "{kind}"}}'.encode())
    assert (found.source, found.lane) == ((source_type, "1"), (source_type, "1"))


def test_the_account_is_where_the_setting_says() -> None:
    settings = {"account": "account"}
    assert [read(settings, body)[0].account for body in (b'{"id": 1, "account": "acct_1"}', b'{"id": 1}')] == ["acct_1", None]


def test_an_expression_that_does_not_fit_the_payload_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="lane"):
        read({"lane": "join(':', [id, name])"}, b'{"id": 1, "name": "x"}')


@pytest.mark.parametrize("body", [b"", b'{"a":NaN}', b'{"a":-Infinity}', b"payload=1", b"[" * 100])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(NotJson):
        read({}, body)
