"""Frozen facts that pass between the steps.

Steps hand each other these values, never model instances or dicts, so that what a step decides is a function of what it was given.
Times are aware UTC datetimes with microseconds; durations are `timedelta`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal, Self

from projection.exact_json import parse

PER_EVENT: Final = "per_event"
PROJECTION: Final = "latest_by_source_full_record_preserve_payload_settled"
"""Invocation mode of a route that coalesces; the console calls it "projection" (docs/protocol.md#decision)."""

InvocationMode = Literal["per_event", "latest_by_source_full_record_preserve_payload_settled"]

Order = Literal["source", "route"]
BY_ROUTE: Final = "route"
"""`order` of a projection route whose work of a record waits for no other route's."""

LANE_SEPARATOR: Final = ":"
MOST_LANE_PARTS: Final = 8

BUILT_IN_COMPANION: Final = "headrace"
"""Companion pack of the flows that ship with Headrace: `record_table`, `http_forward`, `log`."""


@dataclass(frozen=True, slots=True)
class SourceLane:
    """The order domain of a source record: whose it is, and its parts; no parts = no lane.

    Its identity is hashed over the parts. `text` is for people: ("acct:1", "42") and ("acct", "1:42") read alike and are two lanes.
    """

    account: str = ""
    parts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return LANE_SEPARATOR.join(self.parts)

    @property
    def cuts(self) -> str:
        """Lengths of the parts, so that `of` finds them in the text again; empty for one part or none."""
        return ",".join(str(len(part)) for part in self.parts) if len(self.parts) > 1 else ""

    @classmethod
    def of(cls, account: str, text: str, cuts: str = "") -> Self:
        """The lane that was stored as `text` and `cuts`."""
        if not cuts:
            return cls(account, (text,) if text else ())
        parts, at = [], 0
        for length in map(int, cuts.split(",")):
            parts.append(text[at : at + length])
            at += length + len(LANE_SEPARATOR)
        return cls(account, tuple(parts))

    def folded(self) -> Self:
        """With the case of its parts ignored."""
        return replace(self, parts=tuple(part.casefold() for part in self.parts))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a failed attempt runs again (docs/protocol.md#retry): delay = min(cap, base × factor^(attempt−1)), jitter inside the
    cap, floor 1 s.

    `base`, `cap` and `give_up_after` are seconds; `cap` None means "no cap of our own" and `give_up_after` None "no limit by age".
    """

    base: float = 5.0
    factor: float = 3.0
    cap: float | None = 3600.0
    attempts: int = 12
    give_up_after: float | None = None


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A limit in the database, shared by all workers and by all routes that give it this `name`.

    `rate` starts per `per` seconds (0: as many as there are), and at most `concurrency` that run at once (None: any number).
    """

    name: str
    rate: int = 0
    per: float = 0.0
    concurrency: int | None = None

    def members(self) -> dict[str, Any]:
        """As it is written: a limit of starts alone as ever, so that older processes read it."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Self:
        """Of what `members` wrote; those of a newer writer are ignored. Raises TypeError for anything else."""
        return cls(**_known(cls, members))


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """One published, immutable route version.

    `id` is the row of this very version; its text form (`snapshot`) is kept on each event that the route took, so that later
    work never depends on whether the route is still current (docs/protocol.md#stored-events).
    """

    id: int
    namespace: str
    pack_id: int
    pack_name: str
    key: str
    version: int
    provider_kinds: tuple[str, ...]
    event_kind: str
    mode: InvocationMode
    companion_pack: str
    companion_flow: str
    work_type: str
    settle_seconds: float = 0.0
    source_id_case: Literal["exact", "fold"] = "exact"
    target_lane: str = ""
    """Template of the target mutation lane, e.g. `invoice:{id}`; empty = none."""
    queue_class: str = "default"
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limit: RateLimit | None = None
    masks: tuple[str, ...] = ()
    connection: str = ""
    """Name of the connection that `http_forward` posts to; empty for other flows."""
    order: Order = "source"
    """What its work waits for: `source`, all work of its companion on the record; `route`, its own alone (projections)."""

    @property
    def own_route(self) -> str:
        """The key of a route that has lanes of its own; empty: it shares those of its companion."""
        return self.key if self.order == BY_ROUTE else ""

    @property
    def is_projection(self) -> bool:
        return self.mode == PROJECTION

    @property
    def settle(self) -> timedelta:
        return timedelta(seconds=self.settle_seconds)

    @property
    def flow_name(self) -> str:
        """Name under which the flow is registered: `crm.contact`, or the bare name of a built-in one."""
        return flow_name(self.companion_pack, self.companion_flow)

    def snapshot(self) -> str:
        """Canonical JSON text of this version: equal routes give equal bytes."""
        members = asdict(self) | ({"limit": self.limit.members()} if self.limit else {})
        return json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_snapshot(cls, text: str) -> Self:
        """The facts a snapshot was made of; unknown members of a newer writer are ignored.

        Raises ValueError when the text is no route snapshot (missing member, not JSON).
        """
        try:
            members: dict[str, Any] = json.loads(text)
            retry = RetryPolicy(**_known(RetryPolicy, members.pop("retry", None) or {}))
            limit_members = members.pop("limit", None)
            limit = RateLimit.of(limit_members) if limit_members else None
            members["provider_kinds"] = tuple(members.get("provider_kinds", ()))
            members["masks"] = tuple(members.get("masks", ()))
            return cls(**_known(cls, members), retry=retry, limit=limit)
        except (TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"not a route snapshot: {error}") from error


def _known(cls: type, members: Mapping[str, Any]) -> dict[str, Any]:
    names = cls.__dataclass_fields__  # type: ignore[attr-defined]  # every caller passes a dataclass
    return {name: value for name, value in members.items() if name in names}


def flow_name(companion_pack: str, companion_flow: str) -> str:
    """`crm` + `contact` → `crm.contact`; the built-in companion has bare names."""
    return companion_flow if companion_pack == BUILT_IN_COMPANION else f"{companion_pack}.{companion_flow}"


def companion_of(name: str) -> tuple[str, str]:
    """(companion pack, companion flow) of a registered flow name: `crm.contact` → (`crm`, `contact`), `log` → (`headrace`, `log`)."""
    pack, dot, flow = name.partition(".")
    return (pack, flow) if dot else (BUILT_IN_COMPANION, pack)


@dataclass(frozen=True, slots=True)
class InboundEvent:
    """One accepted item of a receipt for one route (or for none), before admission.

    `delivery_key` is its identity (docs/protocol.md#identity); `sibling_keys` are the keys under which the same delivery may
    already be known for other routes of its pack (looked up only for unrouted items, so that retiring a route repeats nothing).
    """

    receipt_id: int
    item: int
    namespace: str
    pack_id: int
    pack_name: str
    pack_incarnation: str
    route: RouteFacts | None
    provider_kind: str
    source_type: str
    source_id: str
    source_lane: str
    """Empty when the item names no source lane (docs/protocol.md#missing-lane)."""
    target_lane: str
    delivery_id: str
    delivery_key: str
    provider_time: datetime | None
    payload: str
    payload_sha256: str
    sibling_keys: tuple[str, ...] = ()
    routed_from: int | None = None
    """Id of the unrouted fact that this is the routed copy of."""
    account: str = ""
    """Whose record it is at the provider; empty where the provider's ids are unique by themselves."""
    lane_cuts: str = ""
    """Where the parts of `source_lane` end (`SourceLane.cuts`)."""

    @property
    def lane(self) -> SourceLane:
        return SourceLane.of(self.account, self.source_lane, self.lane_cuts)

    @property
    def event_kind(self) -> str:
        return self.route.event_kind if self.route else self.provider_kind

    @property
    def is_projected(self) -> bool:
        """Coalesces: a projection route and a source lane (without a lane it falls back to per-event)."""
        return self.route is not None and self.route.is_projection and self.source_lane != ""


@dataclass(frozen=True, slots=True)
class Source:
    """The source record: `type` and `id` as the pack read them (folded if the route says so), and whose it is.

    `account` is empty where the provider's ids are unique by themselves.
    """

    type: str
    id: str
    account: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    """One immutable event as a flow sees it.

    `kind` is the provider's kind, e.g. `contact.propertyChange` (the canonical one is `generation.route.event_kind`). `payload` is
    the exact text as it was received (digits, order, escapes). `ordinal` is the place in the namespace's admission
    order of the *fact*, and `created` its time: a replay event carries those of the event that it replays, so that "newer" means newer
    news.
    """

    event_id: int
    ordinal: int
    kind: str
    source: Source
    delivery_id: str
    provider_time: datetime | None
    payload: str
    payload_sha256: str
    created: datetime
    replay_of_event_id: int | None = None
    receipt_id: int = 0
    """With `item` and the time of the receipt, its place in the order of receipt; 0: not known."""
    item: int = 0

    @property
    def data(self) -> Any:
        """The payload parsed: integers exact, other numbers as Decimal that keep their digits. Raises ValueError when it is not JSON."""
        return parse(self.payload)


class Seen(Enum):
    """The destination answered: with success, or with a refusal of this very request."""

    ALIVE = "alive"
    ITEM_ONLY = "item only"
    """It said "not now" to this item while others got through: that is about the item."""


ALIVE: Final = Seen.ALIVE
ITEM_ONLY: Final = Seen.ITEM_ONLY


@dataclass(frozen=True, slots=True)
class Outage:
    """The destination took nothing. `certain`: whatever had been sent, so the item is not at fault; else it may be.

    `retry_after`: seconds that the destination asked everybody to wait. `answered`: it said so to this request, which is about the item
    where others get through.
    """

    reason: str
    certain: bool
    retry_after: float | None = None
    answered: bool = field(default=False, compare=False)
