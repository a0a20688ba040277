"""Foreign code: flows, packs and libraries of others, whose every failure ends what they were asked for and nothing else."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Final

FAILURES: Final = (Exception, SystemExit, CancelledError)
"""Whatever foreign code raises of these is its failure, and never the end of the worker, loop or request around it."""
