"""Through a real gunicorn: what is promised is stored whole, what is above is refused by our own answer."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from connectors.models import Receipt, UnverifiedDelivery
from tests.support import factories, signing
from tests.support.ingress import Ingress, open_endpoint
from tests.support.web import Reply, Web, chunked, head, serving

pytestmark = pytest.mark.acceptance

LIMIT = 5 * 1024 * 1024
"""The documented default of every pack but github."""
_slugs = itertools.count()


@pytest.fixture(scope="module")
def web(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("web")) as found:
        yield found


@pytest.fixture
def ingress(database: None) -> Ingress:
    """Under a name of its own: the server keeps what it knows of a name for 5 s."""
    return open_endpoint(slug=f"bodies-{next(_slugs)}")


def signed(ingress: Ingress, body: bytes) -> dict[str, str]:
    return signing.generic(body, ingress.secret)


def stored() -> list[str]:
    return [hashlib.sha256(bytes(row.body)).hexdigest() for row in Receipt.objects.order_by("id")]


@pytest.mark.parametrize("size", [0, 1, 3_000_000, LIMIT - 1, LIMIT])
@pytest.mark.parametrize("form", ["length", "chunks"])
def test_up_to_the_limit_it_is_stored_whole(web: Web, ingress: Ingress, size: int, form: str) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    if form == "length":
        reply = web.post(ingress.path, body, signed(ingress, body))
    else:
        reply = web.talk(head(ingress.path, signed(ingress, body) | {"Transfer-Encoding": "chunked"}), chunked(body))
    assert (reply.status, reply.json["duplicate"]) == (202, False)
    assert stored() == [hashlib.sha256(body).hexdigest()]


@pytest.mark.parametrize("excess", [1, 1_000_000])
@pytest.mark.parametrize("form", ["length", "chunks"])
def test_above_the_limit_the_sender_reads_our_413(web: Web, ingress: Ingress, excess: int, form: str) -> None:
    """The sender writes its whole body before it reads: it must find the answer, not a reset connection."""
    body = b"x" * (LIMIT + excess)
    if form == "length":
        reply = web.post(ingress.path, body, signed(ingress, body))
    else:
        reply = web.talk(head(ingress.path, signed(ingress, body) | {"Transfer-Encoding": "chunked"}), chunked(body))
    assert (reply.status, reply.json["code"]) == (413, "too_large")
    assert str(LIMIT) in reply.json["message"]
    assert (Receipt.objects.count(), UnverifiedDelivery.objects.count()) == (0, 0)


def test_a_declared_giant_is_refused_before_a_byte_of_it_is_sent(web: Web, ingress: Ingress) -> None:
    reply = web.talk(head(ingress.path, {"Content-Length": str(10**12)}))
    assert (reply.status, reply.json["code"]) == (413, "too_large")


def test_a_body_that_breaks_off_is_not_stored(web: Web, ingress: Ingress) -> None:
    body = b"x" * 1000
    reply = web.talk(head(ingress.path, signed(ingress, body) | {"Content-Length": "1000"}), body[:999], end=True)
    assert (reply.status, reply.json["code"]) == (400, "body_incomplete")
    broken = web.talk(head(ingress.path, signed(ingress, body) | {"Transfer-Encoding": "chunked"}), b"3e8\r\nxxx", end=True)
    assert broken.status == 400
    assert Receipt.objects.count() == 0


def test_a_length_smaller_than_the_body_cuts_it_and_verifies_nothing(web: Web, ingress: Ingress) -> None:
    body = b"x" * 1000
    reply = web.talk(head(ingress.path, signed(ingress, body) | {"Content-Length": "999"}), body)
    assert reply.status == 401
    assert Receipt.objects.count() == 0


def test_a_compressed_body_is_never_inflated(web: Web, ingress: Ingress) -> None:
    body = gzip.compress(b"\0" * 50_000_000)
    reply = web.post(ingress.path, body, signed(ingress, body) | {"Content-Encoding": "gzip"})
    assert (reply.status, reply.json["code"]) == (415, "unsupported_encoding")
    assert Receipt.objects.count() == 0


def test_a_body_of_githubs_size_passes_framework_server_and_database(web: Web, database: None) -> None:
    ingress = open_endpoint("github", f"bodies-{next(_slugs)}")
    body = b'{"x":"' + b"'" * (6 * 1024 * 1024) + b'"}'
    reply = web.post(ingress.path, body, signing.github(body, ingress.secret, delivery="big"))
    assert reply.status == 202
    assert stored() == [hashlib.sha256(body).hexdigest()]


def test_after_a_refusal_the_connection_still_serves(web: Web, ingress: Ingress) -> None:
    refused = b"x" * 2000
    good = b"{}"
    first = head("/ingress/default/nope", {"Content-Length": str(len(refused))}) + refused
    second = head(ingress.path, signed(ingress, good) | {"Content-Length": "2"}) + good
    assert web.talk(first).status == 404
    assert web.talk(second).status == 202


def test_garbage_in_headers_is_401_or_refused_by_the_server_never_500(web: Web, ingress: Ingress) -> None:
    values = {
        "non-ascii": "sha256=\xe9\xff",
        "empty": "",
        "upper case": signing.hmac_hex(b"{}", ingress.secret).upper(),
    }
    replies = [web.post(ingress.path, b"{}", {"X-Signature": value}) for value in values.values()]
    right = signing.hmac_hex(b"{}", ingress.secret)
    twice = head(ingress.path, {"Content-Length": "2", "X-Signature": right}).replace(
        b"\r\n\r\n", f"\r\nX-Signature: {right}\r\n\r\n".encode()
    )
    replies.append(web.talk(twice, b"{}"))
    assert {(one.status, one.body) for one in replies} == {(401, replies[0].body)}
    assert web.post(ingress.path, b"{}", {"X-Signature": "a" * 1_000_000}).status in (400, 431)
    assert "Traceback" not in web.log.read_text(encoding="utf-8", errors="replace")


def test_the_url_that_was_sent_is_the_url_that_is_verified(web: Web, database: None) -> None:
    """HubSpot signs it: the server must not decode or reorder it."""
    ingress = open_endpoint("hubspot", f"bodies-{next(_slugs)}")
    path = f"{ingress.path}?b=%c3%A9&a=x%2Fy+z"
    body = b"[]"
    assert web.post(path, body, signing.hubspot_v3(body, ingress.secret, factories.PUBLIC_URL + path)).status == 202
    assert web.post(path, body, signing.hubspot_v2(body, ingress.secret, factories.PUBLIC_URL + path)).status == 401
    assert Receipt.objects.first().url == ingress.url
    wrong = signing.hubspot_v3(body, ingress.secret, "http://127.0.0.1" + path)
    assert web.post(path, body, wrong).status == 401


def _post_until_answered(web: Web, ingress: Ingress, body: bytes) -> Reply:
    """As providers do: a reset or an answer that breaks off is tried again."""
    for _ in range(50):
        with contextlib.suppress(OSError, IndexError):
            return web.post(ingress.path, body, signed(ingress, body))
    raise AssertionError("no answer in 50 tries")


def test_a_worker_killed_in_the_middle_loses_and_repeats_nothing(web: Web, database: None) -> None:
    ingress = open_endpoint(slug=f"bodies-{next(_slugs)}", settings={"delivery_id": "n"})
    bodies = [b'{"n":%d}' % number for number in range(60)]
    victim = int(Path(f"/proc/{web.pid}/task/{web.pid}/children").read_text().split()[0])
    with ThreadPoolExecutor(4) as pool:
        replies = [pool.submit(_post_until_answered, web, ingress, body) for body in bodies]
        replies[10].result()
        os.kill(victim, signal.SIGKILL)
        answered = [reply.result() for reply in replies]
    assert {reply.status for reply in answered} <= {200, 202}
    assert Receipt.objects.count() == len({reply.json["receipt"] for reply in answered}) == 60
