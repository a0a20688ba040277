"""A database that answers every question and refuses every change, as a failover leaves it behind: for us it is away.

Where one is met, every connection of the process is opened anew (`backends/lasting.py`): the address may lead to another server by now.
"""

from __future__ import annotations

from typing import Final

from django.db.backends.utils import CursorWrapper

from projection.database.catalogue import statement
from projection.database.transactions import error_code

READ_ONLY_CODES: Final = frozenset(
    {
        1290,  # --read-only, --super-read-only
        1792,  # a transaction of a session that may only read
        1836,  # TiDB, and MySQL while it is switched over
    }
)


def is_read_only(error: BaseException) -> bool:
    """Whether the server refused a change because it takes none, whoever asks."""
    return error_code(error) in READ_ONLY_CODES


def ask(cursor: CursorWrapper) -> None:
    """Raises the database's error when it takes no writes, or does not answer. One statement, which changes nothing."""
    cursor.execute(statement("probe_writes"))
