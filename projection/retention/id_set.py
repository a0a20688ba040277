"""A set of row ids at one bit each where they lie close together: what a dry run remembers of millions of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

CHUNK: Final = 1024
"""Ids of one bit mask."""


class IdSet:
    """Ids that were added; 500,000 that follow each other take about 100 KiB."""

    def __init__(self) -> None:
        self._chunks: dict[int, int] = {}

    def add(self, one: int) -> bool:
        """Whether it was not there yet."""
        chunk, bit = one // CHUNK, 1 << one % CHUNK
        known = self._chunks.get(chunk, 0)
        self._chunks[chunk] = known | bit
        return not known & bit

    def __contains__(self, one: int) -> bool:
        return bool(self._chunks.get(one // CHUNK, 0) & 1 << one % CHUNK)

    def __iter__(self) -> Iterator[int]:
        """Ascending."""
        for chunk in sorted(self._chunks):
            mask = self._chunks[chunk]
            yield from (chunk * CHUNK + bit for bit in range(CHUNK) if mask >> bit & 1)

    def __len__(self) -> int:
        return sum(mask.bit_count() for mask in self._chunks.values())
