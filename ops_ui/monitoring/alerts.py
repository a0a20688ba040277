"""Alerts on transitions: raised once when something begins, recovered once when it is over, whatever restarts in between.

What is raised is kept by the database. A transition and what is to be told of it commit together, by compare-and-swap, so that any
number of processes may look and one of them tells (`alert_messages.py`).
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Final

from django.conf import settings

from ops_ui.monitoring import alert_messages, progress, signature_failures, spool_status
from ops_ui.monitoring.alert_messages import Transition
from projection.database import clock
from projection.database.catalogue import Sender
from projection.database.clock import from_db
from projection.database.transactions import run_unit
from projection.logs import log_event

PERIOD_SECONDS: Final = 30
NAMES: Final = ("progress", "age", "dead_letters", "rejected_items", "signature_failures", "state_disk")
MOST_COUNTED: Final = 1000
RECOVERED_AFTER: Final = timedelta(minutes=2)
"""How long its cause must be gone: one that comes and goes is one alert, not a stream of them."""
HOST_RECOVERED_AFTER: Final = timedelta(minutes=30)
"""For what each host sees of itself alone: the hosts take turns at looking, and others may have several in a row."""

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an alert should be raised, now."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Known:
    """An alert as it is stored; `step` is what a change of it compares."""

    name: str
    is_raised: bool
    step: int
    clear_since: datetime | None
    changed_at: datetime


class Change(Enum):
    """What becomes of a stored alert."""

    RAISE = "raise"
    RECOVER = "recover"
    CLEAR = "clear"
    AGAIN = "again"
    NONE = "none"


def decide(known: Known, cause: Cause | None, now: datetime) -> Change:
    """A function of its arguments alone."""
    if not known.is_raised:
        return Change.RAISE if cause else Change.NONE
    if cause:
        return Change.AGAIN if known.clear_since else Change.NONE
    if known.clear_since is None:
        return Change.CLEAR
    after = HOST_RECOVERED_AFTER if known.name == "state_disk" else RECOVERED_AFTER
    return Change.RECOVER if now - known.clear_since >= after else Change.NONE


def make() -> None:
    """The stored rows, unless they are there. One statement."""
    rows = ", ".join(f"('{name}', 0, 0, '2000-01-01 00:00:00', NULL, '', '')" for name in ("watch", *NAMES))
    run_unit("alert", lambda: _sql.execute("make_alerts", rows=rows), one_statement=True)


def take_turn() -> bool:
    """Whether it is this process's turn to look: at most once in `PERIOD_SECONDS`, over all hosts. One statement."""
    return run_unit("alert", lambda: _sql.execute("take_turn", period=PERIOD_SECONDS - 1), one_statement=True) == 1


def look() -> list[Transition]:
    """Compare what is with what is stored; the transitions that this process made. About ten statements where there is none."""
    causes = find_causes()
    known, now = stored(), clock.now()
    return [made for one in known if (made := _change(one, causes.get(one.name), now)) is not None]


def stored() -> list[Known]:
    """Every alert as it is stored. One statement."""
    return [
        Known(name, bool(raised), step, from_db(clear_since), from_db(changed_at))
        for name, raised, step, clear_since, changed_at in _sql.fetch("read_alerts")
        if name in NAMES
    ]


def find_causes() -> dict[str, Cause]:
    """Which alerts have a cause, now."""
    findings = progress.findings()
    found = {
        kind: Cause(several[0].code, " ".join(one.reason for one in several))
        for kind in ("progress", "age")
        if (several := [one for one in findings if one.kind == kind])
    }
    more = {
        "dead_letters": _dead_letters(),
        "rejected_items": _rejected_items(),
        "signature_failures": _signature_failures(),
        "state_disk": _state_disk(),
    }
    return found | {name: cause for name, cause in more.items() if cause is not None}


def _dead_letters() -> Cause | None:
    limit = settings.HEADRACE_ALERT_DEAD_LETTERS
    if _sql.fetch("count_recent_dead", most=limit)[0][0] < limit:
        return None
    return Cause(
        "dead_letters", f"{limit} or more dead letters within the last hour. Run script/manage dlq list to see their errors."
    )


def _rejected_items() -> Cause | None:
    found = _sql.fetch("count_recent_rejected", most=MOST_COUNTED)[0][0]
    if not found:
        return None
    return Cause(
        "rejected_items",
        f"Deliveries within the last hour with items that were rejected or conflict with earlier ones: {found}"
        f"{' or more' if found >= MOST_COUNTED else ''}. Open the receipts in state partial or rejected, fix the pack's settings, "
        "then run script/manage receipts reread.",
    )


def _signature_failures() -> Cause | None:
    counted = signature_failures.recent()
    total = sum(failures for _, failures in counted)
    if total < settings.HEADRACE_ALERT_SIGNATURE_FAILURES:
        return None
    reason = (
        f"{total} deliveries failed their signature check within {signature_failures.WINDOW_MINUTES} min, most of them at {counted[0][0]}. "
        "Check Failed signatures in the console and the endpoint's secret."
    )
    return Cause("signature_failures", reason)


def _state_disk() -> Cause | None:
    """Of the host that looks."""
    warning = spool_status.status().warning
    if warning is None or warning.code != spool_status.DISK_FULL:
        return None
    return Cause(warning.code, f"{socket.gethostname()}: {warning.sentence}")


def _change(known: Known, cause: Cause | None, now: datetime) -> Transition | None:
    change = decide(known, cause, now)
    if change in (Change.RAISE, Change.RECOVER):
        return _transition(known, cause, now)
    if change is not Change.NONE:
        moment = "UTC_TIMESTAMP(6)" if change is Change.CLEAR else "NULL"
        mark: Mapping[str, object] = {"name": known.name, "step": known.step, "moment": moment}
        run_unit("alert", lambda: _sql.execute("mark_alert_clear", **mark), one_statement=True)
    return None


def _transition(known: Known, cause: Cause | None, now: datetime) -> Transition | None:
    """Swap and leave word in one transaction; None when another process was faster."""
    made = Transition(known.name, cause.code if cause else "recovered", cause.reason if cause else "", now, known.changed_at)

    def unit() -> bool:
        if cause:
            swapped = _sql.execute("raise_alert", name=known.name, step=known.step, code=cause.code, reason=cause.reason)
        else:
            swapped = _sql.execute("recover_alert", name=known.name, step=known.step)
        if swapped:
            alert_messages.leave(made)
        return bool(swapped)

    if not run_unit("alert", unit):
        return None
    log_event("alert", level="warning" if cause else "info", alert=known.name, state=made.state, reason=made.reason or None)
    return made
