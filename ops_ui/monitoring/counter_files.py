"""The folder in which the processes of a host share their counters (PROMETHEUS_MULTIPROC_DIR), read as one and kept small.

prometheus-client makes a file for each process and kind of metric. What a process counted stays true after its end, so its files are
added up into one file of ended processes; else each restart would leave some behind. Its live gauges go.

The folder is of one host (and one pid namespace): a process that cannot be seen counts as ended. On a full disk nothing is added up,
and what was written stays readable (`counter_file.py`).
"""

from __future__ import annotations

import fcntl
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prometheus_client import multiprocess
from prometheus_client.metrics_core import Metric
from prometheus_client.mmap_dict import MmapedDict

from ops_ui.monitoring.counter_file import VARIABLE, Numbers, content, is_readable
from projection.logs import log_event
from projection.safe_text import error_text

ADDED_UP: Final = ("counter", "histogram", "summary")
ENDED: Final = "ended"
_OF_PROCESS: Final = re.compile(rf"({'|'.join(ADDED_UP)}|gauge_\w+)_(\d+)\.db")


def folder() -> Path | None:
    """Where this process shares its counters; None: it keeps them to itself."""
    found = os.environ.get(VARIABLE)
    return Path(found) if found and Path(found).is_dir() else None


def read(where: Path) -> list[Metric]:
    """What all processes of the folder counted together, ended ones included."""
    add_up_ended(where)
    with _locked(where, fcntl.LOCK_SH):
        files = [str(path) for path in where.glob("*.db") if is_readable(path)]
        return list(multiprocess.MultiProcessCollector.merge(files))  # type: ignore[no-untyped-call]  # it has no annotations


def add_up_ended(where: Path) -> int:
    """Number of ended processes whose files went into the common one; 0 on a disk that takes nothing, until it does. One look into the
    folder when there is none. Raises nothing: the web server calls it while it replaces a worker.

    A crash between the two steps counts these once more; the lock keeps readers out meanwhile.
    """
    try:
        if not _ended(where):
            return 0
        with _locked(where, fcntl.LOCK_EX):
            ended = _ended(where)  # another process may have been faster
            for kind in ADDED_UP:
                _add_up(where, kind, [where / f"{kind}_{pid}.db" for pid in ended])
            for pid in ended:
                multiprocess.mark_process_dead(pid, str(where))  # type: ignore[no-untyped-call]  # it has no annotations
    except OSError as error:
        log_event("counters", level="warning", reason="counters of ended processes wait to be added up", error=error_text(error))
        return 0
    return len(ended)


def _add_up(where: Path, kind: str, paths: Sequence[Path]) -> None:
    sources = [path for path in paths if path.exists()]
    if not sources:
        return
    kept, draft = where / f"{kind}_{ENDED}.db", where / f"{kind}.draft"
    sums: defaultdict[str, float] = defaultdict(float)
    for path in filter(is_readable, [*sources, kept]):
        for key, value, _, _ in MmapedDict.read_all_values_from_file(str(path)):  # type: ignore[no-untyped-call]  # as above
            sums[key] += value
    numbers: dict[str, Numbers] = {key: (value, 0.0) for key, value in sums.items()}
    try:
        draft.write_bytes(content(numbers))
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    draft.replace(kept)
    for path in sources:
        path.unlink()


def _ended(where: Path) -> list[int]:
    """Processes that left something in the folder that is to be added up or removed."""
    found = {int(match[2]) for path in where.iterdir() if (match := _OF_PROCESS.fullmatch(path.name)) and _goes(match[1])}
    return sorted(pid for pid in found if not _lives(pid))


def _goes(kind: str) -> bool:
    return kind in ADDED_UP or kind.startswith("gauge_live")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's, under a number that was ours
        return True
    return True


@contextmanager
def _locked(where: Path, kind: int) -> Iterator[None]:
    """By the folder itself: a lock of its own file could not be made on a full disk."""
    folder_fd = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder_fd, kind)
        yield
    finally:
        os.close(folder_fd)
