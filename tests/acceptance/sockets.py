"""Which process has which connection: the sockets of processes, as the kernel lists them."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

ESTABLISHED = "01"
STREAM, CONNECTED = "0001", "03"
"""Type and state of a Unix socket."""


def connections_of(pids: Iterable[int], url: str) -> dict[int, set[int]]:
    """Inode of each connection to the database of `url` → those of the processes that have it open."""
    port = urlsplit(url).port
    inodes = _over_tcp(port) if port else _over_unix()
    holders: defaultdict[int, set[int]] = defaultdict(set)
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just ended
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):  # closed meanwhile
                    name = str(entry.readlink())
                    if name.startswith("socket:[") and int(name[8:-1]) in inodes:
                        holders[int(name[8:-1])].add(pid)
    return dict(holders)


def _over_tcp(port: int) -> set[int]:
    fields = [line.split() for line in _lines("tcp")]
    return {int(one[9]) for one in fields if one[3] == ESTABLISHED and int(one[2].rpartition(":")[2], 16) == port}


def _over_unix() -> set[int]:
    """Ends without a name: those of clients. (Nothing else of ours has a connected stream.)"""
    fields = [line.split() for line in _lines("unix")]
    return {int(one[6]) for one in fields if one[4:6] == [STREAM, CONNECTED] and len(one) == 7}


def _lines(kind: str) -> list[str]:
    return Path(f"/proc/net/{kind}").read_text(encoding="ascii").splitlines()[1:]
