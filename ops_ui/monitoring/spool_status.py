"""The spool of this host and its disk, as probes, metrics, alerts and the overview show them. Reads folders, never the database."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from connectors.ingress.spool import files

DRAINING_SECONDS: Final = 30.0
"""Younger than this, what waits is being drained; older, somebody should look."""
DISK_FULL: Final = "state_disk_full"
LEAST_FREE_BYTES: Final = 32 * 1024 * 1024
"""One more delivery of the largest size that a pack accepts, with its record."""


@dataclass(frozen=True, slots=True)
class SpoolWarning:
    """`code` is for programs, `sentence` for people."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class SpoolStatus:
    """`oldest_seconds`: since when something waits, by this host's clock; 0 = nothing does. `free_bytes`: of the disk."""

    waiting_bytes: int
    limit_bytes: int
    oldest_seconds: float
    aside_files: int
    free_bytes: int

    @property
    def warning(self) -> SpoolWarning | None:
        """What needs somebody; None = nothing does."""
        if self.free_bytes < LEAST_FREE_BYTES:
            return SpoolWarning(
                DISK_FULL,
                f"The disk under HEADRACE_STATE_DIR is full on this host ({self.free_bytes // 1024} KiB free): deliveries cannot be "
                "spooled, and metrics are not updated. Free space there. No restart is needed.",
            )
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
    """As it is now. Two folder reads, a stat for each file, of which there are few, and one for the disk."""
    usage = files.usage()
    oldest = 0.0 if usage.oldest_ns is None else max(0.0, time.time() - usage.oldest_ns / 1e9)
    return SpoolStatus(usage.waiting_bytes, settings.HEADRACE_SPOOL_BYTES, oldest, usage.aside_files, _free_bytes())


def _free_bytes() -> int:
    """What this user may still write where the spool is, or will be made."""
    folder = files.folder()
    for place in (folder, *folder.parents):
        with suppress(FileNotFoundError):
            facts = os.statvfs(place)
            return facts.f_bavail * facts.f_frsize
    return 0
