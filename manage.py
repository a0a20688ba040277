#!/usr/bin/env python
"""Django's command line for Headrace; `script/manage` calls it in the project's environment."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ops_ui.settings")
    try:
        # Imported first: Django would hide a bad setting behind "Unknown command".
        import ops_ui.settings  # noqa: F401, I001  # the import itself is the check, and it comes first
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"headrace: {error}\n")
        sys.exit(2)
