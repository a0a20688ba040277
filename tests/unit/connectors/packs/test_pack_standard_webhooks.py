"""Standard Webhooks and Svix: identity by webhook-id, record by setting, signatures in a list."""

from __future__ import annotations

import base64
import importlib
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from connectors.delivery import Headers, Inbound, IngressRequest
from connectors.pack import Unreadable
from connectors.packs.standard_webhooks import StandardWebhooks
from tests.support import signing

NOW = 1_700_000_000.0
scheme = importlib.import_module("connectors.signatures.standard_webhooks")  # the package has a function of that name
BODY = b'{"type":"order.paid","timestamp":"2023-11-14T22:13:20Z","data":{"id":9007199254740993,"shop":"s1"}}'


def request(body: bytes = BODY, **headers: str) -> IngressRequest:
    return IngressRequest("POST", "https://x", Headers({name.replace("_", "-"): value for name, value in headers.items()}), body)


def read(body: Any = None, settings: dict[str, Any] | None = None, **headers: str) -> Inbound:
    pack = StandardWebhooks(settings)
    raw = BODY if body is None else json.dumps(body).encode()
    (item,) = pack.split_request(request(raw, **(headers or {"webhook_id": "msg_1"})))
    return pack.read(item)


def test_the_defaults() -> None:
    found = read()
    assert (found.kind, found.source, found.lane, found.delivery_id) == (
        "order.paid", ("order", "9007199254740993"), ("order", "9007199254740993"), "msg_1",
    )  # fmt: skip
    assert str(found.time) == "2023-11-14 22:13:20+00:00"


def test_svix_names_carry_the_same() -> None:
    assert read(svix_id="msg_2").delivery_id == "msg_2"
    assert StandardWebhooks().delivery_id(request(svix_id="msg_2")) == "msg_2"


def test_settings_say_where_the_record_is() -> None:
    settings = {"source_type": "'shop'", "source_id": "data.shop", "lane": "join(':', [data.shop, to_string(data.id)])"}
    found = read(settings=settings)
    assert (found.source, found.lane) == (("shop", "s1"), "s1:9007199254740993")


def test_without_a_record_id_there_is_no_lane() -> None:
    found = read({"type": "ping", "data": {}})
    assert (found.source, found.lane) == (("ping", "msg_1"), None)


@pytest.mark.parametrize("body", [{"data": {"id": 1}}, [1], 5])
def test_a_body_of_another_shape_is_unreadable(body: Any) -> None:
    with pytest.raises(Unreadable):
        read(body)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"lanes": "x"}, "lanes"),
        ({"lane": ""}, "lane"),
        ({"kind": "a..b"}, "kind"),
        ({"source_id": 5}, "source_id"),
        ({"tolerance": 0}, "tolerance"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        StandardWebhooks(settings)


def test_two_signatures_of_a_rotation_and_two_secrets_of_ours() -> None:
    pack, other = StandardWebhooks(), "whsec_" + base64.b64encode(b"another-secret-of-the-sender-000").decode()
    old, new = signing.standard_webhooks(BODY, at=NOW), signing.standard_webhooks(BODY, other, at=NOW)
    both = old | {"webhook-signature": f"{new['webhook-signature']} v2,abc {old['webhook-signature']}"}
    delivery = IngressRequest("POST", "https://x", Headers(both), BODY)
    assert pack.verify(delivery, [signing.STANDARD_SECRET], NOW).ok
    assert pack.verify(delivery, [other, signing.STANDARD_SECRET], NOW).ok
    assert not pack.verify(delivery, ["whsec_" + base64.b64encode(b"x" * 32).decode()], NOW).ok


def test_a_long_list_of_signatures_costs_one_hash_of_the_body_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list comes from a stranger: hashing five MiB for each of 1,600 entries took 20 s."""
    hashed: list[bytes] = []

    def counted(key: bytes, content: bytes) -> bytes:
        hashed.append(key)
        return bytes(hmac_data(key, content))

    hmac_data = scheme.hmac_data
    monkeypatch.setattr(scheme, "hmac_data", counted)
    right = signing.standard_webhooks(BODY, at=NOW)
    secrets = [signing.STANDARD_SECRET, "whsec_" + base64.b64encode(b"x" * 32).decode()]
    for others, ok in ((scheme.MOST_SIGNATURES - 1, True), (scheme.MOST_SIGNATURES, False)):
        hashed.clear()
        listed = " ".join(["v1,a"] * others + [right["webhook-signature"]])
        delivery = IngressRequest("POST", "https://x", Headers(right | {"webhook-signature": listed}), BODY)
        assert StandardWebhooks().verify(delivery, secrets, NOW).ok is ok
        assert len(hashed) <= len(secrets)


def test_an_id_that_nobody_signed_is_no_second_delivery_of_a_recorded_one() -> None:
    recorded = signing.standard_webhooks(BODY, at=NOW, family="svix")
    for id_, ok in (("msg_1", True), ("forged", False), ("", False)):
        delivery = IngressRequest("POST", "https://x", Headers(recorded | {"webhook-id": id_}), BODY)
        assert StandardWebhooks().verify(delivery, [signing.STANDARD_SECRET], NOW).ok is ok


def test_an_ed25519_signature_verifies_with_the_public_key_alone() -> None:
    private = Ed25519PrivateKey.generate()
    public = "whpk_" + base64.b64encode(private.public_key().public_bytes_raw()).decode()
    content = b"msg_1.%d." % int(NOW) + BODY
    signature = "v1a," + base64.b64encode(private.sign(content)).decode()
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(NOW)), "webhook-signature": signature}
    delivery = IngressRequest("POST", "https://x", Headers(headers), BODY)
    assert StandardWebhooks().verify(delivery, [public], NOW).ok
    tampered = IngressRequest("POST", "https://x", Headers(headers), BODY + b" ")
    assert not StandardWebhooks().verify(tampered, [public], NOW).ok


def test_the_record_is_the_data() -> None:
    change = StandardWebhooks().change("contact.deleted", {"data": {"id": 1}})
    assert (dict(change.properties), change.lifecycle) == ({"id": 1}, "deleted")
