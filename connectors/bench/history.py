"""A large history, made inside the server in minutes: what the console is measured on (`bench history`).

Three packs, seven routes in two versions each, 25 hot sources that send a quarter of everything among thousands of cold ones, all
states, errors that come and go, replays, holds, jobs. Keys, hashes, ordinals and ranges are the ones that admission would have made:
`audit` finds nothing. Rows are placed by arithmetic (`history.sql`); the same sizes give the same rows, at times that end now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from django.db import connection

from connectors import models
from connectors.bench.history_plan import (
    ATTEMPTS,
    BLOCKS,
    DAYS,
    ERRORS,
    PACKS,
    QUIET,
    REPLAYS_IN,
    ROUTES,
    HistoryRefused,
    Size,
)
from connectors.configuration.change import NotFound
from connectors.configuration.live_packs import live_pack
from connectors.configuration.packs import install
from connectors.configuration.routes import RouteDraft, publish
from projection.admission import activation
from projection.database import clock
from projection.database.catalogue import Sender, catalogue
from projection.facts import RetryPolicy
from projection.job_models import Job
from projection.safe_text import fingerprint

_SQL: Final = Path(__file__).parent
_sql: Final = Sender(_SQL)
A_STATEMENT: Final = 50_000
"""Rows that one statement inserts at most: its transaction stays some 50 MB, which every server takes."""


def make(namespace: str, size: Size, *, beside: bool, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Make the history in the configured database; rows and seconds. Raises HistoryRefused, before anything is written.

    `beside`: also where events, receipts or work of other namespaces are kept.
    """
    size.check()
    if not (namespace.isascii() and namespace.replace("-", "").isalnum()) or len(namespace) > 40:
        raise HistoryRefused("the namespace is not valid; use at most 40 letters, digits and hyphens")
    if models.Namespace.objects.filter(name=namespace).exists():
        raise HistoryRefused(f"namespace {namespace!r} already exists; use a new one (--namespace)")
    if not beside and _sql.fetch("read_what_is_there"):
        raise HistoryRefused("this database already has events, receipts or work; use --beside to create the history anyway")
    started = perf_counter()
    _configure(namespace)
    values = _values(namespace, size)
    _sql.execute("reserve_ordinals", events=size.events, namespace=namespace)
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION group_concat_max_len = 1000000")
    _events(size, values, say)
    _work(size, values, say)
    _beside_work(size, values, say)
    _refresh_statistics()
    return {
        "namespace": namespace,
        "events": size.events,
        "work_items": size.work,
        "dead_letters": size.dead,
        "replays": size.replays,
        "sources": size.cold * (BLOCKS - BLOCKS // 4) + BLOCKS // 4,
        "seconds": round(perf_counter() - started, 1),
    }


def _configure(namespace: str) -> None:
    """Packs, an endpoint of each, and two versions of each route."""
    if not activation.is_activated():
        activation.activate("history")
    for name in PACKS:
        install(namespace, name, actor="history")
        pack = live_pack(namespace, name)
        if pack is None:
            raise NotFound(f"pack {name} was removed while the history was created; run it again with a new --namespace")
        models.Endpoint.objects.create(
            pack_id=pack.id, namespace=namespace, slug=f"history-{pack.id}", created_at=clock.now(), unverified_policy="refuse"
        )
    for base in (5.0, 10.0):
        for key, (pack_name, source_type, mode, flow, _) in ROUTES.items():
            draft = RouteDraft(
                key,
                pack_name,
                (f"{source_type}.*",),
                f"{source_type}.changed",
                mode,  # type: ignore[arg-type]  # one of the two modes, out of a table
                flow,
                retry=RetryPolicy(base=base, attempts=ATTEMPTS),
            )
            publish(namespace, draft, actor="history")


def _values(namespace: str, size: Size) -> dict[str, Any]:
    """What the statements are filled with: named values, and constants of ours as text parts."""
    ((event, receipt, work, job),) = _sql.fetch("read_next_ids")
    now = clock.now().replace(tzinfo=None)
    length = timedelta(days=DAYS)
    blocks = [(key, route[1]) for key, route in ROUTES.items() for _ in range(route[4])]
    ordinal = models.Namespace.objects.get(name=namespace).next_enqueue_ordinal
    parts = _parts("x", "source_type source_id pack_name delivery_id route_key incarnation event_kind version")
    namespace_part = f"'{len(namespace)}:{namespace}'"
    texts = {
        "keys": _literals(key for key, _ in blocks),
        "types": _literals(source_type for _, source_type in blocks),
        "packs": _literals(PACKS),
        "errors": _literals(ERRORS),
        "fingerprints": _literals(fingerprint(error.replace("#", "7")) for error in ERRORS),
        "namespace_part": namespace_part,
        "item": f"SHA2(CONCAT({namespace_part}, {parts['pack_name']}, '0:5:event', {parts['delivery_id']}, '1:0'), 256)",
        **parts,
        **_parts("x", "companion_pack companion_flow work_type lane"),
        **{f"event_{name}": part for name, part in _parts("e", "namespace event_kind source_lane delivery_key").items()},
        **{f"event_{name}": part for name, part in _parts("e", "projection_key source_type source_id").items()},
        **{f"route_{name}": part for name, part in _parts("r", "companion_pack pack_name").items()},
        "event_ordinal": _part("e.EnqueueOrdinal"),
        "last_of_groups": catalogue(_SQL)["last_of_groups"],
    }
    return texts | {
        "namespace": namespace, "event": event, "receipt": receipt, "work": work, "job": job, "ordinal": ordinal, "now": now,
        "begins": now - length - QUIET, "step": int(length / timedelta(microseconds=size.events)),
        "per": size.per, "grouped": size.groups * BLOCKS * size.per, "groups": size.groups, "half": size.groups // 2,
        "cold": size.cold, "tail": size.tail, "ended": size.ended, "dead": size.dead - size.replays // 10,
        "replays": size.replays, "attempts": ATTEMPTS,
    }  # fmt: skip


def _literals(texts: Any) -> str:
    quoted = (str(text).replace("'", "''") for text in texts)
    return ", ".join(f"'{text}'" for text in quoted)


def _parts(table: str, names: str) -> dict[str, str]:
    """Column as text part → how a key has it in (`identity.digest`)."""
    return {name: _part(f"{table}.{name.title().replace('_', '')}") for name in names.split()}


def _part(column: str) -> str:
    return f"CONCAT(LENGTH({column}), ':', {column})"


def _numbers(first: int) -> str:
    """SQL of a table with the column n: A_STATEMENT numbers from `first` on, and as many more."""
    digit = "(SELECT 0 AS d" + "".join(f" UNION ALL SELECT {number}" for number in range(1, 10)) + ")"
    terms = " + ".join(f"{10**place} * p{place}.d" for place in range(5))
    return f"(SELECT {first} + {terms} AS n FROM {' CROSS JOIN '.join(f'{digit} p{place}' for place in range(5))})"


def _pieces(first: int, last: int, size: int = A_STATEMENT) -> Iterator[tuple[int, int]]:
    for at in range(first, last, size):
        yield at, min(at + size, last)


def _number(name: str, values: dict[str, Any], count: int, **more: Any) -> None:
    for first, last in _pieces(0, count):
        _sql.execute(name, **{**values, **more, "numbers": _numbers(first), "last": last})


def _events(size: Size, values: dict[str, Any], say: Callable[[str], None]) -> None:
    ordinary = size.events - size.replays
    for first, last in _pieces(0, ordinary):
        _sql.execute("insert_history_events", **values, numbers=_numbers(first), last=last)
        ids = {"first": values["event"] + first, "last": values["event"] + last}
        _sql.execute("insert_history_receipts", **{**values, **ids})
        say(f"{last} of {size.events} events, with their receipts")
    odd = max(ordinary // 250, 16)
    receipts = -(-ordinary // 10)
    step = int(timedelta(days=DAYS) / timedelta(microseconds=odd))
    _number("insert_history_odd_receipts", values, odd, receipt=values["receipt"] + receipts, step=step)


def _work(size: Size, values: dict[str, Any], say: Callable[[str], None]) -> None:
    """Work items, their replays and failures."""
    first_event, group = values["event"], BLOCKS * size.per
    for first, last in _pieces(first_event, first_event + size.groups * group, max(A_STATEMENT // group, 1) * group):
        _sql.execute("insert_history_work", **values, first=first, last=last)
    ordinary = size.groups * BLOCKS
    say(f"{ordinary} work items")
    ended = (values["work"], values["work"] + size.ended)
    step = int(REPLAYS_IN / timedelta(microseconds=max(size.replays, 1)))
    replays = {
        **values,
        "event": values["event"] + size.events - size.replays,
        "ordinal": values["ordinal"] + size.events - size.replays,
        "begins": values["now"] - QUIET,
        "step": step,
    }
    for first, last in _pieces(*ended):
        _sql.execute("insert_history_replay_events", **replays, first=first, last=last)
    _sql.execute("insert_history_replay_work", **{**replays, "work": values["work"] + ordinary})
    for first, last in _pieces(values["work"], values["work"] + size.work):
        _sql.execute("insert_history_failures", **values, first=first, last=last)
    say(f"{size.replays} replays, and the failed attempts")


def _beside_work(size: Size, values: dict[str, Any], say: Callable[[str], None]) -> None:
    """Records, holds, failed signatures, the operators' trail, and jobs."""
    group = BLOCKS * size.per
    end = values["event"] + size.groups * group
    for first, last in _pieces(end - size.cold * group, end, max(A_STATEMENT // group, 1) * group):
        _sql.execute("insert_history_records", **values, first=first, last=last)
    _sql.execute("insert_history_holds", **values)
    few = max(size.work // 100, 200)
    spread = int(timedelta(days=DAYS) / timedelta(microseconds=few))
    _number("insert_history_unverified", values, few, step=spread)
    entries = max(size.work // 10, 5_000)
    _number("insert_history_audit_entries", values, entries, step=int(timedelta(days=DAYS) / timedelta(microseconds=entries)))
    _number("insert_history_jobs", values, 200, step=int(timedelta(days=DAYS) / timedelta(microseconds=200)))
    at: datetime = clock.now()
    job = Job.objects.create(
        kind="replay", filter="{}", reason="made", actor="history", rate=0, state="finished", total=size.replays, done=size.replays,
        created_date=at, fixed_at=at, finished_at=at,
    )  # fmt: skip
    replays = values["work"] + size.groups * BLOCKS
    _sql.execute("insert_history_job_items", **{**values, "job": job.id, "first": replays, "last": replays + size.replays})
    say("records, holds, failed signatures, jobs")


def _refresh_statistics() -> None:
    """The optimizer knows what there is now."""
    with connection.cursor() as cursor:
        for table in ("Receipt", "Event", "WorkItem", "WorkFailure", "Record", "LaneHold", "JobItem", "Audit", "Unverified"):
            cursor.execute(f"ANALYZE TABLE `_System_Connector{table}`")
            cursor.fetchall()
