"""How the loops of a cluster are told to stop: by a flag that all of its processes share since they were forked from its head, or by the
death of the process that started them. The cluster's Sentinel waits for a running task on stop and gives it no signal.

SIGTERM is the business of the cluster's head alone. A terminal or `kill -- -PGID` sends it to the whole group, though, and a Sentinel
that dies of it leaves the head waiting for ever and flows cut off: so the head's children outlast it (`outlast_group_signal`).
"""

from __future__ import annotations

import os
import signal
from time import monotonic, sleep
from types import FrameType
from typing import Final

from projection.runtime.django_q.kill_proof import Flag

HEAD_SECONDS: Final = 1.0
"""How long a child that got SIGTERM waits for its head to say that the whole cluster stops; the same signal reaches the head at once."""

_stops = Flag()


def stop_all() -> None:
    """Tell every loop of this cluster to end after what it is doing."""
    _stops.set()


def is_stopping() -> bool:
    """Whether the loops of this cluster have been told to end."""
    return _stops.is_set()


def outlast_group_signal() -> None:
    """In a child of the head, inherited by its own: let SIGTERM pass while the cluster stops, and die of it at any other time."""
    signal.signal(signal.SIGTERM, _die_unless_the_cluster_stops)


def _die_unless_the_cluster_stops(number: int, _frame: FrameType | None) -> None:
    ends = monotonic() + HEAD_SECONDS
    while not _stops.is_set() and monotonic() < ends:
        sleep(0.01)
    if not _stops.is_set():  # meant for this process alone: by the Sentinel, which ends its children so, or by hand
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


class StopFlag:
    """True once the cluster stops, or once the process that started this one is gone."""

    def __init__(self) -> None:
        self._parent = os.getppid()

    def __call__(self) -> bool:
        return _stops.is_set() or os.getppid() != self._parent
