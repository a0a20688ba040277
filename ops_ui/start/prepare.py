"""The preparation: one Django process that makes the database ready before anything serves.

Checks first, each problem one sentence and exit code 2; then migrations, static files, the protocol's activation and, at the first
start only, the demo (HEADRACE_DEMO) and the console's first user. Running it again changes nothing.

`--schema-only` stops after the activation. `--deployed` (`docs/deployment/systemd/`) leaves out what there is done by hand: activation,
demo and first user.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import django
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils.module_loading import import_string

from ops_ui.start import CannotStart
from ops_ui.start.database_server import ensure_database
from projection.admission.activation import NotActivatable, activate

LOCK_NAME: Final = "headrace_prepare"
LOCK_SECONDS: Final = 600
"""How long to wait for another host that is migrating."""
FIRST_USER: Final = "admin"
SCHEMA_ONLY: Final = "--schema-only"
DEPLOYED: Final = "--deployed"


def prepare(mode: str = "") -> None:
    """Bring everything, or what `mode` (SCHEMA_ONLY, DEPLOYED) says, to what this version needs.

    Raises ImproperlyConfigured, CannotStart or CommandError.
    """
    _refuse(checks.run_checks())
    ensure_database(settings.DATABASES["default"])
    _refuse(checks.run_checks(tags=[checks.Tags.database], databases=["default"]))
    with _alone():
        # --run-syncdb makes django-q2's tables, whose own migrations TiDB refuses (settings.MIGRATION_MODULES).
        call_command("migrate", run_syncdb=True, interactive=False, verbosity=0)
        if mode != DEPLOYED:  # on several hosts it comes last, when all of them run the new code (docs/upgrading.md)
            _activate()
        if mode != SCHEMA_ONLY:
            call_command("collectstatic", interactive=False, verbosity=0)
            import_string(settings.WSGI_APPLICATION)  # middleware and URLs load, or the start stops here
        if not mode:
            _first_start()
        if mode != SCHEMA_ONLY:
            _say_what_is_missing()


def _activate() -> None:
    """Activate the protocol. Raises CannotStart with the sentence that names what the schema lacks."""
    try:
        activate("start")
    except NotActivatable as error:
        raise CannotStart(str(error)) from error


def _refuse(found: list[checks.CheckMessage]) -> None:
    """Raise CannotStart, a line for each, when a check found an error; warnings are only said."""
    errors = [_sentence(message) for message in found if message.is_serious() and not message.is_silenced()]
    if errors:
        raise CannotStart("\n".join(errors))
    for message in found:
        if message.level >= checks.WARNING and not message.is_silenced():
            _say(f"warning: {_sentence(message)}")


def _sentence(message: checks.CheckMessage) -> str:
    hint = f" {message.hint}" if message.hint else ""
    return f"{message.msg}{hint} ({message.id})"


@contextmanager
def _alone() -> Iterator[None]:
    """One host at a time: two that migrate one database at once break each other's statements."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, %s)", [LOCK_NAME, LOCK_SECONDS])
        if cursor.fetchone() != (1,):
            raise CannotStart(
                f"Another host has been preparing this database for {LOCK_SECONDS} s; wait for it or stop it, then start again."
            )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT RELEASE_LOCK(%s)", [LOCK_NAME])


def _first_start() -> None:
    """The demo, then the first user: a start that was cut off in between is a first start again."""
    from django.contrib.auth import get_user_model

    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return
    if settings.HEADRACE_DEMO:
        call_command("load_demo")
    password = secrets.token_urlsafe(12)
    users.create_superuser(username=FIRST_USER, password=password)
    _say(f"console user: {FIRST_USER}   password: {password}")
    _say(f"(shown only once; `script/manage changepassword {FIRST_USER}` changes it)")


def _say_what_is_missing() -> None:
    """Work whose code is not here waits silently: most often HEADRACE_APPS was forgotten at this start."""
    from connectors.registry import installed_packs

    for sentence in installed_packs.missing_code():
        _say(f"warning: {sentence}")


def _say(line: str) -> None:
    sys.stdout.write(f"headrace: {line}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Exit code 0, 2 for a configuration that must be mended first, 1 when a step failed."""
    try:
        if arguments not in ([], [SCHEMA_ONLY], [DEPLOYED]):
            raise CannotStart(f"The argument must be {SCHEMA_ONLY}, {DEPLOYED} or omitted, not {' '.join(arguments)!r}.")
        django.setup()
        prepare(*arguments)
    except (ImproperlyConfigured, CannotStart) as error:
        sys.stderr.write(f"headrace: {error}\n")
        return 2
    except CommandError as error:
        sys.stderr.write(f"headrace: start failed: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
