"""Histories in which product and reference once disagreed, made short. Each one is named by what went wrong."""

from __future__ import annotations

import pytest

from tests.model.beginning import Beginning
from tests.model.history import play
from tests.model.steps import (
    Advance,
    Claim,
    Deliver,
    End,
    OldBinaryEnds,
    OldBinaryLeases,
    OldBinaryWrites,
    One,
    Repair,
    Replay,
    Step,
)

FOUND: dict[str, list[Step]] = {
    "a late report of a lost lease ended the item when its new lease reported in the same completion": [
        Deliver(), Claim(), End(((0, "deferred"),)), Advance(61), Claim(), End(((0, "failed"),), late=0),
    ],
    "a dead per-event item and its dead replay in one call were both replayed from the replay, which broke on the unique key": [
        Deliver((One(kind=3),)), Claim(), End(((0, "dead"),)), Replay(), Claim(), End(((0, "dead"),)), Replay((0, 1)),
    ],
}  # fmt: skip


NOT_YET: dict[str, tuple[list[Step], str]] = {
    "a claim of one takes nothing while an old binary runs the item that is due first": (
        [OldBinaryWrites(kind=3), Repair(), OldBinaryLeases(), Advance(), Deliver((One(kind=3),), at=1), Claim()],
        "preselect_work_items offers items whose event has a fresh legacy lease; they use up the limit of the claim",
    ),
    "what an old binary finished is run a second time": (
        [OldBinaryWrites(kind=3), Repair(), OldBinaryLeases(), OldBinaryEnds(), Claim()],
        "nothing copies the result of an event-owned execution to the unclaimed work item (protocol 4, Rolling upgrade)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_they_agree_now(beginning: Beginning, name: str) -> None:
    play(beginning, FOUND[name])


@pytest.mark.parametrize(
    "steps", [pytest.param(steps, id=name, marks=pytest.mark.xfail(reason=why)) for name, (steps, why) in NOT_YET.items()]
)
def test_they_do_not_agree_yet(beginning: Beginning, steps: list[Step]) -> None:
    play(beginning, steps)
