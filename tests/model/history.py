"""Histories: how random ones are made, and how one is played."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from hypothesis import strategies as st

from tests.model.steps import (
    ENDS,
    Advance,
    Beat,
    Cancel,
    Claim,
    Deliver,
    Discard,
    End,
    Hold,
    One,
    Pause,
    Release,
    Repair,
    Replay,
    Rescue,
    RetireRoute,
    RetryNow,
    RouteReceipts,
    Step,
    Sweep,
    UpgradePack,
    UpgradeRoute,
    Zombie,
)
from tests.model.world import KINDS, SOURCES, Beginning

LONGEST_PART = 12
PARTS = 4
"""A history is some short lists put together: lists of one would mostly be very short, or never shrink to nothing."""

_which = st.integers(0, 11)
_fresh = st.builds(
    One, kind=st.integers(0, len(KINDS) - 1), source=st.integers(0, len(SOURCES) - 1), laneless=st.sampled_from([False] * 9 + [True])
)
_again = st.builds(One, again=_which, other=st.booleans())
_items = st.lists(st.one_of(_fresh, _fresh, _fresh, _again), min_size=1, max_size=4).map(tuple)
_deliver = st.builds(Deliver, items=_items, routed=st.sampled_from([True, True, True, False]), stale=st.booleans())
_ends = st.lists(st.tuples(_which, st.sampled_from(ENDS)), min_size=1, max_size=4).map(tuple)
_end = st.builds(End, ends=_ends)
_die = st.builds(End, ends=st.lists(st.tuples(_which, st.just("dead")), min_size=1, max_size=3).map(tuple))
_claim = st.builds(Claim, limit=st.sampled_from([1, 2, 3, 100]))
_advance = st.builds(Advance, seconds=st.sampled_from([0.000001, 1, 4.999999, 5, 30, 60, 61, 3600]))
_replay = st.builds(Replay, which=st.lists(_which, min_size=1, max_size=3).map(tuple), retarget=st.booleans())
_rare = st.one_of(
    st.builds(Beat, which=_which),
    st.builds(Discard, which=_which),
    st.builds(RetryNow, which=_which),
    st.builds(Hold, which=_which),
    st.builds(Release, which=_which),
    st.builds(Pause, which=_which),
    st.builds(UpgradeRoute, which=_which),
    st.builds(RetireRoute, which=_which),
    st.just(UpgradePack()),
    st.just(Sweep()),
    st.just(Repair()),
    # Prune goes here once it is built: a step that removes the oldest end of a projection from both, and duplicates after it.
)
_steps = st.one_of(
    *[_deliver] * 6,
    *[_claim] * 4,
    *[_end] * 3,
    _die,
    *[_advance] * 2,
    *[_replay] * 2,
    *[_rare] * 3,
    st.builds(RouteReceipts, batch=st.integers(1, 3)),
    st.builds(Zombie, which=_which, how=st.sampled_from(ENDS)),
    st.just(Rescue()),
    st.builds(Cancel, which=_which),
)


def histories() -> st.SearchStrategy[list[Step]]:
    part = st.lists(_steps, max_size=LONGEST_PART)
    return st.tuples(*[part] * PARTS).map(lambda parts: list(chain.from_iterable(parts)))


def play(beginning: Beginning, steps: Sequence[Step]) -> None:
    """Take the steps one by one on a fresh beginning, compare after each, then drain and prove the invariants."""
    world = beginning.world()
    for step in steps:
        step.take(world)
        world.compare()
    world.finish()
