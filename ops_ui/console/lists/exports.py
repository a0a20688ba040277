"""Every list as a file: all rows of the filter, as CSV for spreadsheets or as one JSON object a line for programs.

The file is written while it is read, a keyset page at a time, so that a million rows need the memory of a thousand. Who exports what
is in the audit trail: an entry when it begins, and one with the number of rows when it ends or breaks off.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from django.http import HttpRequest, StreamingHttpResponse

from connectors import audit_log
from ops_ui.console.lists.keyset import Cursor, Page
from projection.cli import iso

CHUNK: Final = 1_000
"""Rows of one read and of one piece of the file."""
FORMATS: Final = {"csv": ("text/csv; charset=utf-8", "csv"), "json": ("application/x-ndjson", "jsonl")}
FORMULA: Final = tuple("=+-@\t\r\n＝＋－＠")
"""What a spreadsheet takes for the beginning of a formula."""


class Rows(Protocol):
    """Rows of a list as values: what `ConsoleTable` and `Columns` are."""

    def export_fields(self) -> Sequence[str]: ...

    def export_rows(self) -> Iterable[Sequence[Any]]: ...


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of a list that is no `ConsoleTable`: how each field is taken from a row."""

    rows: Sequence[Any]
    fields: dict[str, Callable[[Any], Any]]

    def export_fields(self) -> Sequence[str]:
        return list(self.fields)

    def export_rows(self) -> Iterator[Sequence[Any]]:
        for row in self.rows:
            yield [value(row) for value in self.fields.values()]


@dataclass(frozen=True, slots=True)
class Export:
    """A list to be exported: `read` gives a page of so many rows behind a cursor, `values` what is written of them."""

    name: str
    """Of the file and in the audit trail, e.g. `receipts`."""
    read: Callable[[Cursor | None, int], Page]
    values: Callable[[list[Any]], Rows]


def requested(request: HttpRequest) -> str | None:
    """The format that the URL asks for; None: the page itself."""
    wanted = request.GET.get("export", "")
    return wanted if wanted in FORMATS else None


def whole(rows: Sequence[Any]) -> Callable[[Cursor | None, int], Page]:
    """The reader of a short list that was read as a whole."""
    return lambda _cursor, _size: Page(list(rows))


def answer(request: HttpRequest, export: Export, wanted: str) -> StreamingHttpResponse:
    """The file. Its audit entry is written before its first byte."""
    kind, ending = FORMATS[wanted]
    chosen = {name: value for name, value in request.GET.items() if value and name not in ("at", "export")}
    actor = request.user.get_username()
    begun = audit_log.record(actor, "list.export", export.name, count=0, detail={"format": wanted, "filter": chosen})
    name = f"headrace-{export.name}-{datetime.now(UTC):%Y%m%dT%H%MZ}.{ending}"
    write = _csv if wanted == "csv" else _json_lines
    return StreamingHttpResponse(
        _noted(export, write, actor, begun.id),
        content_type=kind,
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
            "X-Accel-Buffering": "no",
        },
    )


def _noted(export: Export, write: Callable[[Rows, bool], bytes], actor: str, begun: int) -> Iterator[bytes]:
    """The pieces of the file, and at the end, whatever it is, how many rows they had."""
    rows, is_whole = 0, False
    try:
        for values, is_first, count in _chunks(export):
            piece = write(values, is_first)
            rows += count
            yield piece
        is_whole = True
    finally:  # also when the reader has gone
        detail = {"export": begun, "whole": is_whole}
        audit_log.record(actor, "list.exported", export.name, count=rows, detail=detail)


def _chunks(export: Export) -> Iterator[tuple[Rows, bool, int]]:
    """(values of a page, whether it is the first, its number of rows); an empty list has one page without rows."""
    cursor: Cursor | None = None
    is_first = True
    while True:
        page = export.read(cursor, CHUNK)
        if page.rows or is_first:
            yield export.values(page.rows), is_first, len(page.rows)
            is_first = False
        if page.next is None:
            return
        cursor = page.next


def _csv(values: Rows, is_first: bool) -> bytes:  # called by position, as the other writer
    piece = io.StringIO(newline="")
    writer = csv.writer(piece, quoting=csv.QUOTE_ALL)  # where `;` separates, `x;=cmd` is a formula otherwise
    if is_first:
        writer.writerow(values.export_fields())
    writer.writerows([cell(value) for value in row] for row in values.export_rows())
    return piece.getvalue().encode()


def _json_lines(values: Rows, is_first: bool) -> bytes:  # noqa: ARG001  # a file of lines has no head
    fields = values.export_fields()
    lines = [
        json.dumps(dict(zip(fields, map(_plain, row), strict=True)), ensure_ascii=False) + "\n" for row in values.export_rows()
    ]
    return "".join(lines).encode()


def cell(value: Any) -> str:
    """A value as text of a CSV cell: exact, times in UTC, and nothing that a spreadsheet would run.

    Text that begins like a formula gets an apostrophe before it, which spreadsheets do not show; a number is written with all of its
    digits.
    """
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return "true" if plain else "false"
    text = str(plain)
    return f"'{text}" if isinstance(plain, str) and text.startswith(FORMULA) else text


def _plain(value: Any) -> Any:
    """A value as JSON has it. Times are ISO 8601 in UTC with microseconds, durations seconds."""
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


def member(name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(row, name)


def member_of(part: str, name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(getattr(row, part), name)
