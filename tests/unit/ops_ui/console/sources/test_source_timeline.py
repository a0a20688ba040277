"""The time line of a source: where moments lie, which waits are shortened, and which bars lie beside one another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ops_ui.console.sources.reads import Generation, History
from ops_ui.console.sources.timeline import FIRST_TRACK_Y, GAPS, TRACK_HEIGHT, TRACKS, Axis, timeline
from projection.models import Event, WorkFailure, WorkItem

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def event(number: int, seconds: float, **members: Any) -> Event:
    return Event(**{"id": number, "enqueue_ordinal": number, "route_id": 1, "created_date": at(seconds)} | members)


def generation(number: int, *inputs: Event, failures: tuple[float, ...] = (), **members: Any) -> Generation:
    item = WorkItem(
        **{"id": number, "work_id": f"w{number}", "state": "processed", "created_date": inputs[-1].created_date} | members
    )
    return Generation(item, inputs, True, tuple(WorkFailure(created_date=at(seconds)) for seconds in failures))


def history(*generations: Generation) -> History:
    events = [event for one in generations for event in one.inputs]
    return History(events, False, {}, list(generations), [])


def test_moments_lie_in_proportion_to_their_times() -> None:
    axis = Axis([at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8)])
    assert [axis.at(at(n)) for n in (0, 2, 4, 8)] == [0, 25, 50, 100]
    assert axis.gaps == []
    assert Axis([at(5)]).at(at(5)) == 50


def test_a_long_wait_between_bursts_is_shortened_and_says_how_long_it_was() -> None:
    burst = [at(n) for n in range(10)]
    axis = Axis([*burst, *(at(n + 86_400) for n in range(10))])
    (gap,) = axis.gaps
    assert gap.length == timedelta(seconds=86_400 - 9)
    assert 45 < gap.x < 55
    assert axis.at(at(9)) < gap.x < axis.at(at(86_400))
    assert axis.at(at(86_409)) == 100


def test_only_so_many_waits_are_shortened() -> None:
    moments = [at(10_000 * place + second) for place in range(30) for second in range(5)]
    assert len(Axis(moments).gaps) <= GAPS


def test_a_bar_spans_its_inputs_its_wait_and_its_run() -> None:
    inputs = (event(1, 0), event(2, 2))
    one = generation(7, *inputs, failures=(6,), first_claimed_at=at(4), claimed_at=at(7), terminal_at=at(8))
    picture = timeline(history(one), at(100))
    assert picture is not None
    (bar,) = picture.bars
    assert (bar.x1, bar.x2, bar.claimed, bar.ended, bar.marks) == (0, 25, 50, 100, (75,))
    assert (bar.y, picture.height) == (FIRST_TRACK_Y, FIRST_TRACK_Y + TRACK_HEIGHT)
    assert picture.sentence == "2 events; 1 processed, 1 failed attempt."


def test_live_work_reaches_until_now() -> None:
    picture = timeline(history(generation(1, event(1, 0), state="pending")), at(10))
    assert picture is not None
    assert (picture.bars[0].ended, picture.bars[0].claimed, picture.last) == (100, None, at(10))


def test_bars_that_overlap_lie_on_tracks_of_their_own() -> None:
    active = generation(1, event(1, 0), first_claimed_at=at(5), terminal_at=at(50))
    queued = generation(2, event(2, 10), state="blocked")
    later = generation(3, event(3, 60), state="dead", terminal_at=at(70))
    picture = timeline(history(active, queued, later), at(100))
    assert picture is not None
    assert [(bar.generation.item.id, (bar.y - FIRST_TRACK_Y) // TRACK_HEIGHT) for bar in picture.bars] == [(1, 0), (2, 1), (3, 0)]


def test_too_many_bars_beside_one_another_are_cut() -> None:
    picture = timeline(history(*(generation(n, event(n, n), state="pending") for n in range(TRACKS + 3))), at(100))
    assert picture is not None
    assert (len(picture.bars), picture.is_cut) == (TRACKS, True)


def test_events_of_replays_and_unrouted_ones_are_told_apart() -> None:
    events = [event(1, 0), event(2, 1, replay_of_event_id=1), event(3, 2, route_id=None)]
    picture = timeline(History(events, False, {}, [], []), at(5))
    assert picture is not None
    assert [dot.kind for dot in picture.dots] == ["event", "replay", "unrouted"]
    assert picture.sentence == "3 events; no work."
    assert timeline(History([], False, {}, [], []), at(5)) is None
