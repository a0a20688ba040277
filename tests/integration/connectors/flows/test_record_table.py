"""Flow `record_table` on a real database: rows equal the fold of their facts, a batch takes a handful of statements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from connectors import pack
from connectors.flows.record_fold import UnfoldableChange, properties_of
from connectors.flows.record_table import record_of, record_table
from connectors.models import Record
from connectors.pack import Change, Pack, unsigned
from connectors.registry import installed_packs
from connectors.registry.installed_packs import PackNotLoaded
from projection.exact_json import parse
from projection.facts import Input, RouteFacts, Source
from projection.flows import DeadLetter, Generation, find
from projection.identity import record_key
from projection.testing import make_generation, make_input, make_route
from tests.support import factories


class Shop(Pack):
    """Every member but `event` is a property; `event` is the lifecycle."""

    name = "shop-of-record-table-test"
    signature = unsigned()

    def split(self, body: bytes) -> list[Any]:
        return []

    def read(self, item: Any) -> Any:
        raise KeyError

    def change(self, kind: str, payload: Any) -> Change:
        members = dict(payload)
        lifecycle = members.pop("event", "")
        if kind == "order.broken":
            return Change({"ratio": float("nan")})
        return Change(members, lifecycle, members.get("into"))


@pytest.fixture
def shop(database: None) -> Iterator[RouteFacts]:
    pack.register(Shop)
    installed_packs.of.forget()
    row = factories.install(Shop.name)
    yield make_route(pack_id=row.id, pack_name=Shop.name, event_kind="order.changed", namespace=row.namespace)
    pack.forget(Shop.name)
    installed_packs.of.forget()


def generation(route: RouteFacts, *facts: Input | str | dict[str, int], id: str = "7", kind: str = "order.changed") -> Generation:
    return make_generation(*facts, route=route, source=("order", id), kind=kind, atomic=True)


def run(*generations: Generation) -> None:
    with transaction.atomic():
        record_table(list(generations))


def values(record: Record) -> dict[str, tuple[str, int]]:
    return {name: (held.text, held.ordinal) for name, held in properties_of(record.properties).items()}


def test_it_is_an_atomic_batch_flow() -> None:
    flow = find("record_table")
    assert flow is not None
    assert (flow.atomic, flow.batch) == (True, True)


def test_a_generation_becomes_one_record(shop: RouteFacts) -> None:
    run(generation(shop, '{"event":"created","total":10.10}', '{"total":12345678901234567.89,"note":"é"}'))
    record = Record.objects.get()
    assert (record.namespace, record.pack_name, record.event_kind) == (shop.namespace, Shop.name, "order.changed")
    assert (record.source_type, record.source_id) == ("order", "7")
    assert record.record_key == record_key(shop.namespace, Shop.name, "order.changed", Source("order", "7"))
    assert values(record) == {"total": ("12345678901234567.89", 2), "note": ('"é"', 2)}
    assert (record.deleted, record.lifecycle_ordinal, record.event_count, record.last_ordinal) == (False, 1, 2, 2)
    assert record.created_at is not None
    assert record.updated_at >= record.created_at


def test_accounts_that_number_alike_have_records_of_their_own(shop: RouteFacts) -> None:
    run(*(make_generation({"a": number}, route=shop, source=("order", "7"), account=f"shop-{number}") for number in (1, 2)))
    assert sorted(values(record)["a"][0] for record in Record.objects.all()) == ["1", "2"]


def test_each_input_of_a_wide_lane_is_folded_into_the_record_of_its_own_source(shop: RouteFacts) -> None:
    """The lane of a customer, in which orders come mixed."""
    inputs = [
        make_input({"total": total}, ordinal=place, source=("order", order))
        for place, (order, total) in enumerate([("o1", 1), ("o2", 20), ("o1", 3)], start=1)
    ]
    mixed = make_generation(*inputs, route=shop, source=("order", "o1"), atomic=True)
    mixed.source_lane = "customer:5"
    run(mixed)
    assert {row.source_id: values(row) for row in Record.objects.all()} == {"o1": {"total": ("3", 3)}, "o2": {"total": ("20", 2)}}
    assert [(one.type, one.id) for one in mixed.sources] == [("order", "o1"), ("order", "o2")]
    assert set(Record.objects.values_list("source_lane", flat=True)) == {"customer:5"}


def test_later_generations_fold_into_the_same_row(shop: RouteFacts) -> None:
    run(generation(shop, make_input({"a": 1, "b": 1}, ordinal=10)))
    created = Record.objects.get().created_at
    run(generation(shop, make_input({"a": 2}, ordinal=20)))
    record = Record.objects.get()
    assert values(record) == {"a": ("2", 20), "b": ("1", 10)}
    assert (record.event_count, record.last_ordinal, record.created_at) == (2, 20, created)


def test_a_replay_of_older_facts_overwrites_nothing_newer(shop: RouteFacts) -> None:
    run(generation(shop, make_input({"a": "new", "event": "restored"}, ordinal=20)))
    run(generation(shop, make_input({"a": "old", "b": "old", "event": "deleted"}, ordinal=10, event_id=30, replay_of_event_id=10)))
    record = Record.objects.get()
    assert values(record) == {"a": ('"new"', 20), "b": ('"old"', 10)}
    assert not record.deleted


def test_deletion_restoration_and_merge_reach_the_row(shop: RouteFacts) -> None:
    run(generation(shop, make_input({"a": 1}, ordinal=1), make_input({"event": "deleted"}, ordinal=2)))
    assert Record.objects.get().deleted
    run(generation(shop, make_input({"event": "restored"}, ordinal=3)))
    assert not Record.objects.get().deleted
    run(generation(shop, make_input({"event": "merged", "into": "8"}, ordinal=4)))
    record = Record.objects.get()
    assert (record.merged_into, record.lifecycle_ordinal, values(record)["a"]) == ("8", 4, ("1", 1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7615917337495251231", "7615917337495251232"),
        ("9007199254740993", "9007199254740992"),
        ("a", "A"),
        ("🎩", "💥"),
        ("x", "x "),
    ],
)
def test_ids_that_a_float_or_a_collation_would_equate_are_two_records(shop: RouteFacts, one: str, other: str) -> None:
    run(generation(shop, '{"n":1}', id=one), generation(shop, '{"n":2}', id=other))
    run(generation(shop, make_input('{"n":3}', ordinal=9), id=one))
    assert {record.source_id: values(record)["n"][0] for record in Record.objects.all()} == {one: "3", other: "2"}


@pytest.mark.parametrize("digits", ["10.10", "12345678901234567.89", "1E2", "18446744073709551616", "7615917337495251231"])
def test_digits_survive_the_database_and_the_next_fold(shop: RouteFacts, digits: str) -> None:
    run(generation(shop, f'{{"n": {digits}}}'))
    run(generation(shop, make_input({"other": 1}, ordinal=5)))
    text = Record.objects.get().properties
    assert f'"value":{digits},' in text
    assert values(Record.objects.get())["n"] == (digits, 1)


def test_two_generations_of_one_record_in_a_batch_fold_in_turn(shop: RouteFacts) -> None:
    second = make_route(**{**_members(shop), "key": "second"})
    run(generation(shop, make_input({"a": 1}, ordinal=1)), generation(second, make_input({"a": 2}, ordinal=2)))
    record = Record.objects.get()
    assert (values(record), record.event_count) == ({"a": ("2", 2)}, 2)


def _members(route: RouteFacts) -> dict[str, Any]:
    return {name: getattr(route, name) for name in RouteFacts.__dataclass_fields__}


def test_a_batch_of_a_hundred_takes_three_statements_and_six_when_they_are_new(shop: RouteFacts) -> None:
    installed_packs.of(shop.pack_id)
    batch = [generation(shop, '{"a": 1}', '{"b": 2}', id=str(number)) for number in range(100)]
    for expected in (6, 3):  # new: ids, clock, insert, ids, lock, write
        with transaction.atomic(), CaptureQueriesContext(connection) as queries:
            record_table(batch)
        assert len(queries) == expected, [query["sql"][:80] for query in queries]
    assert Record.objects.count() == 100
    assert set(Record.objects.values_list("event_count", flat=True)) == {4}


def test_a_rolled_back_attempt_leaves_nothing(shop: RouteFacts) -> None:
    with transaction.atomic():
        record_table([generation(shop, '{"a": 1}')])
        assert Record.objects.exists()
        transaction.set_rollback(True)
    assert not Record.objects.exists()


def test_nan_of_a_pack_is_a_dead_letter_that_names_event_and_property(shop: RouteFacts) -> None:
    with pytest.raises(UnfoldableChange, match=r"event 1 of order:7: property 'ratio' cannot be stored: nan is a float"):
        run(generation(shop, '{"a": 1}', kind="order.broken"))
    assert not Record.objects.exists()


@pytest.mark.parametrize("payload", ['{"a":NaN}', '{"a":-Infinity}', "<xml/>"])
def test_a_payload_that_is_not_json_is_a_dead_letter_that_names_the_event(shop: RouteFacts, payload: str) -> None:
    with pytest.raises(UnfoldableChange, match=r"event 1 of order:7: .*not JSON"):
        run(generation(shop, payload))


@pytest.mark.parametrize(
    "error", [KeyError("propertyName"), TypeError("no"), ValueError("no"), AttributeError("no"), ZeroDivisionError("no")]
)
def test_a_change_that_its_pack_cannot_read_is_dead_at_once_because_no_retry_changes_its_inputs(
    shop: RouteFacts, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object) -> Change:
        raise error

    monkeypatch.setattr(Shop, "change", refuse)
    with pytest.raises(DeadLetter, match=rf"event 1 of order:7: pack '{Shop.name}' cannot read the change: {type(error).__name__}"):
        run(generation(shop, '{"a": 1}'))
    assert not Record.objects.exists()


def test_an_error_of_the_database_in_a_pack_is_tried_again(shop: RouteFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> Change:
        raise OperationalError(2006, "Server has gone away")

    monkeypatch.setattr(Shop, "change", away)
    with pytest.raises(OperationalError):
        run(generation(shop, '{"a": 1}'))


def test_a_number_beyond_every_float_is_kept_and_never_infinity(shop: RouteFacts) -> None:
    run(generation(shop, '{"a":1e400}'))
    text = Record.objects.get().properties
    assert "nfinity" not in text
    assert parse(text)["a"]["value"].literal == "1e400"


def test_a_large_record_is_folded_and_read_back_whole(shop: RouteFacts) -> None:
    run(generation(shop, json.dumps({f"p{number}": "x" * 1000 for number in range(1000)})))
    assert len(values(Record.objects.get())) == 1000


def test_a_pack_that_this_process_does_not_have_is_named(shop: RouteFacts) -> None:
    pack.forget(Shop.name)
    installed_packs.of.forget()
    with pytest.raises(PackNotLoaded, match="HEADRACE_APPS"):
        run(generation(shop, "{}"))


def test_the_record_of_a_generation_is_the_same_for_every_version_of_a_route(shop: RouteFacts) -> None:
    newer = make_route(**{**_members(shop), "version": 2, "id": 99, "pack_id": 77})
    one, other = generation(shop, "{}"), generation(newer, "{}")
    assert record_of(one, one.selected) == record_of(other, other.selected)
