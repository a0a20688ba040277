"""Histories in which product and reference once disagreed, made short. Each one is named by what went wrong."""

from __future__ import annotations

import pytest

from tests.model.beginning import Beginning
from tests.model.history import play
from tests.model.steps import (
    Advance,
    BeforeActivation,
    Claim,
    Deliver,
    End,
    OldBinaryEnds,
    OldBinaryLeases,
    OldBinaryWrites,
    One,
    Pause,
    Repair,
    Replay,
    Resume,
    Step,
    StepBack,
)

FOUND: dict[str, list[Step]] = {
    "a late report of a lost lease ended the item when its new lease reported in the same completion": [
        Deliver(), Claim(), End(((0, "deferred"),)), Advance(61), Claim(), End(((0, "failed"),), late=0),
    ],
    "a dead per-event item and its dead replay in one call were both replayed from the replay, which broke on the unique key": [
        Deliver((One(kind=3),)), Claim(), End(((0, "dead"),)), Replay(), Claim(), End(((0, "dead"),)), Replay((0, 1)),
    ],
    "a claim of one took nothing while an old binary ran the item that is due first": [
        OldBinaryWrites(kind=3), Repair(), OldBinaryLeases(), Advance(), Deliver((One(kind=3),), at=1), Claim(),
    ],
    "a claim that copied a result left what waited behind it, in another queue class": [
        BeforeActivation(), Deliver((One(), One(kind=3))), OldBinaryLeases(), OldBinaryEnds(),
    ],
    "what an old binary finished ran a second time": [
        OldBinaryWrites(kind=3), Repair(), OldBinaryLeases(), OldBinaryEnds(), Claim(),
    ],
    "a claim took nothing of the second of two set-aside classes that it met for the first time together": [
        Pause(), Deliver((One(kind=2, laneless=True),)), Claim(), Resume(), Claim(100),
    ],
    "a repair left a whole namespace alone because one of its projections could not be made": [
        Deliver((One(kind=1),), at=1), OldBinaryWrites(kind=1), Advance(4.999999), Deliver((One(kind=1), One(again=3))),
        OldBinaryWrites(at=1), StepBack(), Deliver((One(kind=1),)), OldBinaryWrites(kind=1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_they_agree_now(beginning: Beginning, name: str) -> None:
    play(beginning, FOUND[name])
