"""What a record is after one more fact: a pure fold, whose result does not depend on the order in which the facts arrive.

Every decision is by the ordinal of the fact (its place in the namespace's admission order), never by time or arrival:

- a property keeps the value of the newest fact that set it; an older fact (a replay) never overwrites it;
- the record's existence follows the newest fact with a lifecycle: `created` and `restored` make it live, `deleted` marks it deleted
  (its properties stay), `merged` names the record it went into;
- a property change that is newer than a deletion is folded, but does not revive the record: only `restored` or `created` does;
- a record that is said to be merged into itself is the one that remains: no change of its existence;
- the same fact folded again changes nothing but the count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from connectors.pack import Change
from projection.exact_json import NoExactJson, dump, parse
from projection.flows import DeadLetter

LIFECYCLES: Final = frozenset({"", "created", "restored", "deleted", "merged"})


class UnfoldableChange(DeadLetter, ValueError):
    """No record can hold the change; the message says why. Its inputs never change, so no retry helps: correct the pack, then replay."""


@dataclass(frozen=True, slots=True)
class SetValue:
    """A property's value as exact JSON text, and the ordinal of the fact that set it."""

    text: str
    ordinal: int


@dataclass(frozen=True, slots=True)
class RecordState:
    """The folded part of a live record; the empty state is a record that nothing is known of yet."""

    properties: Mapping[str, SetValue] = field(default_factory=dict)
    deleted: bool = False
    merged_into: str | None = None
    lifecycle_ordinal: int = 0
    event_count: int = 0
    last_ordinal: int = 0


def fold(state: RecordState, ordinal: int, change: Change, source_id: str) -> RecordState:
    """The state after the fact at `ordinal`, which makes `change` to record `source_id`. Raises UnfoldableChange."""
    after = replace(
        state,
        properties=_with_properties(state.properties, ordinal, change.properties),
        event_count=state.event_count + 1,
        last_ordinal=max(state.last_ordinal, ordinal),
    )
    return _with_lifecycle(after, ordinal, change, source_id)


def _with_properties(known: Mapping[str, SetValue], ordinal: int, changed: Mapping[str, object]) -> Mapping[str, SetValue]:
    newer = {
        name: SetValue(_exact(name, value), ordinal)
        for name, value in changed.items()
        if name not in known or known[name].ordinal <= ordinal
    }
    return {**known, **newer} if newer else known


def _exact(name: object, value: object) -> str:
    if not isinstance(name, str):
        raise UnfoldableChange(f"property name {name!r} is not text")
    try:
        return dump(value)
    except NoExactJson as error:
        raise UnfoldableChange(f"property {name!r} cannot be stored: {error}") from None


def _with_lifecycle(state: RecordState, ordinal: int, change: Change, source_id: str) -> RecordState:
    if change.lifecycle not in LIFECYCLES:
        raise UnfoldableChange(f"lifecycle {change.lifecycle!r} is unknown; use one of {', '.join(sorted(LIFECYCLES - {''}))}")
    if change.lifecycle == "merged" and not change.merged_into:
        raise UnfoldableChange("lifecycle 'merged' needs merged_into, the id of the record that remains")
    remains = change.lifecycle == "merged" and change.merged_into == source_id
    if not change.lifecycle or remains or ordinal < state.lifecycle_ordinal:
        return state
    return replace(
        state,
        deleted=change.lifecycle == "deleted",
        merged_into=change.merged_into if change.lifecycle == "merged" else None,
        lifecycle_ordinal=ordinal,
    )


def properties_text(properties: Mapping[str, SetValue]) -> str:
    """The column text: a JSON object, property → {"value": exact JSON, "ordinal": the fact that set it}."""
    members = (f'{dump(name)}:{{"value":{held.text},"ordinal":{held.ordinal}}}' for name, held in properties.items())
    return "{" + ",".join(members) + "}"


def properties_of(text: str) -> dict[str, SetValue]:
    """The properties of a column text. Raises ValueError when the text is none of ours."""
    try:
        return {name: SetValue(dump(held["value"]), held["ordinal"]) for name, held in parse(text).items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"invalid properties of a record: {error!r}") from error
