"""Multi-row INSERT texts: as few as packets allow, written at the cost of the values that differ.

The driver's own `executemany` makes a literal of every value of every row again. Facts of one admission share most of theirs (route
snapshot, kinds, times, lanes), so here each distinct text and time of a statement becomes a literal once; on 4,400 events that is
half of the client's work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

_VALUES: Final = re.compile(r"(.+\bVALUES\s*)\(\s*%s(?:\s*,\s*%s)*\s*\)(.*)", re.DOTALL | re.IGNORECASE)

Literal = Callable[[Any], bytes]
"""The connection's conversion of one value to an SQL literal."""


def multi_row_texts(statement: str, rows: Iterable[tuple[Any, ...]], literal: Literal, longest: int) -> Iterator[str]:
    """`INSERT … VALUES (%s, …) [ON DUPLICATE KEY …]` as texts with many rows each, of at most `longest` bytes (one row may exceed it).

    Raises ValueError when the statement has anything else than one list of placeholders: nothing else can be repeated.
    """
    found = _VALUES.fullmatch(statement.strip())
    if found is None or "%" in found[2]:
        raise ValueError(f"no multi-row statement: {statement[:80]}")
    head, tail = found[1].encode(), found[2].encode()
    texts: list[bytes] = []
    length = len(head) + len(tail)
    for row in _row_texts(rows, literal):
        if texts and length + len(row) + 1 > longest:
            yield (head + b",".join(texts) + tail).decode()
            texts, length = [], len(head) + len(tail)
        texts.append(row)
        length += len(row) + 1
    if texts:
        yield (head + b",".join(texts) + tail).decode()


def _row_texts(rows: Iterable[tuple[Any, ...]], literal: Literal) -> Iterator[bytes]:
    known: dict[str | datetime, bytes] = {}
    for row in rows:
        values = []
        for value in row:
            kind = type(value)
            if value is None:
                text = b"NULL"
            elif kind is int:
                text = b"%d" % value
            elif kind is str or kind is datetime:  # nothing else: 1, True and 1.0 are one key of a dict
                text = known.get(value) or known.setdefault(value, literal(value))
            else:
                text = literal(value)
            values.append(text)
        yield b"(" + b",".join(values) + b")"
