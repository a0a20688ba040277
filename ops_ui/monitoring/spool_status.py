"""The spool of this host as probes, metrics and the overview tell it. Reads a folder, never the database."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from connectors.ingress.spool import files

DRAINING_SECONDS: Final = 30.0
"""Younger than this, what waits is being drained; older, somebody should look."""


@dataclass(frozen=True, slots=True)
class SpoolWarning:
    """`code` is for programs, `sentence` for people."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class SpoolStatus:
    """`oldest_seconds`: since when something waits, by this host's clock; 0 = nothing does."""

    waiting_bytes: int
    limit_bytes: int
    oldest_seconds: float
    aside_files: int

    @property
    def warning(self) -> SpoolWarning | None:
        """What needs somebody; None = nothing does."""
        if self.aside_files:
            return SpoolWarning(
                "spool_set_aside",
                f"Spooled deliveries on this host are damaged or rejected by the database ({self.aside_files} files set aside). "
                "Run script/manage spool list for the reasons, then spool retry, export or discard.",
            )
        if self.oldest_seconds >= DRAINING_SECONDS:
            return SpoolWarning(
                "spool_waits",
                f"Deliveries have been waiting in this host's spool for {self.oldest_seconds:.0f} s "
                f"({self.waiting_bytes} of {self.limit_bytes} bytes): the database is unavailable or rejects them. "
                "If it has recovered, run script/manage spool list.",
            )
        return None


def status() -> SpoolStatus:
    """As it is now. Two folder reads and a stat for each file, of which there are few."""
    usage = files.usage()
    oldest = 0.0 if usage.oldest_ns is None else max(0.0, time.time() - usage.oldest_ns / 1e9)
    return SpoolStatus(usage.waiting_bytes, settings.HEADRACE_SPOOL_BYTES, oldest, usage.aside_files)
