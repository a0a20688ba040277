"""Histories in which product and reference once disagreed, made short. Each one is named by what went wrong."""

from __future__ import annotations

import pytest

from tests.model.beginning import Beginning
from tests.model.history import play
from tests.model.steps import Advance, Claim, Deliver, End, One, Replay, Step

FOUND: dict[str, list[Step]] = {
    "a late report of a lost lease ended the item when its new lease reported in the same completion": [
        Deliver(), Claim(), End(((0, "deferred"),)), Advance(61), Claim(), End(((0, "failed"),), late=0),
    ],
    "a dead per-event item and its dead replay in one call were both replayed from the replay, which broke on the unique key": [
        Deliver((One(kind=3),)), Claim(), End(((0, "dead"),)), Replay(), Claim(), End(((0, "dead"),)), Replay((0, 1)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_they_agree_now(beginning: Beginning, name: str) -> None:
    play(beginning, FOUND[name])
