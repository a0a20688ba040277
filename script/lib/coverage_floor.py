"""The floor of the engine's branch coverage, which a full run of script/test keeps (see run_tests.py).

Only what runs inside the suite's own processes is counted; the acceptance tests' servers and workers are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MEASURED: Final = "projection"
FLOOR_PERCENT: Final = 97.0
"""Of all branches. What is left out is what cannot be forced (a way out that only the type checker needs)."""
FILE_FLOOR_PERCENT: Final = 90.0
"""Of the branches of each file, so that a new one without tests does not hide behind the others."""
WORST: Final = 5
"""Files that a failure names."""
BRANCHES_NAMED: Final = 6


def percent(summary: Mapping[str, int]) -> float:
    """Branches taken; a file without any has all of them."""
    return 100.0 * summary["covered_branches"] / summary["num_branches"] if summary["num_branches"] else 100.0


def figure(report: Mapping[str, Any]) -> str:
    """The branch figure of a report, e.g. `98.5 % of 788 branches`."""
    return f"{percent(report['totals']):.1f} % of {report['totals']['num_branches']} branches"


def shortfall(report: Mapping[str, Any]) -> list[str]:
    """What a report (`coverage json`, with branches) lacks: the figure, the floor, then the worst files; empty = nothing."""
    if not report["totals"].get("num_branches"):
        return [f"no branch of {MEASURED}/ was measured"]
    worst = sorted(report["files"].items(), key=lambda item: (percent(item[1]["summary"]), item[0]))
    low = [name for name, file in worst if percent(file["summary"]) < FILE_FLOOR_PERCENT]
    if percent(report["totals"]) >= FLOOR_PERCENT and not low:
        return []
    lines = [
        f"branch coverage of {MEASURED}/ is {figure(report)}, its floor {FLOOR_PERCENT:g} % ({FILE_FLOOR_PERCENT:g} % per file)"
    ]
    named = [item for item in worst if item[1]["missing_branches"]]
    return lines + [_line(name, file) for name, file in named[: max(WORST, len(low))]]


def _line(name: str, file: Mapping[str, Any]) -> str:
    missing = [f"{start}→{'end' if end < 0 else end}" for start, end in file["missing_branches"]]
    more = f" and {len(missing) - BRANCHES_NAMED} more" if len(missing) > BRANCHES_NAMED else ""
    return f"  {percent(file['summary']):.1f} % {name}: never {', '.join(missing[:BRANCHES_NAMED])}{more}"
