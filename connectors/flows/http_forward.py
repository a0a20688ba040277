"""Flow `http_forward`: posts a generation and all of its inputs to the route's connection, signed as Standard Webhooks describes.

At least once, with the WorkId as `webhook-id`: the receiver ignores an id that it has seen. What an answer means:

- 2xx: done. 410: the receiver wants no more of it, dead-lettered at once (Standard Webhooks: 410 ends the endpoint).
- 400, 405, 406, 411, 413, 414, 415, 422, 431 and 451 are its verdict on this very request: dead-lettered at once, so that the lane goes
  on. The same request would be judged the same; replay it once the receiver (or the route) has been fixed.
- No connection, 429 or 503: the receiver is away for everybody. Uses nothing of the budget, and the breaker may park the connection. But a
  503, or a 429 without Retry-After, while others get through is about this item, and uses its budget.
- No answer in time or another 5xx: as well, but this item may be at fault: it uses its budget unless the receiver turns out to be away.
- Retry-After: with 429 and 5xx it parks the connection for that time, at most a day; with 408, 409 and 425 this item alone waits, within
  the cap of the route's retry policy.
- Everything else, 3xx, 401, 403, 404 and 409 included: an ordinary failure, so that the retry policy applies. A 401 or 404 during a
  receiver's deployment heals by itself; the retry budget ends it if it does not.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook

from connectors import http_client
from connectors.flows import connections
from connectors.flows.connections import Destination
from projection.exact_json import NotJson, dump, parse
from projection.facts import ALIVE, Input, Outage, Seen, Source
from projection.flows import DeadLetter, Generation, RetryLater, Unavailable, flow
from projection.limits import destinations
from projection.safe_text import storable

TIMEOUT_SECONDS: Final = 30.0
MARGIN: Final = timedelta(seconds=1)
"""The request ends this long before the flow's time-out, so that the attempt fails with its own reason."""
MOST_BYTES_READ: Final = 64 * 1024
BODY_SECONDS: Final = timedelta(seconds=2)
"""Within which an answer's body is read."""
EXCERPT_CHARACTERS: Final = 300
FINAL: Final = frozenset({400, 405, 406, 410, 411, 413, 414, 415, 422, 431, 451})
"""A verdict on this very request: the same again would be judged the same."""
WAITING: Final = frozenset({408, 409, 425})
"""With a Retry-After: this item waits, nobody else."""


class ForwardFailed(Exception):
    """The receiver did not take the generation; the retry policy decides what follows."""


class ReceiverRefused(ForwardFailed):
    """The receiver answered that it does not take the generation now; the retry policy decides what follows."""


class ReceiverAway(ForwardFailed, Unavailable):
    """The receiver takes nothing now, or not this; `certain` says which is known. Its connection may be parked."""

    def __init__(self, reason: str, outage: Outage) -> None:
        super().__init__(reason, certain=outage.certain, retry_after=outage.retry_after)
        self.answered = outage.answered


class ReceiverJudged(DeadLetter):
    """The receiver does not take this generation, now or later."""


@destinations.reader
def _seen(error: BaseException) -> Seen | None:
    return ALIVE if isinstance(error, ReceiverRefused | ReceiverJudged) else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver said: the status, its Retry-After and the start of its body."""

    status: int
    retry_after: str | None = None
    excerpt: bytes = b""


@flow("http_forward", timeout=TIMEOUT_SECONDS)
def http_forward(generation: Generation) -> None:
    """Post to the connection that the route names. Raises ForwardFailed, RetryLater or DeadLetter."""
    name = generation.route.connection
    if not name:
        raise ForwardFailed(
            f"route {generation.route.key!r} has no connection; add one to the configuration file and apply the file"
        )
    forward(generation, connections.of((generation.namespace, name)))


def forward(generation: Generation, destination: Destination) -> None:
    """Post one generation to one destination and judge the answer (see the module).

    A receiver may quote, in any form, what it was sent: of an answer to a route with masks the status alone is told.
    """
    answer = post(generation, destination)
    judge(replace(answer, excerpt=b"") if generation.route.masks else answer, generation.route.retry.cap, datetime.now(UTC))


def post(generation: Generation, destination: Destination) -> Answer:
    """The answer to the signed request, whatever becomes of its body. Raises ForwardFailed, naming the host, when there is none."""
    try:
        url = http_client.check_url(destination.url)
    except http_client.BadUrl as error:
        raise ForwardFailed(f"connection {destination.name!r}: {error}") from None
    body = envelope(generation)
    headers = {"content-type": "application/json", **signature(generation.work_id, body, destination, datetime.now(UTC))}
    try:
        with (
            http_client.deadline(generation.deadline - MARGIN),
            http_client.client(f"{generation.namespace}/{destination.name}").stream(
                "POST", url, content=body.encode(), headers=headers
            ) as response,
        ):
            return Answer(response.status_code, response.headers.get("retry-after"), _read_start(response))
    except httpx.HTTPError as error:
        said = "" if generation.route.masks else f": {error}"  # it may quote what the receiver sent
        text = f"no answer from {url.host}: {type(error).__name__}{said}"
        outage = destinations.outage_of(error)
        raise (ReceiverAway(text, outage) if isinstance(outage, Outage) else ForwardFailed(text)) from None


def _read_start(response: httpx.Response) -> bytes:
    """The first 64 KiB of the body that come within `BODY_SECONDS`, for the text of an error; the status has decided already.

    A body that breaks off or never ends is read as far as it came, and its connection is not used again.
    """
    read = bytearray()
    with suppress(httpx.HTTPError), http_client.deadline(datetime.now(UTC) + BODY_SECONDS):
        for piece in response.iter_raw():
            read += piece
            if len(read) >= MOST_BYTES_READ:
                break
    return bytes(read[:MOST_BYTES_READ])


def signature(work_id: str, body: str, destination: Destination, now: datetime) -> dict[str, str]:
    """The three Standard Webhooks headers, with one signature for each live secret. Raises ForwardFailed for an unusable secret."""
    if not destination.secrets:
        raise ForwardFailed(f"connection {destination.name!r} has no valid secret, but every request is signed; add one")
    try:
        signed = [Webhook(secret).sign(work_id, now, body) for secret in destination.secrets]
    except (ValueError, EmptyWebhookSecretError):
        raise ForwardFailed(
            f"a secret of connection {destination.name!r} is not base64 (with or without whsec_); set a new one"
        ) from None
    return {"webhook-id": work_id, "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": " ".join(signed)}


def envelope(generation: Generation) -> str:
    """The JSON text that is posted; each payload stands in it exactly as it was received (as a string when it is not JSON)."""
    head = dump(
        {
            "work_id": generation.work_id,
            "replay_of_work_id": generation.replay_of_work_id,
            "namespace": generation.namespace,
            "route": generation.route.key,
            "source": _source(generation.source),
            "attempt": generation.attempt,
        }
    )
    inputs = ",".join(_input_text(each) for each in generation.inputs)
    kind, timestamp = dump(generation.route.event_kind), dump(_iso(generation.selected.created))
    return f'{{"type":{kind},"timestamp":{timestamp},"data":{head[:-1]},"inputs":[{inputs}]}}}}'


def _input_text(each: Input) -> str:
    head = dump(
        {
            "event_id": each.event_id,
            "ordinal": each.ordinal,
            "kind": each.kind,
            "source": _source(each.source),
            "delivery_id": each.delivery_id,
            "provider_time": _iso(each.provider_time) if each.provider_time else None,
        }
    )
    return f'{head[:-1]},"payload":{_exact(each.payload)}}}'


def _source(source: Source) -> dict[str, str]:
    return {"account": source.account, "type": source.type, "id": source.id}


def _exact(payload: str) -> str:
    try:
        parse(payload)
    except NotJson:
        return dump(payload)
    return payload


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def judge(answer: Answer, cap: float | None, now: datetime) -> None:
    """Return for 2xx, else raise what becomes of the generation; `cap` (seconds) bounds the wait of this item alone."""
    if 200 <= answer.status < 300:
        return
    said = f"the receiver answered {answer.status}{_excerpt(answer.excerpt)}"
    if answer.status in FINAL:
        raise ReceiverJudged(f"{said}: the receiver no longer accepts these events" if answer.status == 410 else said)
    delay = http_client.retry_after_seconds(answer.retry_after, now)
    outage = http_client.outage_of_status(answer.status, answer.retry_after, said, now)
    if outage is not None:
        asked = "" if delay is None else f" and asked to wait {delay:g} s"
        raise ReceiverAway(f"{said}{asked}", outage)
    if delay is not None and answer.status in WAITING:
        longest = http_client.LONGEST_DELAY_SECONDS if cap is None else cap
        raise RetryLater(min(delay, longest), f"{said} and asked to wait {delay:g} s")
    if 300 <= answer.status < 400:
        raise ReceiverRefused(f"{said}: redirects are not followed; set the connection's URL to the new address")
    raise ReceiverRefused(said)


def _excerpt(body: bytes) -> str:
    text = body[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace")[:EXCERPT_CHARACTERS].strip()
    return f" ({storable(' '.join(text.split()))})" if text else ""
