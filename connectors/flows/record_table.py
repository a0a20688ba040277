"""Flow `record_table`: folds the inputs of a source into one live, browsable record (`connectors.models.Record`).

Atomic: what it writes commits together with the end of the work item, so each fact is folded exactly once. `record_fold` says what
a fact does; the record is known by (namespace, pack name, event kind, account, source type, source id), so it outlives pack upgrades
and new versions of its route, and two routes with one event kind feed the same record. Where a lane is wider than a record, each
input is folded into the record of its own source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connectors.flows.record_fold import RecordState, UnfoldableChange, fold
from connectors.flows.record_store import RecordIdentity, lock_records, read_moments, write_records
from connectors.pack import Change, Pack
from connectors.registry import installed_packs
from projection.exact_json import NotJson
from projection.facts import Input
from projection.flows import Generation, flow
from projection.safe_text import error_text

Facts = list[tuple[Input, Change]]
UNREADABLE: Final = (NotJson, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, RecursionError)
"""What a function of the payload alone raises, and raises again each time. Anything else (the database's errors) may pass."""


@flow("record_table", atomic=True, batch=True)
def record_table(generations: list[Generation]) -> None:
    """Fold all generations: four statements (seven when a record is new), however many there are.

    Raises UnfoldableChange, naming the event, for a payload that is not JSON, one that its pack cannot read as a change, and a change that
    no record can hold (NaN): a dead letter at once, since the same inputs are folded the same way each time.
    """
    facts: dict[RecordIdentity, Facts] = {}
    for generation in generations:
        pack = installed_packs.of(generation.route.pack_id)
        for each in generation.inputs:
            facts.setdefault(record_of(generation, each), []).append((each, _change(pack, each)))
    locked = lock_records(facts)
    moments = read_moments({fact.receipt_id for known in facts.values() for fact, _ in known if fact.receipt_id})
    write_records([(locked[one], _folded(locked[one].state, one, known, moments)) for one, known in facts.items()])


def record_of(generation: Generation, fact: Input) -> RecordIdentity:
    """The record that an input of a generation is about."""
    route, source = generation.route, fact.source
    return RecordIdentity(
        generation.namespace,
        route.pack_name,
        route.event_kind,
        source.account,
        source.type,
        source.id,
        generation.source_lane,
    )


def _change(pack: Pack, fact: Input) -> Change:
    try:
        return pack.change(fact.kind, fact.data)
    except UNREADABLE as error:
        said = str(error) if isinstance(error, NotJson) else f"pack {pack.name!r} cannot read the change: {error_text(error)}"
        raise UnfoldableChange(f"event {fact.event_id} of {fact.source.type}:{fact.source.id}: {said}") from error


def _folded(state: RecordState, identity: RecordIdentity, facts: Facts, moments: Mapping[int, int]) -> RecordState:
    """`moments`: when the facts' receipts arrived."""
    for fact, change in facts:
        at = moments.get(fact.receipt_id)
        try:
            received = None if at is None else (at, fact.receipt_id, fact.item)
            state = fold(state, fact.ordinal, change, identity.source_id, received)
        except UnfoldableChange as error:
            raise UnfoldableChange(f"event {fact.event_id} of {identity.source_type}:{identity.source_id}: {error}") from None
    return state
