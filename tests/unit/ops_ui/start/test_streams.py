"""What a command writes reaches every terminal, file and pipe."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from ops_ui.start import streams
from tests.support.running import CHECKOUT


@pytest.mark.parametrize(("is_terminal", "written"), [(True, b"\\u2192 \xe9 \\udcff"), (False, "→ é \\udcff".encode())])
def test_a_text_that_the_terminal_cannot_show_is_escaped(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, written: bytes
) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="latin-1")
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stdout", stream)
    streams.write_any_text()
    stream.write("→ é \udcff")
    stream.flush()
    assert raw.getvalue() == written


@pytest.mark.parametrize("spelling", ["version", "--version"])
def test_the_version_is_that_of_headrace(spelling: str) -> None:
    done = subprocess.run([sys.executable, "manage.py", spelling], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Headrace 0.1.0 (Django 5.2")
