"""A stored text of a stranger: how long it is, a part of it, or all of it under its masks. One query each."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import BinaryField, QuerySet, TextField
from django.db.models.functions import Length, Substr

from connectors.models import Pack, Receipt, UnverifiedDelivery
from ops_ui.console.payloads.masks import body_text, event_masks, masked, pack_masks
from projection.exact_json import NotJson, parse
from projection.masking import HIDDEN
from projection.models import Event

MASKED_AT_MOST: Final = 5 * 1024 * 1024
"""Length up to which a page masks a text: all of it must be read and parsed for that, about a second for this length."""
_CONTINUING: Final = bytes(range(0x80, 0xC0))
"""Bytes of UTF-8 that begin no character."""


@dataclass(frozen=True, slots=True)
class Text:
    """A whole text. `is_foreign`: it is not UTF-8, and each foreign byte an escape such as `\\xff`; `is_masked`: something is hidden."""

    text: str
    is_foreign: bool = False
    is_masked: bool = False

    def is_json(self) -> bool:
        """Whether it is JSON, or was before its values were hidden. Reads all of it."""
        if self.is_masked:
            return self.text != HIDDEN
        try:
            parse(self.text.removeprefix("\ufeff"))
        except NotJson:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text: where it ends, where the part before it begins, and how many line feeds that one has."""

    text: str
    end: int
    before: int
    feeds_before: int


@dataclass(frozen=True, slots=True)
class Stored:
    """The text in `column` of the one row of `rows`; `masks` hide fields of it, `anywhere` also deeper than at its top."""

    rows: QuerySet[Any]
    column: str
    masks: tuple[str, ...] = ()
    anywhere: bool = False
    is_bytes: bool = False

    @property
    def unit(self) -> str:
        """What its length and the places of its parts count."""
        return "bytes" if self.is_bytes else "characters"

    def length(self) -> int:
        """Without reading it."""
        return int(self.rows.annotate(length=Length(self.column)).values_list("length", flat=True).get())

    def raw(self) -> bytes:
        """The exact bytes of all of it."""
        value = self.rows.values_list(self.column, flat=True).get()
        return bytes(value) if self.is_bytes else str(value).encode()

    def whole(self) -> Text:
        """All of it, unmasked."""
        value = self.rows.values_list(self.column, flat=True).get()
        return Text(*body_text(bytes(value))) if self.is_bytes else Text(str(value))

    def masked(self) -> Text:
        """All of it under its masks."""
        one = self.whole()
        text = masked(one.text, self.masks, anywhere=self.anywhere)
        return Text(text, one.is_foreign, is_masked=text != one.text)

    def part(self, at: int, most: int) -> Part:
        """At most `most` units from `at`, unmasked, and the part before it. This process reads no more; a part of bytes begins and
        ends with a whole character.
        """
        start = max(at - most, 0)
        field: BinaryField[Any, Any] | TextField[Any, Any] = BinaryField() if self.is_bytes else TextField()
        piece = Substr(self.column, start + 1, at - start + most, output_field=field)
        found = self.rows.annotate(part=piece).values_list("part", flat=True).get()
        if not self.is_bytes:
            before, text = str(found)[: at - start], str(found)[at - start :]
            return Part(text, at + len(text), start, before.count("\n"))
        raw, own = bytes(found)[: at - start], bytes(found)[at - start :]
        text, taken = codecs.utf_8_decode(own, "backslashreplace", len(own) < most)
        cut = len(raw) - len(raw[:3].lstrip(_CONTINUING) + raw[3:]) if start else 0
        return Part(text, at + taken, start + cut, raw[cut:].count(b"\n"))


def of_receipt(receipt: Receipt, pack: Pack | None) -> Stored:
    """The body of a receipt. One query for the masks of its pack's routes."""
    return Stored(Receipt.objects.filter(id=receipt.id, erasure_id=None), "body", _of_pack(pack), anywhere=True, is_bytes=True)


def of_unverified(delivery: UnverifiedDelivery, pack: Pack | None) -> Stored:
    """The body of a delivery that was kept apart. One query for masks."""
    return Stored(UnverifiedDelivery.objects.filter(id=delivery.id), "body", _of_pack(pack), anywhere=True, is_bytes=True)


def of_event(event: Event) -> Stored:
    """The payload of an event. One query for masks."""
    return Stored(Event.objects.filter(id=event.id, erasure_id=None), "payload", event_masks(event))


def _of_pack(pack: Pack | None) -> tuple[str, ...]:
    return pack_masks(pack.namespace, pack.name) if pack else ()
