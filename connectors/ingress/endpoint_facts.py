"""What the ingress must know about an endpoint, read with one query and kept at most 5 s per process.

Answers of "there is no such endpoint" are kept as well, and the number of kept answers is bounded: the names come from strangers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from django.conf import settings

from connectors import pack, secrets
from connectors.delivery import SignatureScheme
from connectors.ingress.limit_values import EndpointLimits
from connectors.ingress.outage import INGRESS, outage
from connectors.ingress.paths import ingress_path
from connectors.pack import DEFAULT_MAX_BODY_BYTES, Pack
from connectors.states import EndpointState, PackState
from connectors.timed_cache import TimedCache
from projection.database import clock
from projection.database.catalogue import Sender
from projection.logs import log_event

_sql: Final = Sender(Path(__file__).parent)
_bounded: Final = Sender(Path(__file__).parent, INGRESS)

Availability = Literal["open", "disabled", "discarding", "broken"]
"""`open`: takes deliveries · `disabled`: 503, the provider tries again · `discarding`: 410, on the operator's wish · `broken`: 503,
its pack or secrets cannot be loaded (the log says why)."""


COLUMNS: Final = 19
"""Of a row of `find_endpoint`."""
GONE: Final = frozenset({EndpointState.REMOVED, PackState.REMOVED})


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """One endpoint with its pack, as far as receiving needs them. `pack` is None only when `availability` is `broken`."""

    id: int
    namespace: str
    slug: str
    availability: Availability
    pack_id: int
    pack_name: str
    """As it is installed."""
    pack_incarnation: str
    pack: Pack | None
    kept_secrets: secrets.Kept = field(repr=False)
    public_url: str
    """Scheme, host and prefix that providers post to; empty = as each request says."""
    unverified_policy: str
    unverified_until: datetime | None
    limits: EndpointLimits
    signature: str
    """The scheme that this endpoint chose; empty: its pack's own."""
    account: str
    """Whose records its deliveries are about, where their ids are the sender's own."""

    @property
    def scheme(self) -> SignatureScheme:
        """By which its deliveries are signed; it has a pack."""
        assert self.pack is not None  # noqa: S101  # else it is broken, and nothing is checked
        return self.pack.scheme_named(self.signature)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Those that are live now, however long these facts have been kept."""
        return self.kept_secrets.at(datetime.now(UTC))

    @property
    def max_body_bytes(self) -> int:
        """Largest accepted body: HEADRACE_MAX_BODY_BYTES, else the endpoint's own limit, else the pack's."""
        default = self.pack.max_body_bytes if self.pack else DEFAULT_MAX_BODY_BYTES
        return int(settings.HEADRACE_MAX_BODY_BYTES or self.limits.max_body_bytes or default)

    @property
    def spools(self) -> bool:
        """Whether a verified delivery is kept on this host while the database is away: as set, else if its provider never retries."""
        if not settings.HEADRACE_SPOOL_BYTES or self.pack is None:
            return False
        return not self.pack.provider_retries if self.limits.spool is None else self.limits.spool

    @property
    def url(self) -> str:
        """Where providers post to; the path alone where no public URL is known."""
        return self.public_url + ingress_path(self.namespace, self.slug)

    def keeps_unverified(self, now: datetime) -> bool:
        """Whether a delivery that does not verify is held at `now`."""
        return keeps_unverified(self.unverified_policy, self.unverified_until, now)


def keeps_unverified(policy: str, until: datetime | None, now: datetime) -> bool:
    """Whether an endpoint of this policy and window keeps what does not verify at `now`."""
    return policy == "keep" and until is not None and now < until


def account_of(own: str, slug: str) -> str:
    """The account of an endpoint: its own, else its slug, so that each endpoint is a sender of its own."""
    return own or slug


def public_base(own: str) -> str:
    """Scheme, host and prefix of an endpoint's URL: its own `public_url`, else HEADRACE_PUBLIC_URL; empty = as each request says."""
    return str(own or settings.HEADRACE_PUBLIC_URL).rstrip("/")


def load(name: tuple[str, str]) -> EndpointFacts | None:
    """Facts of endpoint (namespace, slug), read now. None: there is none. One query."""
    return _load(name, _sql)


def _load(name: tuple[str, str], sender: Sender) -> EndpointFacts | None:
    rows = sender.fetch("find_endpoint", namespace=name[0], slug=name[1])
    # Compared again here: under some collations the database equates names that differ in case or trailing blanks.
    row = next((row for row in rows if (row[1], row[2]) == name), None)
    return facts_of(row) if row is not None and row[8] not in GONE and row[13] not in GONE else None


def _load_in_time(name: tuple[str, str]) -> EndpointFacts | None:
    with outage.asking():
        return _load(name, _bounded)


find: Final = TimedCache[tuple[str, str], EndpointFacts | None](_load_in_time, largest=1024)
"""`find((namespace, slug))`: as `load`, at most 5 s old, on the ingress' own connection."""


def facts_of(row: tuple[Any, ...]) -> EndpointFacts:
    """The facts of a row of `find_endpoint`."""
    code = _pack(row[16] or row[11], row[15], row[2], row[18])
    kept = _secrets(row[4], row[2])
    return EndpointFacts(
        id=row[0],
        namespace=row[1],
        slug=row[2],
        availability=_availability(row) if code is not None and kept is not None else "broken",
        pack_id=row[10],
        pack_name=row[11],
        pack_incarnation=row[12],
        pack=code,
        kept_secrets=kept or secrets.Kept(()),
        public_url=public_base(row[3]),
        unverified_policy=row[5],
        unverified_until=clock.from_db(row[6]),
        limits=EndpointLimits.of(row[7]),
        signature=row[18],
        account=account_of(row[17], row[2]),
    )


def _availability(row: tuple[Any, ...]) -> Availability:
    for state, discards, normal in ((row[13], row[14], PackState.INSTALLED), (row[8], row[9], EndpointState.ENABLED)):
        if state != normal:
            return "discarding" if discards else "disabled"
    return "open"


def _pack(name: str, settings_text: str, slug: str, signature: str) -> Pack | None:
    cls = pack.find(name)
    if cls is None:
        log_event(
            "endpoint_broken",
            level="error",
            endpoint=slug,
            pack=name,
            reason="the pack's package is not installed; add it to HEADRACE_APPS",
        )
        return None
    try:
        made = cls(json.loads(settings_text or "{}"))
        made.scheme_named(signature)
    except ValueError as error:
        log_event("endpoint_broken", level="error", endpoint=slug, pack=name, reason=f"the settings: {error}")
        return None
    return made


def _secrets(text: str, slug: str) -> secrets.Kept | None:
    try:
        return secrets.kept(text)
    except (secrets.SecretsUnreadable, secrets.NoEncryptionKey) as error:
        log_event("endpoint_broken", level="error", endpoint=slug, reason=str(error))
        return None
