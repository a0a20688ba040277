"""Resident memory of the service's processes, sampled while it runs."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Final

MEBIBYTE: Final = 1024**2
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident(pid: int) -> float | None:
    """MiB; None when there is no such process any more."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE / MEBIBYTE
    except (OSError, IndexError):
        return None


class Memory:
    """Samples by name and process: one that was replaced begins again."""

    def __init__(self) -> None:
        self.samples: dict[tuple[str, int], list[float]] = defaultdict(list)

    def sample(self, processes: Mapping[int, str]) -> None:
        for pid, name in processes.items():
            found = resident(pid)
            if found:
                self.samples[name, pid].append(found)

    def largest(self) -> float:
        """MiB that any process ever had."""
        return max(max(values) for values in self.samples.values())

    def growth(self, at_least: int) -> dict[tuple[str, int], float]:
        """MiB between the second and the last fifth (medians) of each process that was sampled so often."""
        return {
            key: median(values[-len(values) // 5 :]) - median(values[len(values) // 5 : 2 * len(values) // 5])
            for key, values in self.samples.items()
            if len(values) >= max(5, at_least)
        }

    def table(self) -> list[str]:
        """A line for each name: processes, first, last and largest."""
        by_name: dict[str, list[list[float]]] = defaultdict(list)
        for (name, _), values in self.samples.items():
            by_name[name].append(values)
        return [
            f"{name}: {len(found)} processes, first {found[0][0]:.0f} MiB, last {found[-1][-1]:.0f} MiB, "
            f"largest {max(map(max, found)):.0f} MiB"
            for name, found in sorted(by_name.items())
        ]
