"""`http_forward` against a real HTTP server: what is posted, how it is signed, and what an answer means."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from connectors import http_client
from connectors.flows.connections import Destination
from connectors.flows.http_forward import (
    BODY_SECONDS,
    MOST_BYTES_READ,
    Answer,
    ForwardFailed,
    ReceiverAway,
    ReceiverJudged,
    envelope,
    forward,
    judge,
)
from connectors.http_client import retry_after_seconds
from projection.exact_json import parse
from projection.facts import ALIVE, Outage, RetryPolicy
from projection.flows import DeadLetter, Generation, RetryLater
from projection.limits.destinations import outage_of
from projection.testing import make_generation, make_input, make_route
from tests.support.receiver import Receiver, Reply, receiving

SECRET = "whsec_" + base64.b64encode(b"the first secret of the suite!!!").decode()
NEW_SECRET = "whsec_" + base64.b64encode(b"the second secret of the suite!!").decode()
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _loopback_is_allowed(settings: Any) -> Iterator[None]:
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    http_client.close_clients()
    yield
    http_client.close_clients()


def destination(receiver: Receiver, *secrets: str, **url: str) -> Destination:
    return Destination("crm", receiver.url(**url), secrets or (SECRET,))


def generation(**options: Any) -> Generation:
    first = make_input('{ "id": 7615917337495251231, "amount": 10.10, "big": 1E2 }', ordinal=3, source=("contact", "42"))
    second = make_input("<not>json</not>", ordinal=5, kind="contact.deletion", source=("contact", "42"), provider_time=NOW)
    return make_generation(first, second, source=("contact", "42"), route=make_route(event_kind="contact.changed"), **options)


def test_the_receiver_verifies_it_with_the_standard_webhooks_library(receiver: Receiver) -> None:
    sent = generation(attempt=2)
    forward(sent, destination(receiver))
    arrived = receiver.requests.get(timeout=5)
    Webhook(SECRET).verify(arrived.body, dict(arrived.headers))
    assert arrived.headers["webhook-id"] == sent.work_id
    assert arrived.headers["content-type"] == "application/json"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(arrived.body + b" ", dict(arrived.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW_SECRET).verify(arrived.body, dict(arrived.headers))


def test_during_a_rotation_either_secret_verifies(receiver: Receiver) -> None:
    forward(generation(), destination(receiver, NEW_SECRET, SECRET))
    arrived = receiver.requests.get(timeout=5)
    for secret in (SECRET, NEW_SECRET):
        Webhook(secret).verify(arrived.body, dict(arrived.headers))


def test_every_input_is_there_in_order_with_its_exact_payload(receiver: Receiver) -> None:
    sent = generation(attempt=2)
    forward(sent, destination(receiver))
    body = receiver.requests.get(timeout=5).body.decode()
    assert '"payload":{ "id": 7615917337495251231, "amount": 10.10, "big": 1E2 }' in body
    told = parse(body)
    assert told["type"] == "contact.changed"
    data = told["data"]
    assert (data["work_id"], data["namespace"], data["route"], data["attempt"]) == (sent.work_id, "test", "main", 2)
    assert data["source"] == {"account": "", "type": "contact", "id": "42"}
    assert {each["source"]["id"] for each in data["inputs"]} == {"42"}
    assert [(each["ordinal"], each["kind"]) for each in data["inputs"]] == [(3, "record.propertyChange"), (5, "contact.deletion")]
    assert data["inputs"][1]["payload"] == "<not>json</not>"
    assert data["inputs"][1]["provider_time"] == "2026-11-29T12:00:00.000000Z"


@pytest.mark.parametrize("payload", ['{"a":NaN}', "Infinity", "", '{"a":1} trailing', '"\\ud800"', "1e400"])
def test_what_is_posted_is_always_json(payload: str) -> None:
    def refuse(token: str) -> None:
        raise AssertionError(token)

    json.loads(envelope(make_generation(payload)).encode(), parse_constant=refuse)


def test_the_id_stays_the_same_over_attempts(receiver: Receiver) -> None:
    for attempt in (1, 2):
        forward(generation(attempt=attempt), destination(receiver))
    assert len({receiver.requests.get(timeout=5).headers["webhook-id"] for _ in range(2)}) == 1


def test_connections_are_reused_and_cookies_are_not(receiver: Receiver) -> None:
    receiver.reply = Reply(headers={"set-cookie": "session=1; Path=/"})
    for _ in range(3):
        forward(generation(), destination(receiver))
    assert receiver.connections == 1
    assert all("cookie" not in receiver.requests.get(timeout=5).headers for _ in range(3))


def test_threads_may_post_side_by_side(receiver: Receiver) -> None:
    threads = [threading.Thread(target=forward, args=(generation(), destination(receiver))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert receiver.requests.qsize() == 8


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    with receiving() as elsewhere:
        receiver.reply = Reply(307, {"location": elsewhere.url()})
        with pytest.raises(ForwardFailed, match=r"answered 307.*redirects are not followed"):
            forward(generation(), destination(receiver))
        assert elsewhere.requests.empty()


def never_ending(out: Any) -> None:
    while True:
        out.write(b"still here. ")
        out.flush()
        time.sleep(0.05)


BROKEN_BODIES = {
    "breaks off": Reply(headers={"content-length": "100"}, stream=lambda out: out.write(b"half")),
    "is not what its headers say": Reply(headers={"transfer-encoding": "chunked"}, stream=lambda out: out.write(b"zz\r\n")),
    "never comes": Reply(headers={"content-length": "100"}, stream=lambda out: time.sleep(4)),
    "never ends": Reply(headers={"content-length": "1000000000"}, stream=never_ending),
}


@pytest.mark.parametrize("name", BROKEN_BODIES)
def test_the_status_decides_whatever_becomes_of_the_body(receiver: Receiver, name: str) -> None:
    """A 2xx whose body broke was posted again, and again, and dead-lettered as not answered."""
    receiver.reply = BROKEN_BODIES[name]
    started = time.monotonic()
    forward(generation(), destination(receiver))
    receiver.reply = replace(BROKEN_BODIES[name], status=422)
    with pytest.raises(ReceiverJudged, match="the receiver answered 422"):
        forward(generation(), destination(receiver))
    assert time.monotonic() - started < 4 * BODY_SECONDS.total_seconds()
    assert receiver.requests.qsize() == 2


def test_a_silent_receiver_ends_at_the_deadline(receiver: Receiver) -> None:
    receiver.reply = Reply(wait=lambda: time.sleep(4))
    with pytest.raises(ForwardFailed, match=r"no answer from 127\.0\.0\.1: ReadTimeout"):
        forward(generation(timeout=2.3), destination(receiver))


def test_a_generation_without_time_left_is_not_sent(receiver: Receiver) -> None:
    with pytest.raises(ForwardFailed, match="the request timed out"):
        forward(generation(timeout=0.5), destination(receiver))
    assert receiver.requests.empty()


def test_a_huge_answer_is_read_to_the_limit_only(receiver: Receiver) -> None:
    written = 0
    done = threading.Event()

    def flood(out: Any) -> None:
        nonlocal written
        try:
            for _ in range(4096):
                out.write(b"x" * 65536)
                written += 65536
        finally:
            done.set()

    receiver.reply = Reply(500, {"content-length": str(4096 * 65536)}, stream=flood)
    with pytest.raises(ForwardFailed) as failed:
        forward(generation(), destination(receiver))
    assert done.wait(10)
    assert written < 4096 * 65536 // 4
    assert MOST_BYTES_READ == 65536
    assert len(str(failed.value)) < 400


def test_an_answer_that_is_compressed_into_a_bomb_is_not_unpacked(receiver: Receiver) -> None:
    receiver.reply = Reply(headers={"content-encoding": "gzip"}, body=b"not gzip at all")
    forward(generation(), destination(receiver))
    assert receiver.requests.get(timeout=5).headers["accept-encoding"] == "identity"


def test_the_error_shows_an_escaped_excerpt_and_no_secret(receiver: Receiver) -> None:
    receiver.reply = Reply(404, body=b"\x1b[2J\xff line\n" + b"y" * 1000)
    with pytest.raises(ForwardFailed) as failed:
        forward(generation(), Destination("crm", receiver.url("/hook?token=sesame"), (SECRET,)))
    text = str(failed.value)
    assert text.isprintable()
    assert "answered 404" in text
    assert "y" * 301 not in text
    assert "sesame" not in text
    assert SECRET not in text


@pytest.mark.parametrize("secret", ["whsec_", "é!", "whsec_***", "a"])
def test_a_secret_that_cannot_sign_is_named_by_its_connection_only(receiver: Receiver, secret: str) -> None:
    with pytest.raises(ForwardFailed, match="secret of connection 'crm'") as failed:
        forward(generation(), destination(receiver, secret))
    assert failed.value.__suppress_context__
    assert receiver.requests.empty()


def test_nothing_is_posted_unsigned(receiver: Receiver) -> None:
    with pytest.raises(ForwardFailed, match="no valid secret"):
        forward(generation(), Destination("crm", receiver.url(), ()))
    assert receiver.requests.empty()


def test_a_receiver_that_is_not_there_is_an_ordinary_failure(receiver: Receiver) -> None:
    gone = destination(receiver)
    receiver.server.server_close()
    with pytest.raises(ForwardFailed, match=r"no answer from 127\.0\.0\.1: ConnectError"):
        forward(generation(), gone)


def judged(status: int, retry_after: str | None = None, cap: float | None = 3600.0) -> BaseException | None:
    try:
        judge(Answer(status, retry_after), cap, NOW)
    except (DeadLetter, RetryLater, ForwardFailed) as outcome:
        return outcome
    return None


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_done(status: int) -> None:
    assert judged(status, "60") is None


def test_410_is_dead_at_once() -> None:
    assert isinstance(judged(410, "60"), DeadLetter)


@pytest.mark.parametrize("status", [400, 405, 406, 411, 413, 414, 415, 422, 431, 451])
def test_a_verdict_on_this_very_request_is_dead_at_once(status: int) -> None:
    outcome = judged(status, "7")
    assert isinstance(outcome, DeadLetter)
    assert outage_of(outcome) is ALIVE


@pytest.mark.parametrize("status", [401, 403, 404, 407, 408, 409, 421, 423, 424, 425, 426, 428, 301, 302, 308])
def test_what_may_heal_is_left_to_the_retry_policy(status: int) -> None:
    outcome = judged(status)
    assert isinstance(outcome, ForwardFailed)
    assert outage_of(outcome) is ALIVE


@pytest.mark.parametrize(
    ("status", "certain"), [(429, True), (503, True), (500, False), (501, False), (502, False), (504, False), (599, False)]
)
def test_an_outage_says_whether_the_item_may_be_at_fault(status: int, certain: bool) -> None:
    outcome = judged(status)
    assert isinstance(outcome, ForwardFailed)
    assert outage_of(outcome) == Outage(f"ReceiverAway: the receiver answered {status}", certain, None)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_retry_after_of_an_outage_is_for_everybody(status: int) -> None:
    found = outage_of(judged(status, "7") or AssertionError())
    assert isinstance(found, Outage)
    assert found.retry_after == 7.0
    assert "asked to wait 7 s" in found.reason


@pytest.mark.parametrize("status", [408, 409, 425])
def test_retry_after_of_a_refusal_is_for_this_item(status: int) -> None:
    outcome = judged(status, "7")
    assert isinstance(outcome, RetryLater)
    assert (outcome.delay, outcome.count_attempt) == (7.0, True)


@pytest.mark.parametrize("status", [404, 301])
def test_retry_after_means_nothing_elsewhere(status: int) -> None:
    assert isinstance(judged(status, "7"), ForwardFailed)


def test_no_retry_after_is_longer_than_a_day_or_than_the_cap() -> None:
    for cap, delay in ((60.0, 60.0), (None, 86_400.0)):
        outcome = judged(409, "999999999", cap)
        assert isinstance(outcome, RetryLater)
        assert outcome.delay == delay
    parked = outage_of(judged(503, "999999999") or AssertionError())
    assert isinstance(parked, Outage)
    assert parked.retry_after == 86_400.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        ("1.5", 1.5),
        (" 0 ", 0.0),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
        ("Sun, 29 Nov 2026 12:01:00 -0000", 60.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1e9", None),
        ("nan", None),
        ("٣", None),
        ("9" * 40, 86_400.0),
        ("9" * 5_000 + ".5", 86_400.0),
        ("Sun, 99 Nov 2026 12:00:00 GMT", None),
    ],
)
def test_the_forms_of_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds


def test_the_cap_is_that_of_the_generations_own_route(receiver: Receiver) -> None:
    receiver.reply = Reply(409, {"retry-after": "500"})
    with pytest.raises(RetryLater) as later:
        forward(make_generation(route=make_route(retry=RetryPolicy(cap=30.0))), destination(receiver))
    assert later.value.delay == 30.0


def test_no_connection_is_an_outage_for_certain_and_no_answer_may_be_the_items_fault(receiver: Receiver) -> None:
    with pytest.raises(ReceiverAway) as refused:
        forward(generation(), Destination("crm", "http://127.0.0.1:1/", (SECRET,)))
    assert refused.value.certain
    receiver.reply = Reply(wait=lambda: time.sleep(3))
    with pytest.raises(ReceiverAway) as silent:
        forward(generation(timeout=1.2), destination(receiver))
    assert not silent.value.certain


def test_our_own_refusal_to_connect_is_no_outage(receiver: Receiver, settings: Any) -> None:
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = []
    http_client.close_clients()
    with pytest.raises(ForwardFailed) as refused:
        forward(generation(), destination(receiver))
    assert not isinstance(refused.value, ReceiverAway)


def test_outages_are_read_in_any_flow_that_uses_the_client(receiver: Receiver) -> None:
    for reply, expected in ((Reply(404), ALIVE), (Reply(429, {"retry-after": "3"}), 3.0)):
        receiver.reply = reply
        with pytest.raises(httpx.HTTPStatusError) as failed:
            http_client.client("api").get(receiver.url()).raise_for_status()
        seen = outage_of(failed.value)
        assert (seen.retry_after if isinstance(seen, Outage) else seen) == expected
    with pytest.raises(httpx.ConnectError) as refused:
        http_client.client("api").get("http://127.0.0.1:1/")
    found = outage_of(refused.value)
    assert isinstance(found, Outage)
    assert found.certain
