"""`/healthz`, `/readyz`, `/progressz`: is this process alive, can it do its work now, and does the installation do its work?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Final

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ops_ui.monitoring import progress, spool_status
from projection.admission.activation import PROTOCOL_VERSION
from projection.database import outages
from projection.database.damage import damage, damaged_tables
from projection.models import ProjectionProtocol

TABLE_DAMAGED: Final = "table_damaged"
PROBE_TIMEOUT_SECONDS: Final = 2
"""A probe answers before the usual 3 to 5 s of a load balancer, whatever the database does."""


@dataclass(frozen=True, slots=True)
class NotReady:
    """Why this process cannot work now, and the way out."""

    code: str
    reason: str


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    """200 while the process answers at all; touches no database."""
    return JsonResponse({"alive": True})


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """200 when database, migrations and protocol are right; else 503 with `code` and `reason`. `spool` and `warnings` where this host
    needs a look, though it takes deliveries.
    """
    problem = readiness()
    spool = spool_status.status()
    more = (
        {"spool": asdict(spool), "warnings": _of_this_host()} if spool.waiting_bytes or spool.aside_files or spool.warning else {}
    )
    if problem is None:
        return JsonResponse({"ready": True, **more})
    return JsonResponse({"ready": False, "code": problem.code, "reason": problem.reason, **more}, status=503)


@never_cache
@require_safe
def progressz(_request: HttpRequest) -> JsonResponse:
    """200 when what is due moves on; else 503 with `code` and `reason` of the gravest finding, and all of them in `findings`."""
    health = look()
    if health.is_progressing:
        return JsonResponse({"progressing": True})
    first = health.reasons[0]
    return JsonResponse({"progressing": False, **first, "findings": health.reasons}, status=503)


@dataclass(frozen=True, slots=True)
class Health:
    """`reasons`: `code` and `reason` of each thing that is wrong. What is not ready cannot progress."""

    is_ready: bool
    reasons: list[dict[str, str]]

    @property
    def is_progressing(self) -> bool:
        return not self.reasons


def look() -> Health:
    """Readiness, then progress, and what waits on this host. A database that does not answer is a reason, never an exception."""
    problem = readiness()
    try:
        if problem is None or problem.code == TABLE_DAMAGED:
            found = [NotReady(TABLE_DAMAGED, one.sentence) for one in damaged_tables()] or (
                [problem] if problem else progress.findings()
            )
            reasons = [{"code": one.code, "reason": one.reason} for one in found]
            return Health(is_ready=problem is None, reasons=reasons + _of_this_host())
    except Error as error:
        problem = _unreachable(error)
    return Health(is_ready=False, reasons=[{"code": problem.code, "reason": problem.reason}])


def _of_this_host() -> list[dict[str, str]]:
    """What its spool says: accepted deliveries that are in no database, though one answers, or a full disk."""
    warning = spool_status.status().warning
    return [{"code": warning.code, "reason": warning.sentence}] if warning else []


def readiness() -> NotReady | None:
    """What stands in the way, on a connection of its own that waits at most `PROBE_TIMEOUT_SECONDS` for each answer."""
    probe = _probe_connection()
    try:
        problem = _missing_migrations(probe) or _not_activated(probe)
        if problem is None:
            with probe.cursor() as cursor:
                outages.probe_writes(cursor)
    except Error as error:
        return _unreachable(error)
    else:
        return problem
    finally:
        probe.close()


def _unreachable(error: Error) -> NotReady:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else "no code"
    if (damaged := damage(error)) is not None:
        return NotReady(TABLE_DAMAGED, damaged.sentence)
    if outages.is_read_only(error):
        return NotReady(
            "database_read_only",
            f"The database is read-only (error {number}), for example a replica or during a failover. Make it "
            "writable, or point HEADRACE_DATABASE_URL at the writable server. No restart is needed.",
        )
    if outages.is_full(error):
        return NotReady(
            "database_full",
            f"The disk of the database is full (error {number}), so nothing can be stored. Free space on the database server. "
            "No restart is needed; docs/deployment.md says what to check afterwards.",
        )
    return NotReady(
        "database_unreachable",
        f"The database does not answer (error {number}). Check HEADRACE_DATABASE_URL and that the server is running.",
    )


def database_answers() -> bool:
    """Whether the database answers one query, as `readiness` asks it: a frozen server never says that it is away."""
    probe = _probe_connection()
    try:
        with probe.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return False
    finally:
        probe.close()
    return True


def database_takes_writes() -> bool:
    """Whether a database that answers takes writes, too: one that was failed over does not."""
    probe = _probe_connection()
    try:
        with probe.cursor() as cursor:
            outages.probe_writes(cursor)
    except Error:
        return False
    finally:
        probe.close()
    return True


def _probe_connection() -> BaseDatabaseWrapper:
    probe = connections[DEFAULT_DB_ALIAS].copy()
    timeouts = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), PROBE_TIMEOUT_SECONDS)
    probe.settings_dict["OPTIONS"] = {**probe.settings_dict["OPTIONS"], **timeouts}
    return probe


@cache
def _migrations_of_this_code() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations)


def _missing_migrations(probe: BaseDatabaseWrapper) -> NotReady | None:
    missing = sorted(_migrations_of_this_code() - set(MigrationRecorder(probe).applied_migrations()))
    if not missing:
        return None
    named = ", ".join(".".join(key) for key in missing[:3]) + (", …" if len(missing) > 3 else "")
    return NotReady("migrations_missing", f"{len(missing)} migrations are not applied ({named}). Run script/manage migrate.")


def _not_activated(probe: BaseDatabaseWrapper) -> NotReady | None:
    table = probe.ops.quote_name(ProjectionProtocol._meta.db_table)
    with probe.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {table} WHERE ProtocolVersion = {PROTOCOL_VERSION} LIMIT 1")
        if cursor.fetchone():
            return None
    return NotReady("not_activated", "The projection protocol is not activated. Run script/manage activate_projection.")
