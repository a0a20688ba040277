"""Windows tile a text without a gap in both directions, and a search finds each hit once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_ui.console.payloads import window as payload_window
from ops_ui.console.payloads.json_lines import Lines, as_sent
from ops_ui.console.payloads.marks import Hit, json_piece, plain_piece
from ops_ui.console.payloads.window import around, hits_within, search, window


@pytest.fixture(autouse=True, scope="module")
def small_windows() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payload_window, "LINES", 4)
        patch.setattr(payload_window, "CHARACTERS", 10)
        yield


def forwards(lines: Lines) -> list[payload_window.Window]:
    found = [window(lines, 0)]
    while found[-1].next is not None:
        found.append(window(lines, found[-1].next))
    return found


@given(st.text("ab\n", max_size=80))
def test_the_windows_hold_each_character_once(text: str) -> None:
    lines = as_sent(text)
    parts: dict[int, str] = {}
    for one in forwards(lines):
        for piece in one.pieces:
            parts[piece.line] = parts.get(piece.line, "") + text[piece.start : piece.end]
    assert "\n".join(parts[line] for line in sorted(parts)) == text


@given(st.text("ab\n", max_size=80), st.integers(0, 90))
def test_the_way_back_leads_to_the_start_and_leaves_nothing_out(text: str, at: int) -> None:
    lines = as_sent(text)
    here = window(lines, at)
    for _ in range(len(text) + 2):
        if here.previous is None:
            break
        before = window(lines, here.previous)
        assert before.start < here.start
        assert before.next is None or before.next >= here.start
        here = before
    assert here.start == 0


@given(st.text("ab\n", max_size=80), st.integers(0, 80))
def test_a_window_around_a_place_shows_it(text: str, place: int) -> None:
    place = min(place, max(len(text) - 1, 0))
    found = window(as_sent(text), around(as_sent(text), place))
    assert found.start <= place <= found.end


@given(st.text("abAB", max_size=40), st.text("abAB", min_size=1, max_size=3))
def test_a_search_finds_what_a_plain_one_does(text: str, needle: str) -> None:
    places = search(text, needle)
    assert len(places) == text.lower().count(needle.lower())
    assert all(text[place : place + len(needle)].lower() == needle.lower() for place in places)


def test_a_search_keeps_its_places_where_lower_case_is_longer() -> None:
    assert search("İİx", "X") == [2]
    assert search("nothing", "") == []
    assert search("İ", "i") == [0]


def test_a_search_stops_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_window, "HITS", 3)
    assert search("aaaaaaaa", "a") == [0, 1, 2, 3]


@pytest.mark.timeout(20)
def test_a_search_is_linear() -> None:
    assert search("a" * 3_000_000, "a" * 199 + "b") == []


def test_hits_that_reach_into_a_part_are_its_own() -> None:
    assert list(hits_within([0, 5, 9], 3, 2, 9)) == [0, 1]
    assert list(hits_within([0, 5, 9], 3, 3, 5)) == []
    assert list(hits_within([], 3, 0, 5)) == []


def test_a_piece_is_escaped_isolated_and_marked() -> None:
    text = '"<b>":"a\u202eb", 1'
    html = json_piece(text, 0, 0, len(text), [Hit(1, 4), Hit(7, 10, is_current=True)])
    assert html == (
        '<bdi class="json-name">&quot;<mark class="hit">&lt;b&gt;</mark>&quot;</bdi><span class="json-colon">:</span>'
        '<bdi class="json-text">&quot;<mark class="hit hit-current" id="hit">a<bdi class="control" data-code="U+202E">\u202e</bdi>b</mark>'
        "&quot;</bdi>, 1"
    )
    assert "json-colon" not in json_piece('"a": 1', 0, 0, 6, ())
    assert plain_piece("a<b", 1, 3, [Hit(0, 2)]) == '<bdi><mark class="hit">&lt;</mark>b</bdi>'


def test_a_hit_over_several_tokens_has_one_anchor() -> None:
    text = '{"a":1}'
    html = json_piece(text, 0, 0, len(text), [Hit(2, 6, is_current=True)])
    assert html.count('id="hit"') == 1
    assert html.count("<mark") == 2


def test_a_piece_that_begins_within_a_string_knows_it() -> None:
    text = '"one, two": 3'
    assert json_piece(text, 0, 6, len(text), ()).startswith('<bdi class="json-name">two&quot;</bdi>')


@pytest.mark.parametrize("code", [0x00, 0x0D, 0x1B, 0xAD, 0x061C, 0x200B, 0x202E, 0x2066, 0x3164, 0xFEFF, 0xE0041])
def test_invisible_characters_are_made_visible(code: int) -> None:
    assert f'data-code="U+{code:04X}"' in plain_piece(f"a{chr(code)}b", 0, 3, ())
