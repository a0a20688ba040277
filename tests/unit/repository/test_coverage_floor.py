"""The floor of branch coverage: what a run below it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from script.lib import coverage_floor
from script.lib.coverage_floor import shortfall

ROOT = Path(__file__).parents[3]


def report(**files: tuple[int, int]) -> dict[str, Any]:
    """A report of files with (branches taken, branches)."""
    found = {
        f"projection/{name}.py": {
            "summary": {"covered_branches": taken, "num_branches": count},
            "missing_branches": [[line, -1 if line % 2 else line + 3] for line in range(1, count - taken + 1)],
        }
        for name, (taken, count) in files.items()
    }
    taken, count = (sum(column) for column in zip(*files.values(), strict=True))
    return {"totals": {"covered_branches": taken, "num_branches": count}, "files": found}


def test_at_its_floors_a_run_passes() -> None:
    assert shortfall(report(whole=(80, 80), bare=(0, 0), low=(18, 20))) == []


def test_below_the_floor_it_says_figure_floor_and_the_worst_files() -> None:
    lines = shortfall(report(a=(90, 100), b=(95, 100), c=(100, 100), d=(98, 100)))
    assert lines == [
        "branch coverage of projection/ is 95.8 % of 400 branches, its floor 97 % (90 % per file)",
        "  90.0 % projection/a.py: never 1→end, 2→5, 3→end, 4→7, 5→end, 6→9 and 4 more",
        "  95.0 % projection/b.py: never 1→end, 2→5, 3→end, 4→7, 5→end",
        "  98.0 % projection/d.py: never 1→end, 2→5",
    ]


def test_one_file_below_its_floor_fails_a_run_that_is_good_in_all() -> None:
    lines = shortfall(report(good=(1000, 1000), new=(3, 4)))
    assert "99.9 %" in lines[0]
    assert lines[1:] == ["  75.0 % projection/new.py: never 1→end"]


def test_every_file_below_its_floor_is_named() -> None:
    assert len(shortfall(report(**{f"f{n}": (1, 2) for n in range(9)}))) == 1 + 9


def test_a_run_that_measured_nothing_does_not_pass() -> None:
    assert shortfall({"totals": {"num_branches": 0}, "files": {}}) == ["no branch of projection/ was measured"]


def test_the_report_of_the_real_tool_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sample.py").write_text("import sys\nif len(sys.argv) > 9:\n    print('never')\n", encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith("COV")}  # a measured suite's data stay its own
    for arguments in (["run", "--branch", "sample.py"], ["json", "-q"]):
        subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=tmp_path, env=own, check=True, timeout=60)
    found = json.loads((tmp_path / "coverage.json").read_text(encoding="utf-8"))
    assert shortfall(found)[1:] == ["  50.0 % sample.py: never 2→3"]
    monkeypatch.setattr(coverage_floor, "FLOOR_PERCENT", 50.0)
    monkeypatch.setattr(coverage_floor, "FILE_FLOOR_PERCENT", 50.0)
    assert shortfall(found) == []
