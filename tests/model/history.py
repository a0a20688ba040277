"""Histories: how random ones are made, and how one is played."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

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

T = TypeVar("T")
LONGEST_PART = 12
PARTS = 5
"""A history is some short lists put together: lists of one would mostly be very short, or never shrink to nothing."""

KINDS_OF_ONE = ((0,), (2,), (0, 2), (1,), (1, 2), (2, 3), (4,), (3, 4, 5), tuple(range(len(KINDS))))
SOURCES_OF_ONE = ((0,), (0, 2), (0, 1), tuple(range(len(SOURCES))))
"""A history is about few records and kinds, so that what it does meets on the same projections and lanes."""

_which = st.integers(0, 11)
_some = st.lists(_which, min_size=1, max_size=3).map(tuple)
_ends = st.lists(st.tuples(_which, st.sampled_from(ENDS)), min_size=1, max_size=4).map(tuple)
_deaths = st.lists(st.tuples(_which, st.just("dead")), min_size=1, max_size=3).map(tuple)
_often = (
    *[st.builds(Claim, limit=st.sampled_from([1, 2, 3, 100]))] * 10,
    *[st.builds(End, ends=_ends)] * 7,
    *[st.builds(End, ends=_deaths)] * 4,
    *[st.builds(Replay, which=_some, retarget=st.booleans())] * 6,
    *[st.builds(Advance, seconds=st.sampled_from([0.000001, 1, 4.999999, 5, 30, 60, 61, 3600]))] * 5,
)
_rare = (
    st.builds(RouteReceipts, batch=st.integers(1, 3)),
    st.builds(Zombie, which=_which, how=st.sampled_from(ENDS)),
    st.builds(Beat, which=_which),
    st.just(Rescue()),
    st.builds(Cancel, which=_which),
    st.builds(Discard, which=_which),
    st.builds(RetryNow, which=_which),
    st.one_of(st.builds(Hold, which=_which), st.builds(Release, which=_which)),
    st.builds(Pause, which=_which),
    st.one_of(st.builds(UpgradeRoute, which=_which), st.just(UpgradePack())),
    st.one_of(st.builds(RetireRoute, which=_which), st.builds(UpgradeRoute, which=_which), st.just(Sweep())),
    st.just(Repair()),
    # Prune goes here once it is built: a step that removes the oldest end of a projection from both, and duplicates after it.
)


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Steps drawn by weight; each history has a few of the rare ones, so that these meet each other."""
    fresh = st.builds(
        One,
        kind=st.sampled_from(draw(st.sampled_from(KINDS_OF_ONE))),
        source=st.sampled_from(draw(st.sampled_from(SOURCES_OF_ONE))),
        laneless=st.sampled_from([False] * 9 + [True]),
    )
    again = st.builds(One, again=_which, other=st.booleans())
    items = st.lists(st.sampled_from((fresh, fresh, fresh, again)).flatmap(_itself), min_size=1, max_size=4).map(tuple)
    deliver = st.builds(Deliver, items=items, routed=st.sampled_from([True, True, True, False]), stale=st.booleans())
    rare = draw(st.lists(st.sampled_from(_rare), max_size=4))
    step = st.sampled_from((*[deliver] * 14, *_often, *rare * 3)).flatmap(_itself)
    parts = draw(st.tuples(*[st.lists(step, max_size=LONGEST_PART)] * PARTS))
    return list(chain.from_iterable(parts))


def _itself(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    return strategy


def play(beginning: Beginning, steps: Sequence[Step]) -> None:
    """Take the steps one by one on a fresh beginning, compare after each, then drain and prove the invariants."""
    world = beginning.world()
    for step in steps:
        step.take(world)
        world.compare()
    world.finish()
