"""Route facts: which kinds a route takes, and the snapshot that later work is made of."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from connectors.routing.route_table import takes
from projection.facts import PER_EVENT, RateLimit, RetryPolicy, RouteFacts, companion_of, flow_name
from projection.testing import make_route

FULL = make_route(
    mode=PER_EVENT,
    provider_kinds=("contact.creation", "kontakt.geändert"),
    settle_seconds=2.5,
    source_id_case="fold",
    target_lane="invoice:{id}",
    queue_class="bulk",
    retry=RetryPolicy(base=0.5, factor=1.5, cap=None, attempts=3, give_up_after=86400.0),
    limit=RateLimit("hubspot-api", 100, 10.0),
    masks=("$.email", "$.phone"),
    connection="crm",
)


@pytest.mark.parametrize(
    ("patterns", "kind", "taken"),
    [
        (("contact.creation",), "contact.creation", True),
        (("contact.creation",), "contact.Creation", False),
        (("contact.creation",), "contact.creation ", False),
        (("a", "b"), "b", True),
        (("*",), "anything at all", True),
        (("contact.*",), "contact.creation", True),
        (("contact.*",), "contact.property.change", True),
        (("contact.*",), "contact.", True),
        (("contact.*",), "contact", False),
        (("contact.*",), "contacts.creation", False),
        (("orders/*",), "orders/create", True),
        (("orders/*",), "orders", False),
        (("jira:*",), "jira:issue_updated", True),
        (("jira:issue_*",), "jira:issue_updated", True),
        (("jira:issue_*",), "jira:comment_created", False),
        ((), "contact.creation", False),
        ((".*",), "contact", False),
    ],
)
def test_kinds_are_taken_exactly_by_star_or_by_prefix(patterns: tuple[str, ...], kind: str, taken: bool) -> None:
    assert takes(make_route(provider_kinds=patterns), kind) is taken


@pytest.mark.parametrize("route", [make_route(), FULL], ids=["defaults", "everything set"])
def test_a_snapshot_brings_every_member_back(route: RouteFacts) -> None:
    assert RouteFacts.from_snapshot(route.snapshot()) == route


def test_equal_routes_have_equal_snapshots_and_any_change_shows() -> None:
    assert replace(FULL).snapshot() == FULL.snapshot()
    for name in RouteFacts.__dataclass_fields__:
        changed = replace(FULL, **{name: object_like(getattr(FULL, name))})
        assert changed.snapshot() != FULL.snapshot(), name


def object_like(value: object) -> object:
    """Another value of the same type."""
    if isinstance(value, RetryPolicy):
        return replace(value, attempts=value.attempts + 1)
    if isinstance(value, RateLimit):
        return None
    if isinstance(value, str):
        return value + "x"
    return (*value, "x") if isinstance(value, tuple) else value + 1


def test_members_of_a_newer_writer_are_ignored() -> None:
    members = json.loads(FULL.snapshot())
    members["colour"] = "red"
    members["retry"]["colour"] = "red"
    members["limit"]["colour"] = "red"
    assert RouteFacts.from_snapshot(json.dumps(members)) == FULL


def test_members_that_an_older_writer_did_not_know_have_their_defaults() -> None:
    members = json.loads(FULL.snapshot())
    for name in ("retry", "limit", "masks", "connection", "queue_class"):
        del members[name]
    found = RouteFacts.from_snapshot(json.dumps(members))
    assert (found.retry, found.limit, found.masks, found.connection, found.queue_class) == (RetryPolicy(), None, (), "", "default")


@pytest.mark.parametrize("text", ["", "null", "[]", "1", "{}", '{"id": 1}', "no json"])
def test_what_is_no_snapshot_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the parser's own text
        RouteFacts.from_snapshot(text)


@pytest.mark.parametrize("name", ["log", "record_table", "crm.contact", "crm.contact.v2"])
def test_flow_names_and_companions_go_both_ways(name: str) -> None:
    assert flow_name(*companion_of(name)) == name


def test_a_limit_of_starts_alone_is_written_as_ever_and_one_of_how_many_at_once_names_it() -> None:
    """Older processes read the first; equal content makes no new version of a route."""
    assert '"limit":{"name":"hubspot-api","per":10.0,"rate":100}' in FULL.snapshot()
    both = replace(FULL, limit=RateLimit("hubspot-api", 100, 10.0, concurrency=8))
    assert RouteFacts.from_snapshot(both.snapshot()) == both
    assert both.snapshot() != FULL.snapshot()
