"""What the tables of all lists have in common: their order, their export, and the kinds of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urlencode

import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ops_ui.console.base import time_zone
from ops_ui.console.base.tags import NONE, badge, digits, exact, when

MESSAGE_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Sorting:
    """The order of a list, shown at one of its columns: which way, and the address of the other way."""

    column: str
    descending: bool
    other: str


class ConsoleTable(tables.Table):
    """Shared look, and the same rows as values for exports. `names` are labels that rows refer to by id: routes or packs.

    What a column exports is `value_<column>(record)` where the table has it, else what its accessor finds. A column with
    `visible=False` is in exports only; one with `exclude_from_export` on the page only.
    """

    sorted_by: ClassVar[Mapping[str, str]] = {"id": "id"}
    """Column of an order → the column of the table that shows it."""

    def __init__(self, rows: list[Any], *, names: Mapping[int, str] | None = None) -> None:
        super().__init__(rows, orderable=False, default=NONE, template_name="console/lists/table.html")
        self.names = names or {}
        self.records = rows
        self.sorting: Sorting | None = None

    def export_fields(self) -> list[str]:
        return [name for name, column in self.base_columns.items() if not column.exclude_from_export]

    def export_rows(self) -> Iterator[list[Any]]:
        values = [self._value(name) for name in self.export_fields()]
        for record in self.records:
            yield [value(record) for value in values]

    def _value(self, name: str) -> Callable[[Any], Any]:
        own: Callable[[Any], Any] | None = getattr(self, f"value_{name}", None)
        accessor = tables.A(self.base_columns[name].accessor or name)
        return own or (lambda record: accessor.resolve(record, quiet=True))

    def label_text(self, row_id: int | None) -> str | None:
        return None if row_id is None else self.names.get(row_id, f"#{row_id}").replace("\N{NO-BREAK SPACE}", " ")

    def label(self, row_id: int | None) -> SafeString:
        if row_id is None:
            return format_html('<span class="none">{}</span>', "unrouted")
        return format_html('<span class="key">{}</span>', exact(self.names.get(row_id, f"#{row_id}")))


class WhenColumn(tables.Column):
    """A time. The viewer's zone stands in its head."""

    @property
    def header(self) -> str | None:
        name = super().header
        return f"{name} ({time_zone.label()})" if name else None

    def render(self, value: datetime) -> SafeString:
        return when(value)


class BadgeColumn(tables.Column):
    def render(self, value: str) -> SafeString:
        return badge(value)


class TextColumn(tables.Column):
    def render(self, value: Any) -> SafeString:
        return exact(value)


class NumberColumn(tables.Column):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, attrs={"th": {"class": "number"}, "td": {"class": "number"}}, **options)

    def render(self, value: int) -> str | SafeString:
        return digits(value)


def link(url_name: str, argument: Any, text: Any) -> SafeString:
    """A link to a page of the console, its text escaped and isolated."""
    return format_html('<a href="{}">{}</a>', reverse(f"admin:{url_name}", args=[argument]), text)


def source_url(row: Any) -> str:
    """The page of the source of an event or record."""
    names = {"namespace": row.namespace, "account": row.account, "type": row.source_type, "id": row.source_id}
    return f"{reverse('admin:source')}?{urlencode(names)}"


def message(text: str | None) -> SafeString:
    """The first line of an error, short enough for a row."""
    line = (text or "").strip().splitlines()[0] if (text or "").strip() else ""
    return exact(line if len(line) <= MESSAGE_SHOWN else line[:MESSAGE_SHOWN] + "…") if line else NONE


class HashedTable(ConsoleTable):
    """Rows with hashes of texts that may be masked. `hashes`: whether these may be told; asked when they are exported."""

    def __init__(
        self, rows: list[Any], *, names: Mapping[int, str] | None = None, hashes: Callable[[], bool] | None = None
    ) -> None:
        super().__init__(rows, names=names)
        self._hashes = hashes

    def told(self, digest: str) -> str | None:
        return digest if self._hashes and self._hashes() else None
