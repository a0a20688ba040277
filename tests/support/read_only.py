"""A server that takes no writes, as far as new connections of this process are concerned: what a failover leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from django.db import connections


@contextmanager
def read_only_server(*aliases: str) -> Iterator[None]:
    """Connections of these aliases (all, for none) that are opened inside the block may only read; afterwards the address leads elsewhere.

    Those that were opened inside stay as they are: it is for the product to leave them.
    """
    with ExitStack() as held:
        for alias in aliases or ("default", "ingress"):
            options = connections[alias].settings_dict["OPTIONS"]
            held.enter_context(mock.patch.dict(options, {"init_command": "SET SESSION TRANSACTION READ ONLY"}))
            connections[alias].close()
        yield
