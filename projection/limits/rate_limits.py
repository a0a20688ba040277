"""Limits: how many starts a named limit allows now, and how many at once (`concurrency`), for all workers together
(docs/protocol.md#availability).

A limit is one row with the time of its next free slot. A claim takes the next n slots, each a little after the one before, and each
attempt starts at its own: so that no second, wherever it begins, sees more starts than the limit says. (That is a token bucket that
holds one token and refills continuously; the row is counted in exact microseconds, nothing is rounded away.) Slots are taken for
exactly the items that are claimed, in the claim's own transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Final

from projection.database.catalogue import by_id, execute, fetch, insert_rows
from projection.database.transactions import is_server_conflict, run_unit
from projection.facts import RateLimit
from projection.identity import digest
from projection.limits import concurrency

AHEAD: Final = timedelta(seconds=0.5)
"""How far ahead slots are taken, so that a claim has several items at a time. Their attempts wait in the worker, under its lease."""
OPENS: Final = AHEAD / 2
"""A limit counts as exhausted while its next slot is farther away: then a claim would have next to nothing."""
JITTER: Final = timedelta(seconds=0.05)
"""By so much two requests may come closer to each other on their way; each period is stretched by it (by 5 % where it is short)."""
LATE_SECONDS: Final = AHEAD.total_seconds()
"""Later than this, and than its limit's next start, an attempt may not begin any more: others may have the slots of that time (`again`).
By then the slots that were taken with it are over too, so that one who asks alone gets another at once."""
REFUSED_SECONDS: Final = 0.1
"""So long nobody of this process asks a limit again that had no slot for who came late."""
MICROSECOND: Final = timedelta(microseconds=1)

_refused: Final[dict[str, float]] = {}
"""Key of a limit that had no slot → moment of the monotonic clock."""
_declared: Final[dict[str, tuple[int, datetime]]] = {}
"""Key → row of each limit that this process has declared, and the newest statement about it."""


def key_of(namespace: str, name: str) -> str:
    """Identity of a limit. Names belong to a namespace: two tenants of one name do not wait for each other."""
    return digest("rate limit", namespace, name)


@dataclass(frozen=True, slots=True)
class Declared:
    """A limit as a route version states it. Of several statements about one name the newest route version's holds."""

    namespace: str
    limit: RateLimit
    at: datetime
    """Naive: when the route version was published."""

    @property
    def key(self) -> str:
        return key_of(self.namespace, self.limit.name)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A limit's row, locked. `now` is the database's time, `seen` the monotonic clock's at the same moment; times are naive.

    `rate` 0: its starts are not limited. `concurrency` None: nor is how many run at once.
    """

    id: int
    rate: int
    per: timedelta
    next_slot: datetime
    now: datetime
    seen: float
    concurrency: int | None = None

    def slot(self, number: int) -> datetime:
        """The time of a free slot, counted from 0."""
        if not self.rate:
            return self.now
        stretched = self.per + min(JITTER, self.per / 20)
        return max(self.next_slot, self.now) + -(-number * stretched // MICROSECOND // self.rate) * MICROSECOND

    def free(self, most: int) -> int:
        """How many slots may be taken now, at most `most`."""
        return next((number for number in range(most) if self.slot(number) > self.now + AHEAD), most)

    def starts(self, count: int) -> list[float]:
        """Moments of this process's monotonic clock at which the next attempts may start."""
        return [self.seen + (self.slot(number) - self.now).total_seconds() for number in range(count)]


def declare(limits: Iterable[Declared]) -> None:
    """See to it that each limit has a row with the newest rate, and its places.

    Two or three statements for what this process has not declared before.
    """
    newest = {one.key: one for one in sorted(limits, key=lambda one: one.at)}
    news = {key: one for key, one in sorted(newest.items()) if key not in _declared or one.at > _declared[key][1]}
    if not news:
        return
    rows = [
        (
            key,
            one.namespace,
            one.limit.name,
            one.limit.rate,
            round(one.limit.per * 1_000_000),
            one.limit.concurrency,
            one.at,
            one.at,
        )
        for key, one in news.items()
    ]
    places = {key: one.limit.concurrency for key, one in news.items() if one.limit.concurrency is not None}

    def unit() -> None:
        insert_rows("declare_rate_limits", rows)
        concurrency.make(places)

    run_unit("declare", unit, retry_on=is_server_conflict)
    _declared.update({key: (id, news[key].at) for id, key in fetch("read_rate_limit_ids", keys=tuple(news))})


def lock(keys: Iterable[str]) -> dict[str, Bucket]:
    """The rows of declared limits by key, locked by ascending id, before any work item. One statement; joins the caller's transaction."""
    ids = {_declared[key][0]: key for key in keys if key in _declared}
    if not ids:
        return {}
    since = monotonic()
    rows = fetch("lock_rate_limits", ids=tuple(sorted(ids)))
    seen = monotonic()
    waited = timedelta(seconds=seen - since)  # the server reads its clock when the statement begins, before it waits for locks
    return {
        ids[row]: Bucket(row, rate, timedelta(microseconds=per), next_slot, now + waited, seen, concurrency)
        for row, rate, per, concurrency, next_slot, now in rows
    }


def take(taken: Mapping[Bucket, int]) -> None:
    """Move locked limits on by the slots that were taken. One statement; joins the caller's transaction."""
    rows = [(bucket.id, bucket.slot(count)) for bucket, count in taken.items() if count and bucket.rate]
    if rows:
        parts, values = by_id(("NextSlotAt",), rows)
        execute("take_slots", [*values, tuple(row[0] for row in rows)], **parts)


def again(key: str) -> bool:
    """Take a slot for an attempt that could not begin at its own; False: the limit has none at once. A unit of its own."""

    def unit() -> bool:
        bucket = lock([key]).get(key)
        if bucket is None or bucket.slot(0) > bucket.now + JITTER:
            return bucket is None  # its row is gone: nothing limits it
        take({bucket: 1})
        return True

    if monotonic() - _refused.get(key, float("-inf")) < REFUSED_SECONDS:
        return False
    has_one = run_unit("limit", unit, retry_on=is_server_conflict)
    if not has_one:
        _refused[key] = monotonic()
    return has_one


def forget() -> None:
    """What this process remembers about a database (tests, another database)."""
    _declared.clear()
    _refused.clear()
