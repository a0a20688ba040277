"""How long a part that keeps dying waits."""

from __future__ import annotations

from ops_ui.start.parts import LONGEST_PAUSE_SECONDS, pause_seconds


def test_the_pause_doubles_up_to_its_limit() -> None:
    assert [pause_seconds(failures) for failures in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert pause_seconds(10) == LONGEST_PAUSE_SECONDS
    assert pause_seconds(1_000_000) == LONGEST_PAUSE_SECONDS
