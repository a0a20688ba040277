#!/usr/bin/env python
"""Django's command line for Headrace; `script/manage` calls it in the project's environment."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured

from ops_ui.start import streams
from ops_ui.start.version import version_line

if __name__ == "__main__":
    streams.write_any_text()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ops_ui.settings")
    if sys.argv[1:] in (["version"], ["--version"]):  # Django would print its own
        sys.stdout.write(f"{version_line()}\n")
        sys.exit(0)
    try:
        # Imported first: Django would hide a bad setting behind "Unknown command".
        import ops_ui.settings  # noqa: F401  # the import itself is the check, and it comes first
        from ops_ui.start.command_line import NAME, CommandLine

        CommandLine([NAME, *sys.argv[1:]]).execute()
    except ImproperlyConfigured as error:
        sys.stderr.write(f"headrace: {error}\n")
        sys.exit(2)
