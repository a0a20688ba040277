"""A flow raised: the end of its attempt, with where in its code it was; and who wants to hear of it is told (`flows.on_failure`)."""

from __future__ import annotations

import contextlib
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Final

from projection import flows
from projection.execution.attempts import Attempt, discreet, failure
from projection.flows import FlowOutcome
from projection.foreign_code import FAILURES
from projection.leases import Ending
from projection.logs import log_event
from projection.safe_text import error_text, storable
from projection.states import State

HERE: Final = Path(__file__).parent
ENGINE: Final = frozenset({str(HERE.parent / "flows.py"), contextlib.__file__, *map(str, HERE.glob("*.py"))})
"""Files whose frames lead to the flow, and say nothing about it."""
FIRST_FRAMES, LAST_FRAMES = 5, 15
"""Of a deep stack (a recursion) the middle is left out."""
CAUSES: Final = 3
"""`raise … from …`: so many are followed."""


def failed(attempt: Attempt, error: BaseException, *, database_away: bool = False) -> Ending:
    """As `attempts.failure`, with the frames of the flow's code, and reported to the hooks."""
    ending = failure(attempt, error, database_away=database_away)
    if database_away or (isinstance(error, FlowOutcome) and error.__cause__ is None):
        return ending  # said, not failed
    frames = discreet(attempt, frames_of(error)) if attempt.claimed.route.masks else frames_of(error)
    _report(attempt, error, ending)
    blamed = replace(ending.blamed, frames=frames) if ending.blamed else None
    return replace(ending, frames=frames, blamed=blamed)


def frames_of(error: BaseException) -> str:
    """The frames of the flow's code, outermost first, with those of what caused it; no values, only files, lines and source."""
    parts: list[str] = []
    cause: BaseException | None = error
    for number in range(CAUSES):
        if cause is None:
            break
        stack = list(traceback.extract_tb(cause.__traceback__))
        while stack and stack[0].filename in ENGINE:
            stack.pop(0)
        if stack:
            parts.append((f"caused by {type(cause).__name__}\n" if number else "") + _written(stack))
        cause = cause.__cause__
    return storable("".join(parts).rstrip())


def _written(stack: list[traceback.FrameSummary]) -> str:
    left_out = len(stack) - FIRST_FRAMES - LAST_FRAMES
    if left_out <= 0:
        return "".join(traceback.format_list(stack))
    first, last = (traceback.format_list(part) for part in (stack[:FIRST_FRAMES], stack[-LAST_FRAMES:]))
    return "".join([*first, f"  … {left_out} more frames\n", *last])


def _report(attempt: Attempt, error: BaseException, ending: Ending) -> None:
    item, route = attempt.claimed.item, attempt.claimed.route
    told = flows.Failure(
        error, attempt.flow.name, item.namespace, route.key, item.work_id, item.attempts, ending.state is State.DEAD
    )
    for hook in flows.failure_hooks():
        try:
            hook(told)
        except FAILURES as broken:
            log_event("hook", level="error", work_id=item.work_id, flow=attempt.flow.name, error=error_text(broken))
