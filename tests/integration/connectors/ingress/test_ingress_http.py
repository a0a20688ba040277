"""The ingress over HTTP: codes, sentences and headers of its answers, and what does not apply to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError
from django.test import Client

from connectors import models, pack, secrets
from connectors.delivery import Answer, Outcome
from connectors.ingress import endpoint_facts, metrics
from connectors.models import Receipt
from connectors.pack import Inbound, IngressRequest, Item, Pack, hmac_sha256, json_items
from tests.support import factories, signing
from tests.support.ingress import Ingress, answer, open_endpoint

pytestmark = pytest.mark.usefixtures("database")

BODY = b'{"id":"evt_1","v":1}'
BY_ID = {"delivery_id": "id"}


def test_stored_and_duplicate() -> None:
    ingress = open_endpoint(settings=BY_ID)
    first, again = ingress.post(BODY), ingress.post(BODY)
    receipt = str(Receipt.objects.get().id)
    assert (first.status_code, answer(first)) == (202, {"receipt": receipt, "duplicate": False})
    assert (again.status_code, answer(again)) == (200, {"receipt": receipt, "duplicate": True})


def test_a_conflict_names_the_receipt_that_stands() -> None:
    ingress = open_endpoint(settings=BY_ID)
    first = answer(ingress.post(BODY))["receipt"]
    other = ingress.post(b'{"id":"evt_1","v":2}')
    assert (other.status_code, answer(other)["code"], answer(other)["receipt"]) == (409, "conflict", first)


def test_every_401_has_the_same_text() -> None:
    """The caller learns nothing about what was wrong."""
    ingress = open_endpoint()
    good = signing.hmac_hex(BODY, ingress.secret)
    values = ["", "00", "\xe9" + good, good.upper(), good[:-1], f"{good},{good}", "a" * 8000]
    answers = [ingress.post(BODY, {"X-Signature": value}) for value in values] + [ingress.post(BODY, {})]
    assert {(one.status_code, one.content, tuple(sorted(one.headers.items()))) for one in answers} == {
        (answers[0].status_code, answers[0].content, tuple(sorted(answers[0].headers.items())))
    }
    assert (answers[0].status_code, answer(answers[0])["code"]) == (401, "unverified")
    assert good not in answers[0].content.decode()
    assert Receipt.objects.count() == 0


def test_a_401_logs_no_secret_and_no_expected_digest(capfd: pytest.CaptureFixture[str]) -> None:
    ingress = open_endpoint()
    ingress.post(BODY, {"X-Signature": "0123456789abcdef", "Authorization": "Bearer s3cr3t"}, path=f"{ingress.path}?token=t0ken")
    logged = "".join(capfd.readouterr())
    assert "unverified" in logged
    for marker in (ingress.secret, signing.hmac_hex(BODY, ingress.secret), "0123456789abcdef", "s3cr3t", "t0ken", "Traceback"):
        assert marker not in logged


@pytest.mark.parametrize(
    "path",
    ["/ingress/default/nope", "/ingress/nope/main", "/ingress/", "/ingress/default", "/ingress/default/main/", "/ingress/a/b/c"],
)
def test_an_unknown_endpoint_is_404(path: str) -> None:
    response = open_endpoint().post(BODY, path=path)
    assert (response.status_code, answer(response)["code"]) == (404, "not_found")


@pytest.mark.parametrize("name", ["MAIN", "main "])
def test_a_slug_that_only_a_collation_equates_is_404(name: str) -> None:
    assert open_endpoint().post(BODY, path=f"/ingress/default/{name}").status_code == 404


@pytest.mark.parametrize("method", ["get", "put", "delete", "head", "options", "patch"])
def test_other_methods_are_405(method: str) -> None:
    response = getattr(Client(), method)(open_endpoint().path)
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(("discard", "status", "code"), [(False, 503, "disabled"), (True, 410, "gone")])
@pytest.mark.parametrize("what", ["pack", "endpoint"])
def test_disabled_is_503_or_410_on_the_operators_wish(what: str, discard: bool, status: int, code: str) -> None:
    ingress = open_endpoint()
    row = ingress.pack if what == "pack" else ingress.endpoint
    type(row).objects.filter(id=row.id).update(state="disabled", discard_when_disabled=discard)
    response = ingress.post(BODY)
    assert (response.status_code, answer(response)["code"]) == (status, code)
    assert ("Retry-After" in response.headers) is (status == 503)
    assert Receipt.objects.count() == 0


def test_a_removed_endpoint_is_404() -> None:
    ingress = open_endpoint()
    models.Endpoint.objects.update(state="removed")
    assert ingress.post(BODY).status_code == 404


def test_a_pack_that_is_not_part_of_this_process_is_503() -> None:
    ingress = open_endpoint("a-pack-of-nobody")
    assert (ingress.post(BODY).status_code, answer(ingress.post(BODY))["code"]) == (503, "endpoint_unavailable")


def test_secrets_that_no_key_opens_are_503() -> None:
    ingress = open_endpoint()
    models.Endpoint.objects.update(secrets="gAAAA-not-of-this-key")
    assert (ingress.post(BODY).status_code, answer(ingress.post(BODY))["code"]) == (503, "endpoint_unavailable")


@pytest.mark.parametrize(
    "where", ["connectors.ingress.endpoint_facts._bounded.fetch", "connectors.managers.ReceiptManager.insert_receipt"]
)
def test_a_database_failure_is_503_with_retry_after(where: str) -> None:
    ingress = open_endpoint()
    with mock.patch(where, side_effect=OperationalError(2006, "Server has gone away")):
        response = ingress.post(BODY)
    assert (response.status_code, answer(response)["code"]) == (503, "database_unavailable")
    assert int(response.headers["Retry-After"]) > 0
    assert ingress.post(BODY).status_code == 202


def test_a_fault_of_ours_is_503_in_json() -> None:
    ingress = open_endpoint()
    with mock.patch("connectors.ingress.view.receive", side_effect=RuntimeError("a bug")):
        response = ingress.post(BODY)
    assert (response.status_code, answer(response)["code"]) == (503, "internal_error")


def test_hosts_sessions_and_csrf_do_not_apply() -> None:
    ingress = open_endpoint()
    response = ingress.post(BODY, HTTP_HOST="hooks.of.nobody.example", HTTP_ORIGIN="https://evil.example")
    assert response.status_code == 202
    assert response.cookies == {}
    assert ingress.post(BODY, HTTP_HOST="bad host!").status_code == 202
    assert Client().get("/admin/login/", HTTP_HOST="hooks.of.nobody.example").status_code == 400


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"payload=%7B%22a%22%3A+1%7D", "application/x-www-form-urlencoded"),
        (b'{ "a" : 1.10,\t"b":"\\u00e9" }\n', "application/json"),
        (b"", "application/json"),
        (b"--x\r\nnot really multipart", "multipart/form-data; boundary=x"),
        (b"\xff\x00", "application/octet-stream"),
    ],
)
def test_the_raw_bytes_are_what_is_verified_and_stored(body: bytes, content_type: str) -> None:
    ingress = open_endpoint()
    assert ingress.post(body, content_type=content_type).status_code == 202
    assert bytes(Receipt.objects.get().body) == body
    flipped = bytes([body[0] ^ 1]) + body[1:] if body else b"x"
    assert ingress.post(flipped, signing.generic(body, ingress.secret), content_type=content_type).status_code == 401
    assert Receipt.objects.count() == 1


def test_the_limit_is_the_setting_else_the_endpoints_else_the_packs(settings: pytest.FixtureRequest) -> None:
    ingress = open_endpoint(limits={"max_body_bytes": 20})
    assert ingress.post(b"x" * 20).status_code == 202
    refused = ingress.post(b"x" * 21)
    assert (refused.status_code, answer(refused)["code"]) == (413, "too_large")
    assert "20 bytes" in answer(refused)["message"]
    settings.HEADRACE_MAX_BODY_BYTES = 30
    assert ingress.post(b"x" * 30).status_code == 202
    assert ingress.post(b"x" * 31).status_code == 413
    assert Receipt.objects.count() == 2


@pytest.mark.parametrize(("signature", "older"), [("", 401), ("hubspot_v3", 401), ("hubspot", 202), ("gone", 503)])
def test_older_signatures_of_hubspot_count_only_where_the_endpoint_says_so(signature: str, older: int) -> None:
    ingress = open_endpoint("hubspot", "crm", signature=signature)
    body = b"[]"
    for headers in (signing.hubspot_v2(body, ingress.secret, ingress.url), signing.hubspot_v1(body, ingress.secret)):
        assert ingress.post(body, headers).status_code == older
    assert ingress.post(body, signing.hubspot_v3(body, ingress.secret, ingress.url)).status_code == (503 if older == 503 else 202)


def test_hubspot_signs_the_public_url_with_its_query() -> None:
    ingress = open_endpoint("hubspot", "crm")
    body = b"[]"
    path = ingress.path + "?a=1%3A2&b=%C3%A9"
    headers = signing.hubspot_v3(body, ingress.secret, factories.PUBLIC_URL + path)
    assert ingress.post(body, headers, path=path, HTTP_HOST="10.0.0.7:8000").status_code == 202
    assert ingress.post(body, signing.hubspot_v3(body, ingress.secret, "http://10.0.0.7:8000" + path), path=path).status_code == 401
    assert "public_url" in models.UnverifiedDelivery.objects.get().reason


def test_a_providers_retry_with_a_fresh_signature_is_one_event() -> None:
    """The attempt's time stamp is no part of the identity."""
    ingress = open_endpoint("standard_webhooks", secret=signing.STANDARD_SECRET)
    posts = [
        ingress.post(BODY, signing.standard_webhooks(BODY, at=None if late is None else late))
        for late in (None, _now() - 200, _now() + 200)
    ]
    assert [one.status_code for one in posts] == [202, 200, 200]
    assert ingress.post(BODY, signing.standard_webhooks(BODY, at=_now() - 400)).status_code == 401


def _now() -> float:
    import time

    return time.time()


class Answering(Pack):
    name, version, signature = "answering", "1", hmac_sha256(header="X-Signature")

    def split(self, body: bytes) -> Sequence[Item]:
        return json_items(body)

    def read(self, item: Item) -> Inbound:
        return Inbound("x", ("x", "1"))

    def handshake(self, request: IngressRequest) -> Answer | None:
        if request.method == "GET":
            return Answer(200, b"challenge", "text/plain")
        if request.body == b"boom":
            raise RuntimeError("a bug of the pack")
        return None

    def acknowledge(self, outcome: Outcome) -> Answer | None:
        return Answer(200, f"<Ack>{outcome.receipt_id}</Ack>".encode(), "text/xml", {"X-Own": "1"})


@pytest.fixture
def answering() -> Iterator[Ingress]:
    pack.register(Answering)
    yield open_endpoint("answering")
    pack.forget("answering")


def test_a_pack_answers_challenges_and_acknowledges_in_its_own_form(answering: Ingress) -> None:
    challenge = Client().get(answering.path)
    assert (challenge.status_code, challenge.content, challenge.headers["Content-Type"]) == (200, b"challenge", "text/plain")
    assert challenge.headers["X-Content-Type-Options"] == "nosniff"
    stored = answering.post(BODY)
    assert (stored.status_code, stored.content, stored.headers["X-Own"]) == (
        200,
        f"<Ack>{Receipt.objects.get().id}</Ack>".encode(),
        "1",
    )


def test_a_pack_cannot_acknowledge_what_was_not_stored(answering: Ingress) -> None:
    assert answering.post(BODY, {"X-Signature": "00"}).status_code == 401
    with mock.patch("connectors.managers.ReceiptManager.insert_receipt", side_effect=OperationalError(2006, "gone away")):
        assert answering.post(BODY).status_code == 503


def test_a_pack_whose_answer_fails_still_takes_the_delivery(answering: Ingress) -> None:
    assert answering.post(b"boom").status_code == 200
    assert Receipt.objects.count() == 1


def test_answers_are_counted_by_code_and_pack() -> None:
    def counted() -> list[float]:
        counters = (metrics.RECEIVED, metrics.DUPLICATES, metrics.CONFLICTS, metrics.UNVERIFIED)
        values = [counter.labels("generic")._value.get() for counter in counters]
        return [*values, metrics.REFUSED.labels("not_found")._value.get()]

    ingress = open_endpoint(settings=BY_ID)
    before = counted()
    for body in (BODY, BODY, b'{"id":"evt_1"}'):
        ingress.post(body)
    ingress.post(BODY, {})
    ingress.post(BODY, path="/ingress/default/nope")
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [1, 1, 1, 1, 1]


def test_what_the_ingress_knows_is_at_most_five_seconds_old() -> None:
    clock = [0.0]
    cache = type(endpoint_facts.find)(endpoint_facts.load, clock=lambda: clock[0], largest=1)
    ingress = open_endpoint()
    assert cache(("default", "main")) is not None
    models.Endpoint.objects.update(state="removed")
    clock[0] = 4.9
    assert cache(("default", "main")) is not None
    clock[0] = 5.0
    assert cache(("default", "main")) is None
    models.Endpoint.objects.update(state="enabled")
    clock[0] = 9.0
    assert cache(("default", "main")) is None
    assert cache(("default", "another")) is None
    assert cache(("default", "main")) is not None, "the other name took its place"
    assert ingress.secret not in repr(cache(("default", "main")))


def test_an_old_secret_is_refused_from_its_stated_end_on_though_the_endpoint_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_endpoint()
    ends = datetime.now(UTC) + timedelta(hours=1)
    entries = [{"secret": "the next secret", "expires_at": None}, {"secret": ingress.secret, "expires_at": ends.isoformat()}]
    models.Endpoint.objects.update(secrets=secrets.encrypt(entries))
    assert ingress.post(BODY).status_code == 202

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return ends.astimezone(tz)

    monkeypatch.setattr(endpoint_facts, "datetime", Later)
    monkeypatch.setattr(endpoint_facts, "load", pytest.fail)
    assert ingress.post(b'{"id": 2}').status_code == 401
