"""`python -m ops_ui.start server` and `… manage ARGUMENTS`: what script/server and script/manage run."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

from ops_ui.config.database_url import database
from ops_ui.config.environment import CHECKOUT, BadSetting, read
from ops_ui.start import CannotStart, streams
from ops_ui.start.database_server import has_tables
from ops_ui.start.installation import Installation, open_installation
from ops_ui.start.prepare import SCHEMA_ONLY
from ops_ui.start.private_database import Use
from ops_ui.start.running_settings import adopted
from ops_ui.start.settings_file import with_file
from ops_ui.start.supervisor import serve

USAGE: Final = "usage: script/server, or script/manage COMMAND [ARGUMENT…]\n"
BAD_CONFIGURATION: Final = 2
RESTORE: Final = "restore"


def manage(installation: Installation, arguments: list[str]) -> int:
    """Become manage.py in the environment of the installation, with its database running and filled.

    Returns only the exit code of a preparation that failed.
    """
    if installation.private is not None:
        use = Use(installation.private)
        use.__enter__()  # and no exit: manage.py goes on using it
        use.hand_over()
    # A backup is restored into an empty database only.
    if arguments[:1] != [RESTORE] and not has_tables(database(read(installation.environ)["DATABASE_URL"])):
        preparation = [sys.executable, "-m", "ops_ui.start.prepare", SCHEMA_ONLY]
        code = subprocess.run(preparation, env=dict(installation.environ), cwd=CHECKOUT, stdout=sys.stderr, check=False).returncode  # noqa: S603  # our own module
        if code:
            return abs(code)
    program = [sys.executable, str(CHECKOUT / "manage.py"), *arguments]
    return os.execve(program[0], program, dict(installation.environ))  # noqa: S606  # no shell on purpose


def main(arguments: list[str]) -> int:
    """Exit code 2 and one sentence for anything in the configuration that stands in the way."""
    streams.write_any_text()
    try:
        match arguments:
            case ["server"]:
                return serve(open_installation(with_file(os.environ)))
            case ["manage", *rest]:
                return manage(open_installation(adopted(with_file(os.environ))), rest)
            case _:
                sys.stderr.write(USAGE)
    except (BadSetting, CannotStart) as error:
        sys.stderr.write(f"headrace: {error}\n")
    return BAD_CONFIGURATION


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
