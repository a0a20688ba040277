"""Sizes of large tests: a smaller one in every suite, the full one when TEST_SCALE=full is set."""

from __future__ import annotations

import os


def size(usual: int, full: int) -> int:
    """`full` at full scale, else `usual`."""
    return full if os.environ.get("TEST_SCALE") == "full" else usual
