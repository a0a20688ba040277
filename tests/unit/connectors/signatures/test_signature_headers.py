"""Whatever stands in a signature header, the answer is "not verified", never an exception."""

from __future__ import annotations

import pytest

from connectors.delivery import Headers, IngressRequest, SignatureScheme
from connectors.pack import hmac_sha256, token, unsigned
from connectors.signatures import hubspot, hubspot_v3, standard_webhooks
from connectors.signatures.hubspot import decoded_url
from tests.support import signing

SECRET = "a-test-secret"
BODY = b'{"id": "c-7"}'
URL = "https://hooks.example.com/ingress/default/crm"
NOW = 1_700_000_000.0
GOOD = signing.hmac_hex(BODY, SECRET)

HEX = hmac_sha256(header="X-Signature", prefix="sha256=")
GARBAGE = {
    "non-ascii": "sha256=\xe9" + GOOD[1:],
    "emoji": "sha256=💥",
    "surrogate": "sha256=\udc88",
    "empty": "",
    "prefix only": "sha256=",
    "one megabyte": "sha256=" + "a" * 1_000_000,
    "too short": "sha256=" + GOOD[:-1],
    "too long": "sha256=" + GOOD + "0",
    "upper case": "sha256=" + GOOD.upper(),
    "joined twice": f"sha256={GOOD},sha256={GOOD}",
    "blanks around": f" sha256={GOOD} ",
    "no prefix": GOOD,
}


def request(headers: dict[str, str] | list[tuple[str, str]], body: bytes = BODY) -> IngressRequest:
    return IngressRequest("POST", URL, Headers(headers), body)


def test_the_right_signature_verifies() -> None:
    assert HEX.verify(request({"x-signature": f"sha256={GOOD}"}), [SECRET], NOW).ok


@pytest.mark.parametrize("value", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_not_verified(value: str) -> None:
    assert not HEX.verify(request({"X-Signature": value}), [SECRET], NOW).ok


def test_a_header_sent_twice_is_not_verified_even_when_both_are_right() -> None:
    twice = [("X-Signature", f"sha256={GOOD}"), ("x-signature", f"sha256={GOOD}")]
    assert not HEX.verify(request(twice), [SECRET], NOW).ok


@pytest.mark.parametrize("value", GARBAGE.values(), ids=GARBAGE.keys())
@pytest.mark.parametrize(
    ("scheme", "headers"),
    [
        (hubspot(), signing.hubspot_v3(BODY, SECRET, URL, at=NOW)),
        (hubspot(), signing.hubspot_v2(BODY, SECRET, URL)),
        (hubspot(), signing.hubspot_v1(BODY, SECRET)),
        (standard_webhooks(), signing.standard_webhooks(BODY, at=NOW)),
        (standard_webhooks(), signing.standard_webhooks(BODY, at=NOW, family="svix")),
        (token(header="Authorization", prefix="Bearer "), {"Authorization": f"Bearer {SECRET}"}),
        (hmac_sha256(header="X-Signature", encoding="base64"), {"X-Signature": signing.hmac_base64(BODY, SECRET)}),
    ],
    ids=["v3", "v2", "v1", "webhook", "svix", "token", "base64"],
)
def test_every_header_of_every_scheme_takes_garbage(scheme: SignatureScheme, headers: dict[str, str], value: str) -> None:
    secrets = [SECRET, signing.STANDARD_SECRET]
    assert scheme.verify(request(headers), secrets, NOW).ok
    for name in headers:
        assert not scheme.verify(request(headers | {name: value}), secrets, NOW).ok, name


@pytest.mark.parametrize("secrets", [[], [""], ["   "]])
def test_without_a_usable_secret_nothing_verifies(secrets: list[str]) -> None:
    signed_with_nothing = signing.hmac_hex(BODY, "")
    verdict = HEX.verify(request({"X-Signature": f"sha256={signed_with_nothing}"}), secrets, NOW)
    assert not verdict.ok
    assert "no valid secret" in verdict.reason


@pytest.mark.parametrize("scheme", [HEX, token(header="X-Token"), hubspot(), standard_webhooks()])
@pytest.mark.parametrize("secret", ["", "  "])
def test_an_empty_secret_is_refused_by_configuration(scheme: SignatureScheme, secret: str) -> None:
    with pytest.raises(ValueError, match="empty"):
        scheme.check_secret(secret)


@pytest.mark.parametrize(
    ("scheme", "secret", "reason"),
    [
        (HEX, "copied\n", "white space"),
        (token(header="X-Token"), "tökén", "printable ASCII"),
        (standard_webhooks(), "whsec_no base64!", "base64"),
        (standard_webhooks(), "whsk_AAAA", "private key"),
        (standard_webhooks(), "whpk_AAAA", "32 bytes"),
        (unsigned(), "anything", "no signature"),
    ],
)
def test_a_secret_that_cannot_be_one_is_refused(scheme: SignatureScheme, secret: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        scheme.check_secret(secret)


def test_a_wrong_url_gives_the_operator_a_hint_without_the_query() -> None:
    headers = signing.hubspot_v3(BODY, SECRET, "https://other.example.com/ingress/default/crm", at=NOW)
    seen = IngressRequest("POST", URL + "?token=s3cr3t", Headers(headers), BODY)
    verdict = hubspot().verify(seen, [SECRET], NOW)
    assert not verdict.ok
    assert URL in verdict.hint
    assert "public_url" in verdict.hint
    assert "s3cr3t" not in verdict.hint


def test_v3_alone_counts_where_its_header_is_there() -> None:
    both = signing.hubspot_v2(BODY, SECRET, URL) | signing.hubspot_v3(BODY, SECRET, URL, at=NOW)
    assert hubspot().verify(request(both), [SECRET], NOW).ok
    forged = both | {"X-HubSpot-Signature-v3": "AAAA"}
    assert not hubspot().verify(request(forged), [SECRET], NOW).ok


def test_v3_is_also_made_over_the_decoded_url() -> None:
    encoded = URL + "?to=a%3Ab%2fc"
    headers = signing.hubspot_v3(BODY, SECRET, decoded_url(encoded), at=NOW)
    assert decoded_url(encoded).endswith("?to=a:b/c")
    assert hubspot().verify(IngressRequest("POST", encoded, Headers(headers), BODY), [SECRET], NOW).ok


def test_bytes_that_are_no_text_are_signed_as_they_are() -> None:
    body = b"\xff\x00\xe9"
    assert HEX.verify(request({"X-Signature": "sha256=" + signing.hmac_hex(body, SECRET)}, body), [SECRET], NOW).ok


def test_a_verdict_never_holds_the_secret_or_the_expected_digest() -> None:
    verdict = HEX.verify(request({"X-Signature": "sha256=00"}), [SECRET], NOW)
    assert SECRET not in repr(verdict)
    assert GOOD not in repr(verdict)


def test_v3_alone_refuses_what_can_be_sent_again_and_says_what_to_do() -> None:
    scheme = hubspot_v3()
    assert scheme.verify(request(signing.hubspot_v3(BODY, SECRET, URL, at=NOW)), [SECRET], NOW).ok
    for headers in (signing.hubspot_v2(BODY, SECRET, URL), signing.hubspot_v1(BODY, SECRET), {}):
        verdict = scheme.verify(request(headers), [SECRET], NOW)
        assert not verdict.ok
        assert 'set signature = "hubspot"' in verdict.sentence
