"""The stop flag of resident loops inside a django-q2 cluster.

The cluster's Sentinel waits for a running task on stop and gives it no signal, so the loops watch a flag of their own: an event made
before the cluster forks (`manage.py qcluster`), or the death of the process that started them.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.synchronize import Event as EventType

_flag: EventType | None = None


def prepare() -> EventType:
    """Make the flag; call before the cluster forks, so that every worker inherits it."""
    global _flag  # noqa: PLW0603 - one flag for a process and its children
    if _flag is None:
        _flag = multiprocessing.get_context("fork").Event()
    return _flag


def stop_all() -> None:
    """Tell every loop of this cluster to end after what it is doing."""
    if _flag is not None:
        _flag.set()


class StopFlag:
    """True once the cluster stops, or once the process that started this one is gone."""

    def __init__(self) -> None:
        self._parent = os.getppid()

    def __call__(self) -> bool:
        return (_flag is not None and _flag.is_set()) or os.getppid() != self._parent
