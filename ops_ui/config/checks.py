"""System checks: deployment mistakes that would lose or delay work, each with an id, the cause and the way out.

    headrace.E001  the database cannot be reached, or is no MariaDB, MySQL or TiDB
    headrace.E002  connections do not run at READ COMMITTED
    headrace.E003  max_allowed_packet too small for an accepted body (W003: for the larger bodies of one pack)
    headrace.E004  a lease shorter than a flow's time-out
    headrace.E005  django-q2's timeout not below its retry
    headrace.E006  django-q2's timeout too short for a resident loop and the flow it may be running
    headrace.E007  a stored secret that no encryption key opens
    headrace.E008  a server on another host without TLS
    headrace.E009  a server older than supported
    headrace.E010  a state folder that cannot be written to
    headrace.E012  a database, or tables of it, in another character set than utf8mb4
    headrace.E013  a binary log that takes no writes at READ COMMITTED (binlog_format=STATEMENT)
    headrace.E014  events whose identities are of an older protocol
    headrace.W011  (check --deploy) a console that does not demand https

Here are those that need no server; `server_checks` asks the server, with `check --database default` and at each start.
"""

from __future__ import annotations

import tempfile
from math import inf
from typing import Any, Final

from django.conf import settings
from django.core import checks

from ops_ui.config.database_url import demands_tls, is_local
from projection import flows
from projection.runtime.django_q.cluster_settings import HAND_OVER_SECONDS

Q2_RETRY_SECONDS: Final = 60
"""django-q2's own, where the settings name none. Of `timeout` its own is none."""

Found = list[checks.CheckMessage]


def register_all() -> None:
    """Make these checks known to Django."""
    for check in (check_leases, check_cluster, check_tls, check_state_folder):
        checks.register(check, "headrace")
    checks.register(check_https, "headrace", deploy=True)


def problem(number: int, message: str, hint: str) -> checks.Error:
    """The error `headrace.E<number>`: one sentence for the cause, one for the way out."""
    return checks.Error(message, hint=hint, id=f"headrace.E{number:03}")


def check_leases(**_: Any) -> Found:
    """A worker that hangs must not keep its lane longer than its flow may run."""
    longest = max(flows.registered().values(), key=lambda flow: flow.timeout, default=None)
    if longest is None or longest.timeout <= settings.HEADRACE_LEASE_SECONDS:
        return []
    return [
        problem(
            4,
            f"HEADRACE_LEASE_SECONDS is {settings.HEADRACE_LEASE_SECONDS}, shorter than the {longest.timeout:g} s "
            f"timeout of flow {longest.name!r}.",
            f"Set it to {longest.timeout:g} or more, or give the flow a shorter timeout.",
        )
    ]


def check_cluster(**_: Any) -> Found:
    """django-q2 must neither kill a healthy resident loop nor hand its task to a second process."""
    found: Found = []
    cluster: dict[str, Any] = settings.Q_CLUSTER
    timeout = inf if cluster.get("timeout") is None else cluster["timeout"]
    retry = cluster.get("retry", Q2_RETRY_SECONDS)
    if timeout >= retry:
        shown = "none" if timeout == inf else f"{timeout} s"
        found.append(
            problem(
                5,
                f"Q_CLUSTER's timeout ({shown}) is not below its retry ({retry} s), so a running loop would be started a second time.",
                "Raise retry above timeout in the settings.",
            )
        )
    longest = max([settings.LONGEST_FLOW_TIMEOUT_SECONDS, *(flow.timeout for flow in flows.registered().values())])
    needed = settings.RESIDENT_BUDGET_SECONDS + longest + HAND_OVER_SECONDS
    if timeout < needed:
        found.append(
            problem(
                6,
                f"Q_CLUSTER's timeout ({timeout} s) is too short: a loop whose last flow runs {longest:g} s needs {needed:g} s.",
                "Give the flow a shorter timeout, or raise LONGEST_FLOW_TIMEOUT_SECONDS in the settings.",
            )
        )
    return found


def check_tls(**_: Any) -> Found:
    """Payloads and secrets do not cross a network in the clear."""
    entry = settings.DATABASES["default"]
    if is_local(entry) or demands_tls(entry):
        return []
    return [
        problem(
            8,
            f"The database server {entry['HOST']} is on another host, but HEADRACE_DATABASE_URL does not enable TLS.",
            "Add ?ssl=required, or ?ssl=verify-full&ca=/path/to/ca.pem, to the URL.",
        )
    ]


def check_https(**_: Any) -> Found:
    """Django's own words for this name settings that nobody sets here (security.W004, W008, W012, W016)."""
    if settings.HEADRACE_PUBLIC_URL.startswith("https://"):
        return []
    message = "HEADRACE_PUBLIC_URL is not an https:// URL, so the console neither requires https nor protects its cookies."
    return [checks.Warning(message, hint="Set it to the public https:// name, with a TLS proxy in front.", id="headrace.W011")]


def check_state_folder(**_: Any) -> Found:
    """Wake-ups, metrics and static files live there."""
    try:
        settings.STATE_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=settings.STATE_DIR):
            return []
    except OSError as error:
        message = f"The state folder {settings.STATE_DIR} cannot be written to ({error.strerror})."
        return [problem(10, message, "Grant this user write permission, or set HEADRACE_STATE_DIR to another folder.")]
