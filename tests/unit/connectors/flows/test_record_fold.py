"""The fold of one record: older never overwrites newer, existence follows the newest lifecycle, every digit stays."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.flows.record_fold import RecordState, UnfoldableChange, fold, properties_of, properties_text
from connectors.pack import Change
from projection.exact_json import parse

Facts = list[tuple[int, Change]]


def folded(*facts: tuple[int, Change], state: RecordState | None = None, source_id: str = "42") -> RecordState:
    return reduce(lambda known, fact: fold(known, *fact, source_id), facts, state or RecordState())


def change(lifecycle: str = "", merged_into: str | None = None, **properties: Any) -> Change:
    return Change(properties, lifecycle, merged_into)


def texts(state: RecordState) -> dict[str, str]:
    return {name: held.text for name, held in state.properties.items()}


def test_the_newest_value_of_each_property_stands_with_the_ordinal_that_set_it() -> None:
    state = folded((1, change(a="x", b="y")), (2, change(a="z")))
    assert {name: (held.text, held.ordinal) for name, held in state.properties.items()} == {"a": ('"z"', 2), "b": ('"y"', 1)}
    assert (state.event_count, state.last_ordinal) == (2, 2)


def test_an_older_fact_never_overwrites_a_newer_value_but_fills_what_is_unset() -> None:
    state = folded((7, change(a="new")), (3, change(a="old", b="first")))
    assert texts(state) == {"a": '"new"', "b": '"first"'}
    assert state.last_ordinal == 7


def test_the_same_fact_again_changes_no_value() -> None:
    once = folded((5, change("deleted", a=1)))
    twice = folded((5, change("deleted", a=1)), state=once)
    assert (twice.properties, twice.deleted, twice.lifecycle_ordinal) == (once.properties, once.deleted, once.lifecycle_ordinal)


def test_a_deletion_keeps_the_properties() -> None:
    state = folded((1, change("created", a=1)), (2, change("deleted")))
    assert state.deleted
    assert texts(state) == {"a": "1"}


@pytest.mark.parametrize("lifecycle", ["restored", "created"])
def test_a_newer_restoration_or_creation_makes_it_live_again(lifecycle: str) -> None:
    assert not folded((1, change("deleted")), (2, change(lifecycle))).deleted


@pytest.mark.parametrize("lifecycle", ["restored", "created"])
def test_an_older_restoration_does_not_undo_a_deletion(lifecycle: str) -> None:
    assert folded((5, change("deleted")), (2, change(lifecycle))).deleted


def test_a_property_change_after_a_deletion_is_folded_but_does_not_revive() -> None:
    state = folded((1, change("deleted")), (2, change(a="late")))
    assert state.deleted
    assert texts(state) == {"a": '"late"'}


def test_an_older_deletion_is_not_applied_to_a_restored_record() -> None:
    assert not folded((9, change("restored")), (4, change("deleted"))).deleted


def test_a_merged_record_names_the_one_it_went_into() -> None:
    state = folded((1, change("created", a=1)), (2, change("merged", "99")))
    assert (state.merged_into, state.deleted, texts(state)) == ("99", False, {"a": "1"})


def test_the_record_that_remains_after_a_merge_keeps_its_existence() -> None:
    state = folded((1, change("created")), (2, change("merged", "42")))
    assert (state.merged_into, state.lifecycle_ordinal, state.event_count) == (None, 1, 2)


def test_a_restored_record_is_no_longer_merged() -> None:
    assert folded((1, change("merged", "99")), (2, change("restored"))).merged_into is None


FACTS: st.SearchStrategy[Facts] = st.lists(
    st.builds(
        Change,
        st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), max_size=3),
        st.sampled_from(["", "", "created", "deleted", "restored", "merged"]),
        st.sampled_from(["42", "99"]),
    ),
    max_size=8,
).map(lambda changes: list(enumerate(changes, start=1)))


@given(FACTS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(facts: Facts, random: Any) -> None:
    shuffled = list(facts)
    random.shuffle(shuffled)
    assert folded(*shuffled) == folded(*facts)


@pytest.mark.parametrize(
    "digits",
    ["7615917337495251231", "9007199254740993", "10.10", "12345678901234567.89", "1E2", "18446744073709551616", "1e400"],
)
def test_digits_are_stored_as_they_were_sent(digits: str) -> None:
    state = folded((1, Change(parse(f'{{"n": {digits}, "deep": [{{"n": {digits}}}]}}'))))
    assert texts(state) == {"n": digits, "deep": f'[{{"n":{digits}}}]'}
    text = properties_text(state.properties)
    assert f'"value":{digits},' in text
    assert properties_of(text) == state.properties


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), Decimal("NaN"), Decimal("Infinity"), 0.1])
def test_a_value_that_is_not_json_or_not_exact_is_refused_by_its_property(value: Any) -> None:
    with pytest.raises(UnfoldableChange, match="property 'amount' cannot be stored"):
        folded((1, change(amount=value)))


def test_any_text_of_names_and_values_can_be_stored() -> None:
    name, value = 'a"\n\x00\ud800👍', "\udfff'\\"
    text = properties_text(folded((1, Change({name: value}))).properties)
    text.encode("utf-8")
    assert json.loads(text) == {name: {"value": value, "ordinal": 1}}


@pytest.mark.parametrize(
    ("bad", "named"), [(Change({}, "vanished"), "'vanished' is unknown"), (Change({}, "merged"), "merged_into")]
)
def test_a_lifecycle_that_makes_no_sense_is_refused(bad: Change, named: str) -> None:
    with pytest.raises(UnfoldableChange, match=named):
        folded((1, bad))


def test_a_property_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(UnfoldableChange, match="is not text"):
        folded((1, Change({7: 1})))


@pytest.mark.parametrize("text", ["[]", '{"a":1}', '{"a":{"value":1}}'])
def test_a_column_that_is_not_ours_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="invalid properties of a record"):
        properties_of(text)
