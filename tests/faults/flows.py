"""One flow of each form. Each execution leaves a row with the ordinals of its inputs, so that a test can count what took effect.

What an execution does besides is in the payload of its selected event (`outcome`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection

from connectors import audit_log
from projection import flows
from projection.flows import DeadLetter, Generation, Skip
from tests.faults.orders import STOP
from tests.faults.victim import drop, to_itself

_dropped: Final[set[str]] = set()
"""Items whose connection was ended."""


def ran(form: str, generation: Generation) -> None:
    """The flow's own write, then the outcome. `retry` and `stop` are of the first attempt alone, `dead` not of a replay, `drop` of the
    first run of each item in a process."""
    inputs = [one.ordinal for one in generation.inputs]
    audit_log.record("flow", f"ran.{form}", generation.work_id, detail={"inputs": inputs, "attempt": generation.attempt})
    outcome = generation.selected.data.get("outcome")
    if outcome == "dead" and generation.replay_of_work_id is None:
        raise DeadLetter("as the test wants it")
    if outcome == "skip":
        raise Skip("as the test wants it")
    if outcome == "retry" and generation.attempt == 1:
        raise ValueError("as the test wants it")
    if outcome == "stop" and generation.attempt == 1:
        to_itself(STOP)
    if outcome == "drop" and generation.work_id not in _dropped:
        _dropped.add(generation.work_id)
        drop(connection)


def atomic(generation: Generation) -> None:
    """Its row commits with the end of its work, or not at all."""
    ran("atomic", generation)


def tail(generation: Generation) -> None:
    """Its row commits with the end of its work, in the tail that it opens."""
    with generation.commit():
        ran("tail", generation)


def plain(generation: Generation) -> None:
    """Its row commits by itself: at least once."""
    ran("plain", generation)


RUN: Final[dict[str, Callable[[Generation], None]]] = {"atomic": atomic, "tail": tail, "plain": plain}
"""By form."""


def register() -> None:
    """Make them known to this process, as `<form>.write`."""
    for form, run in RUN.items():
        flows.flow(f"{form}.write", atomic=form == "atomic")(run)


@contextmanager
def registered() -> Iterator[None]:
    """Known inside the block, and as before behind it."""
    new = [name for form in RUN if flows.find(name := f"{form}.write") is None]
    register()
    try:
        yield
    finally:
        for name in new:
            flows.forget(name)
