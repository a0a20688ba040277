"""What a record is after one more fact: a pure fold, whose result does not depend on the order in which the facts arrive.

Every decision is by the order of *receipt* (when its receipt arrived, receipt id, item), so that a fact that was admitted late (routed
by a repair, accepted by reverify, re-routed, read again) is folded at its own place; where that is not known of both, by the ordinal
(its place in the namespace's admission order). Never by the provider's time:

- a property keeps the value of the newest fact that set it; an older fact (a replay, a late one) never overwrites it;
- the record's existence follows the newest fact with a lifecycle: `created` and `restored` make it live, `deleted` marks it deleted
  (its properties stay), `merged` names the record it went into;
- a property change that is newer than a deletion is folded, but does not revive the record: only `restored` or `created` does;
- a record that is said to be merged into itself is the one that remains: no change of its existence;
- the same fact folded again changes nothing but the count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from connectors.pack import Change
from projection.exact_json import NoExactJson, dump, parse
from projection.flows import DeadLetter

LIFECYCLES: Final = frozenset({"", "created", "restored", "deleted", "merged"})


class UnfoldableChange(DeadLetter, ValueError):
    """No record can hold the change; the message says why. Its inputs never change, so no retry helps: correct the pack, then replay."""


Received = tuple[int, int, int]
"""The place of a fact in the order of receipt: microseconds since 1970, receipt id, item."""


@dataclass(frozen=True, slots=True)
class SetValue:
    """A property's value as exact JSON text, and the fact that set it. `received` None: it was set before that was kept."""

    text: str
    ordinal: int
    received: Received | None = None


@dataclass(frozen=True, slots=True)
class RecordState:
    """The folded part of a live record; the empty state is a record that nothing is known of yet."""

    properties: Mapping[str, SetValue] = field(default_factory=dict)
    deleted: bool = False
    merged_into: str | None = None
    lifecycle_ordinal: int = 0
    event_count: int = 0
    last_ordinal: int = 0
    lifecycle_received: Received | None = None
    newest_received: Received | None = None
    late_count: int = 0
    """Facts that were admitted after younger ones of the record."""


def fold(state: RecordState, ordinal: int, change: Change, source_id: str, received: Received | None = None) -> RecordState:
    """The state after the fact at `ordinal`, which makes `change` to record `source_id`. Raises UnfoldableChange."""
    newest = state.newest_received
    is_late = received is not None and newest is not None and received < newest and ordinal > state.last_ordinal
    after = replace(
        state,
        properties=_with_properties(state.properties, SetValue("", ordinal, received), change.properties),
        event_count=state.event_count + 1,
        last_ordinal=max(state.last_ordinal, ordinal),
        newest_received=max(filter(None, (newest, received)), default=None),
        late_count=state.late_count + is_late,
    )
    return _with_lifecycle(after, ordinal, change, source_id, received)


def is_older(ordinal: int, received: Received | None, than_ordinal: int, than_received: Received | None) -> bool:
    """Whether a fact is older than another one, by the order of receipt where both have theirs."""
    if received is None or than_received is None:
        return ordinal < than_ordinal
    return (received, ordinal) < (than_received, than_ordinal)


def _with_properties(known: Mapping[str, SetValue], fact: SetValue, changed: Mapping[str, object]) -> Mapping[str, SetValue]:
    """`fact` says which one sets them."""
    newer = {
        name: replace(fact, text=_exact(name, value))
        for name, value in changed.items()
        if name not in known or not is_older(fact.ordinal, fact.received, known[name].ordinal, known[name].received)
    }
    return {**known, **newer} if newer else known


def _exact(name: object, value: object) -> str:
    if not isinstance(name, str):
        raise UnfoldableChange(f"property name {name!r} is not text")
    try:
        return dump(value)
    except NoExactJson as error:
        raise UnfoldableChange(f"property {name!r} cannot be stored: {error}") from None


def _with_lifecycle(state: RecordState, ordinal: int, change: Change, source_id: str, received: Received | None) -> RecordState:
    if change.lifecycle not in LIFECYCLES:
        raise UnfoldableChange(f"lifecycle {change.lifecycle!r} is unknown; use one of {', '.join(sorted(LIFECYCLES - {''}))}")
    if change.lifecycle == "merged" and not change.merged_into:
        raise UnfoldableChange("lifecycle 'merged' needs merged_into, the id of the record that remains")
    remains = change.lifecycle == "merged" and change.merged_into == source_id
    if not change.lifecycle or remains or is_older(ordinal, received, state.lifecycle_ordinal, state.lifecycle_received):
        return state
    return replace(
        state,
        deleted=change.lifecycle == "deleted",
        merged_into=change.merged_into if change.lifecycle == "merged" else None,
        lifecycle_ordinal=ordinal,
        lifecycle_received=received,
    )


def properties_text(properties: Mapping[str, SetValue]) -> str:
    """The column text: a JSON object, property → {"value": exact JSON, "ordinal": of the fact that set it, "received": its place}."""
    return "{" + ",".join(f"{dump(name)}:{_member(held)}" for name, held in properties.items()) + "}"


def _member(held: SetValue) -> str:
    received = f',"received":[{",".join(map(str, held.received))}]' if held.received else ""
    return f'{{"value":{held.text},"ordinal":{held.ordinal}{received}}}'


def properties_of(text: str) -> dict[str, SetValue]:
    """The properties of a column text. Raises ValueError when the text is none of ours."""
    try:
        return {name: SetValue(dump(held["value"]), held["ordinal"], _received(held)) for name, held in parse(text).items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"invalid properties of a record: {error!r}") from error


def _received(held: Mapping[str, Any]) -> Received | None:
    found = held.get("received")
    return (found[0], found[1], found[2]) if found else None


def place_text(received: Received | None) -> str | None:
    """A place in the order of receipt as its column keeps it."""
    return ":".join(map(str, received)) if received else None


def place_of(text: str | None) -> Received | None:
    """The place of a column text."""
    if not text:
        return None
    at, receipt, item = map(int, text.split(":"))
    return at, receipt, item
