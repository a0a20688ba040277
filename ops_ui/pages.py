"""What every page of the console shares: its right, its frame, its list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import django_tables2
from django.contrib import admin
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ops_ui import keyset
from ops_ui.filters import ListFilter
from ops_ui.rooms import Room

P = ParamSpec("P")

Urls = tuple[tuple[str, Callable[..., HttpResponseBase], str], ...]
"""Pages of one module: the path under `/admin/`, its view, and its name within `admin:`."""


def page(
    room: Room,
) -> Callable[[Callable[Concatenate[HttpRequest, P], HttpResponseBase]], Callable[Concatenate[HttpRequest, P], HttpResponseBase]]:
    """A GET page of `room`: 403 without its right (the site's login comes first), 405 for any method that could change state."""

    def decorate(
        view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        @wraps(view)
        def inner(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.has_perm(room.permission):
                raise PermissionDenied(f"This page needs the right {room.permission}; ask an administrator for a group.")
            request.room = room  # type: ignore[attr-defined]  # read by the navigation (console.ConsoleSite.each_context)
            try:
                return view(request, *args, **kwargs)
            except ObjectDoesNotExist as gone:  # removed while the page was read
                raise Http404(str(gone)) from gone

        return require_safe(inner)

    return decorate


def show(request: HttpRequest, template: str, title: str, **context: Any) -> HttpResponse:
    """`template` in the frame of the console."""
    return render(request, template, {**admin.site.each_context(request), "title": title, **context})


@dataclass(frozen=True, slots=True)
class Listing:
    """One list: its rows (before filters), how they are filtered, ordered and shown."""

    title: str
    rows: QuerySet[Any]
    filters: type[ListFilter] | None
    table: Callable[[list[Any]], django_tables2.Table]
    empty: str
    """What to do next where nothing was ever stored."""
    order: keyset.Order = keyset.NEWEST_FIRST
    read: Callable[[Any, keyset.Cursor | None, int], keyset.Page] | None = None
    """Reads a page (of so many rows) of a list that has its own way: given the filter form and the cursor."""
    template: str = "console/list.html"


def show_list(request: HttpRequest, listing: Listing, extra: Mapping[str, Any] | None = None) -> HttpResponse:
    """The page of `listing` at the URL's filter and cursor (`at`). Damaged parameters give the first page, never an error."""
    cursor = keyset.Cursor.parse(request.GET.get("at", ""))
    filters = listing.filters(request.GET, queryset=listing.rows) if listing.filters else None
    found = _found(listing, filters, cursor)
    context = {
        "filter": filters,
        "is_filtered": bool(filters and filters.given()),
        "found": found,
        "table": listing.table(found.rows),
        "empty": listing.empty,
        "at_start": cursor is None,
        **(extra or {}),
    }
    return show(request, listing.template, listing.title, **context)


def _found(listing: Listing, filters: ListFilter | None, cursor: keyset.Cursor | None, size: int = keyset.PAGE_SIZE) -> keyset.Page:
    if listing.read is not None:
        return listing.read(filters, cursor, size)
    if filters is None:
        return keyset.page(listing.rows, listing.order, cursor, size)
    if filters.is_windowed:
        return keyset.windowed(filters.qs, cursor, size)
    return keyset.page(filters.qs, filters.order(), cursor, size)
