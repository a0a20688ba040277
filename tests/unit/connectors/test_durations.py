"""Durations and rates as configuration writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import durations


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5), ("250ms", 0.25), ("2m", 120), ("1h", 3600), ("24h", 86_400), ("366d", 31_622_400), ("0s", 0)]
)
def test_a_duration_is_a_whole_number_and_a_unit(text, seconds):
    assert durations.seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", "5 s", " 5s", "5s ", "-5s", "1.5s", "5S", "5sec", "1m30s", "٥s", "1e3s", "5s\n", "9" * 400 + "s"]
)
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"not a valid duration; write a whole number and ms, s, m, h or d, e.g. 5s"):
        durations.seconds(text)


def test_more_than_a_year_is_refused():
    with pytest.raises(ValueError, match="is too long; the maximum is a year"):
        durations.seconds("367d")


@given(st.integers(min_value=0, max_value=366 * 86_400_000))
def test_the_written_form_reads_back_exactly(milliseconds):
    value = milliseconds / 1000
    assert durations.seconds(durations.readable(value)) == value


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "90s"), (120, "2m"), (0.25, "250ms"), (86_400, "1d"), (0, "0s"), (0.001, "1ms")]
)
def test_the_written_form_is_the_shortest(seconds, text):
    assert durations.readable(seconds) == text


def test_a_rate_is_starts_per_duration():
    assert durations.rate("100/10s") == (100, 10.0)
    assert durations.rate("1/250ms") == (1, 0.25)


@pytest.mark.parametrize("text", ["", "100", "100/", "0/10s", "/10s", "-1/10s", "1.5/10s", "100 / 10s", "100/0s", "100/10"])
def test_other_rates_are_refused(text):
    with pytest.raises(ValueError, match=r"10s|duration"):
        durations.rate(text)
