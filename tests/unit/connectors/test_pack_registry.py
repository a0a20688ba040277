"""A pack is registered by having a name; a second one of the same name is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from connectors import pack
from connectors.pack import DuplicatePack, Headers, Inbound, IngressRequest, Item, Pack, Unreadable, hmac_sha256, json_items
from tests.support import signing


@pytest.fixture
def acme() -> Iterator[type[Pack]]:
    class Acme(Pack):  # as in the interface: nothing but what a user writes
        name, version, signature = "acme-of-this-test", "1", hmac_sha256(header="X-Acme-Signature", encoding="hex")

        def delivery_id(self, request: IngressRequest) -> str | None:
            return request.headers.get("X-Acme-Id")

        def split(self, body: bytes) -> Sequence[Item]:
            return json_items(body, "events")

        def read(self, item: Item) -> Inbound:
            return Inbound(kind=item["type"], source=("order", item["id"]), lane=f"order:{item['id']}")

    yield Acme
    pack.forget("acme-of-this-test")


def test_a_users_pack_works_as_the_interface_shows(acme: type[Pack]) -> None:
    assert pack.find("acme-of-this-test") is acme
    body = b'{"events": [{"type": "paid", "id": 9007199254740993}]}'
    headers = Headers({"X-Acme-Signature": signing.hmac_hex(body, "s3cret"), "x-acme-id": "d1"})
    request = IngressRequest("POST", "https://x", headers, body)
    one = acme()
    assert one.verify(request, ["s3cret"], 0).ok
    assert one.delivery_id(request) == "d1"
    (item,) = one.split_request(request)
    found = one.read(item)
    assert isinstance(found, Inbound)
    assert (found.source, found.lane) == (("order", 9007199254740993), "order:9007199254740993")


def test_a_second_pack_of_the_same_name_is_refused(acme: type[Pack]) -> None:
    with pytest.raises(DuplicatePack, match="acme-of-this-test"):
        type("Other", (acme,), {"name": "acme-of-this-test"})


def test_a_class_without_a_name_of_its_own_is_no_pack(acme: type[Pack]) -> None:
    before = pack.registered()
    type("Base", (acme,), {})
    assert pack.registered() == before


def test_items_of_a_body() -> None:
    assert [item.text for item in json_items(b' [ 1 , {"a":2}]')] == ["1", '{"a":2}']
    assert [item.text for item in json_items(b' {"a": 1}\n')] == ['{"a": 1}']
    assert json_items(b"\xef\xbb\xbf[]") == []
    with pytest.raises(Unreadable, match=r"no array at 'a\.b'"):
        json_items(b'{"a": {"b": 1}}', "a", "b")


def test_the_repr_of_a_request_shows_no_body_and_no_header_value() -> None:
    request = IngressRequest("POST", "https://x", Headers({"authorization": "s3cret"}), b"s3cret")
    assert "s3cret" not in repr(request)
