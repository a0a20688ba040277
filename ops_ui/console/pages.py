"""What every page of the console shares: its right, its frame, its list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec

from django.contrib import admin
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ops_ui.console.base.navigation import Entry
from ops_ui.console.lists import exports, keyset
from ops_ui.console.lists.cells import ConsoleTable, Sorting
from ops_ui.console.lists.exports import Export
from ops_ui.console.lists.filters import ListFilter

P = ParamSpec("P")

TURNED: Final = "turned"
"""Value of `sort`: the order of the list the other way round."""

Urls = tuple[tuple[str, Callable[..., HttpResponseBase], str], ...]
"""Pages of one module: the path under `/admin/`, its view, and its name within `admin:`."""


def page(
    here: Entry,
) -> Callable[[Callable[Concatenate[HttpRequest, P], HttpResponseBase]], Callable[Concatenate[HttpRequest, P], HttpResponseBase]]:
    """A GET page of `here`: 403 without its right (the site's login comes first), 405 for any method that could change state."""

    def decorate(
        view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        @wraps(view)
        def inner(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.has_perm(here.permission):
                raise PermissionDenied(
                    f"You do not have permission to open this page ({here.permission}). Ask an administrator for a role that has it."
                )
            request.here = here  # type: ignore[attr-defined]  # read by the navigation (console.ConsoleSite.each_context)
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
    """One list: its rows (before filters), how they are filtered, ordered and shown. It can be exported as it is filtered."""

    title: str
    rows: QuerySet[Any]
    filters: type[ListFilter] | None
    table: Callable[[list[Any]], ConsoleTable]
    empty: str
    """What to do next where nothing was ever stored."""
    next_page: Entry | None = None
    """Where that is done: the sentence ends with a link there, for whoever may enter."""
    order: keyset.Order = keyset.NEWEST_FIRST
    read: Callable[[Any, keyset.Cursor | None, int], keyset.Page] | None = None
    """Reads a page (of so many rows) of a list that has its own way and order: given the filter form and the cursor."""
    read_in_order: Callable[[Any, keyset.Order, keyset.Cursor | None, int], keyset.Page] | None = None
    """As `read`, of a list that has its own way of reading and both orders: given the filter form, the order and the cursor."""
    template: str = "console/lists/list.html"


def show_list(request: HttpRequest, listing: Listing, extra: Mapping[str, Any] | None = None) -> HttpResponseBase:
    """The page of `listing` at the URL's filter, order (`sort`) and cursor (`at`), or all of its rows as a file (`export`).

    Damaged parameters give the first page, never an error.
    """
    filters = listing.filters(request.GET, queryset=listing.rows) if listing.filters else None
    order = _order(request, listing, filters)
    wanted = exports.requested(request)
    if wanted is not None:
        read = partial(_found, listing, filters, order)
        return exports.answer(request, Export(entry_of(request).name, read, listing.table), wanted)
    cursor = keyset.Cursor.parse(request.GET.get("at", ""))
    found = _found(listing, filters, order, cursor, keyset.PAGE_SIZE)
    table = listing.table(found.rows)
    table.sorting = _sorting(request, listing, table, order)
    context = {
        "filter": filters,
        "is_filtered": bool(filters and filters.given()),
        "found": found,
        "table": table,
        "empty": listing.empty,
        "next_page": listing.next_page if listing.next_page and request.user.has_perm(listing.next_page.permission) else None,
        "at_start": cursor is None,
        **(extra or {}),
    }
    return show(request, listing.template, listing.title, **context)


def entry_of(request: HttpRequest) -> Entry:
    """The navigation entry of the page that is shown (`page` sets it)."""
    here: Entry = request.here  # type: ignore[attr-defined]  # set by `page`
    return here


def _order(request: HttpRequest, listing: Listing, filters: ListFilter | None) -> keyset.Order:
    """The order whose index serves the filter, or that order turned round (`sort=turned`)."""
    order = filters.order() if filters else listing.order
    turned = request.GET.get("sort") == TURNED and listing.read is None
    return replace(order, descending=not order.descending) if turned else order


def _sorting(request: HttpRequest, listing: Listing, table: ConsoleTable, order: keyset.Order) -> Sorting | None:
    """At which column the order is shown, and the address of the other way; None where there is only one."""
    if listing.read is not None:
        return None
    parameters = request.GET.copy()
    parameters.pop("at", None)
    if parameters.pop("sort", [""])[-1] != TURNED:
        parameters["sort"] = TURNED
    column = table.sorted_by.get(order.column, order.column)
    return Sorting(column, order.descending, f"?{parameters.urlencode()}")


def _found(
    listing: Listing, filters: ListFilter | None, order: keyset.Order, cursor: keyset.Cursor | None, size: int
) -> keyset.Page:
    if listing.read is not None:
        return listing.read(filters, cursor, size)
    if listing.read_in_order is not None:
        return listing.read_in_order(filters, order, cursor, size)
    if filters is None:
        return keyset.page(listing.rows, order, cursor, size)
    if filters.is_windowed:
        return keyset.windowed(filters.qs, cursor, size, descending=order.descending)
    return keyset.page(filters.qs, order, cursor, size)
