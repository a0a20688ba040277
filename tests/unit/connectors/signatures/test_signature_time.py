"""A signed time stamp counts within 300 s of now, in both directions, the edge included."""

from __future__ import annotations

import pytest

from connectors.delivery import Headers, IngressRequest
from connectors.signatures import TOLERANCE_SECONDS, hubspot, standard_webhooks
from connectors.signatures.checks import timestamp_problem
from tests.support import signing

NOW = 1_700_000_000
SECRET = "a-test-secret"
URL = "https://hooks.example.com/ingress/default/crm"
BODY = b"{}"
EDGES = [(0, True), (-300, True), (300, True), (-301, False), (301, False)]


def verifies_standard(at: float) -> bool:
    headers = signing.standard_webhooks(BODY, at=at)
    return standard_webhooks().verify(IngressRequest("POST", URL, Headers(headers), BODY), [signing.STANDARD_SECRET], NOW).ok


def verifies_hubspot(at: float) -> bool:
    headers = signing.hubspot_v3(BODY, SECRET, URL, at=at)
    return hubspot().verify(IngressRequest("POST", URL, Headers(headers), BODY), [SECRET], NOW).ok


def test_the_tolerance_is_five_minutes() -> None:
    assert TOLERANCE_SECONDS == 300


@pytest.mark.parametrize(("offset", "ok"), EDGES)
def test_the_edge_is_inclusive_on_both_sides(offset: int, ok: bool) -> None:
    assert verifies_standard(NOW + offset) is ok
    assert verifies_hubspot(NOW + offset) is ok


def test_milliseconds_count_to_the_millisecond() -> None:
    assert not verifies_hubspot(NOW - 300.001)


@pytest.mark.parametrize("raw", ["abc", "-1", "1e999", "", " 1700000000", "1700000000.0", "१७०००", "9" * 5000, None])
def test_a_time_stamp_that_is_no_number_does_not_count(raw: str | None) -> None:
    assert timestamp_problem(raw, NOW) is not None


def test_units_are_not_mixed() -> None:
    assert timestamp_problem(str(NOW * 1000), NOW) is not None
    assert timestamp_problem(str(NOW), NOW, per_second=1000) is not None
    assert timestamp_problem(str(NOW * 1000), NOW, per_second=1000) is None


@pytest.mark.parametrize("tolerance", [0, -1, 0.5, True, "300", 10**9, float("nan")])
def test_a_tolerance_that_switches_the_check_off_or_makes_no_sense_is_refused(tolerance: object) -> None:
    with pytest.raises(ValueError, match="tolerance must be"):
        standard_webhooks(tolerance=tolerance)


def test_the_time_stamp_is_part_of_what_is_signed() -> None:
    headers = signing.standard_webhooks(BODY, at=NOW - 400) | {"webhook-timestamp": str(NOW)}
    request = IngressRequest("POST", URL, Headers(headers), BODY)
    assert not standard_webhooks().verify(request, [signing.STANDARD_SECRET], NOW).ok
