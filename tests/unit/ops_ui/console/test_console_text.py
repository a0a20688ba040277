"""What the console's filters write, and the geometry of its charts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ops_ui.console.base.tags import badge, digits, exact, short, span, when
from ops_ui.console.lists import charts
from ops_ui.console.lists.keyset import Cursor


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#x27;"),
        ("a\u202eb", 'a<bdi class="control" data-code="U+202E">\u202e</bdi>b'),
        ("a\x00b", 'a<bdi class="control" data-code="U+0000">\u2400</bdi>b'),
        ("line\nline\ttab", "line\nline\ttab"),
        ("\u05d0\u05d1", "\u05d0\u05d1"),
        (9007199254740993, "9007199254740993"),
        (None, ""),
    ],
)
def test_text_is_exact_escaped_and_isolated(text: object, html: str) -> None:
    assert exact(text) == f'<bdi class="exact">{html}</bdi>'


def test_a_text_that_would_widen_its_column_may_break_anywhere() -> None:
    assert exact("x" * 28) == f'<bdi class="exact">{"x" * 28}</bdi>'
    assert exact("x" * 29) == f'<bdi class="exact long">{"x" * 29}</bdi>'


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0 s"),
        (0.4, "0.4 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3_661, "1 h 1 min"),
        (86_400, "1 d"),
        (90_061, "1 d 1 h"),
        (timedelta(minutes=5, seconds=10), "5 min 10 s"),
        (-90, "−1 min 30 s"),
        (None, "–"),
    ],
)
def test_durations_have_two_units(length: float | timedelta | None, text: str) -> None:
    assert span(length) == text


def test_times_are_utc_with_their_microseconds_at_hand() -> None:
    at = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    assert (
        when(at)
        == '<time datetime="2026-05-01T10:00:00.123456+00:00" title="2026-05-01 10:00:00.123456 UTC">2026-05-01 10:00:00</time>'
    )
    assert "none" in when(None)


def test_badges_keys_and_numbers_carry_no_markup_of_others() -> None:
    assert badge('x" onload="y') == '<span class="badge badge-xonloady">x&quot; onload=&quot;y</span>'
    assert "&lt;" in short("<script>alert(1)</script>")
    assert short("csp:" + "a" * 64).startswith('<code class="key" title="csp:aaaa')
    assert digits(9007199254740993) == "9,007,199,254,740,993"


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.mark.parametrize("cursor", [Cursor("after", 5), Cursor("before", 2**63 - 1), Cursor("after", 1, MOMENT)])
def test_a_cursor_survives_its_url(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor


def test_bars_show_small_values_beside_bursts() -> None:
    drawn = charts.bars([0, 1, 1000])
    assert [bar.height for bar in drawn.bars] == [0.0, 1.5, charts.BAR_HEIGHT]
    assert (drawn.peak, drawn.total) == (1000, 1001)
    assert charts.bars([]).total == 0


def test_a_time_line_spans_its_events() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    drawn = charts.timeline([(start, False), (start + timedelta(seconds=30), False), (start + timedelta(seconds=60), True)])
    assert drawn is not None
    assert [(dot.percent, dot.selected) for dot in drawn.dots] == [(0, False), (50, False), (100, True)]
    alone = charts.timeline([(start, True)])
    assert alone is not None
    assert alone.dots[0].percent == 50
    assert charts.timeline([]) is None
