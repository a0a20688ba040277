"""Run a command as `script/manage` would and read its answer."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from django.core.management import call_command


def run(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON answer of `manage.py <arguments> --json`."""
    out = StringIO()
    code = _call(*arguments, "--json", out=out)
    return code, json.loads(out.getvalue())


def say(*arguments: str) -> tuple[int, str]:
    """Exit code and the lines for people."""
    out = StringIO()
    code = _call(*arguments, out=out)
    return code, out.getvalue()


def _call(*arguments: str, out: StringIO) -> int:
    try:
        call_command(*arguments, stdout=out, stderr=StringIO())
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
