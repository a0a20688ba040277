"""No source that no other formatter bounds has a line that needs scrolling."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LONGEST = 160
"""Characters: what fits beside a file tree on a laptop."""
PATTERNS = ("templates/**/*.html", "ops_ui/static/**/*.css", "ops_ui/static/**/*.js", "**/*.sql")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_line_is_longer_than_the_limit(pattern: str) -> None:
    files = [path for path in ROOT.glob(pattern) if ".local" not in path.parts]
    assert files
    too_long = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} characters"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > LONGEST
    ]
    assert too_long == []
