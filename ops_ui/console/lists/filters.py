"""Filters of the lists. Each says which of its fields an index serves; the others read a bounded window (`keyset.windowed`)."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import django_filters
from django import forms
from django.core.validators import RegexValidator
from django.db.models import QuerySet

from connectors.models import Pack, Route
from connectors.operations.work_filters import moment
from ops_ui.console.lists.keyset import NEWEST_FIRST, Order

CHOICES_SHOWN: Final = 500

FORMS: Final = "A duration ago, such as 2h or 7d, or a time, such as 2026-01-31T10:00Z (UTC unless a zone is given)"
"""How a time is written."""


def route_choices() -> list[tuple[str, str]]:
    """Route keys, also retired ones: their events are still there."""
    keys = Route.objects.order_by("route_key").values_list("route_key", flat=True).distinct()[:CHOICES_SHOWN]
    return [(key, key) for key in keys]


def pack_choices() -> list[tuple[str, str]]:
    names = Pack.objects.order_by("name").values_list("name", flat=True).distinct()[:CHOICES_SHOWN]
    return [(name, name) for name in names]


def key_filter(label: str, field: str, **extra: Any) -> django_filters.CharFilter:
    """An ASCII key column: other text cannot be compared with it."""
    ascii_only = RegexValidator(r"\A[!-~]*\Z", "Use ASCII characters only.")
    return exact_filter(label, field, validators=[ascii_only], **extra)


def exact_filter(label: str, field: str, **extra: Any) -> django_filters.CharFilter:
    widget = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    return django_filters.CharFilter(label=label, field_name=field, lookup_expr="exact", widget=widget, **extra)


class MomentField(forms.CharField):
    """A time, or how long ago: `2h`, `7d`, `2026-01-31T10:00Z` (without a zone: UTC). Its value is an aware datetime, or None."""

    def __init__(self, **options: Any) -> None:
        attributes = {"autocomplete": "off", "spellcheck": "false", "placeholder": "2h, 7d or a time"}
        super().__init__(**{"max_length": 40, "widget": forms.TextInput(attrs={**attributes, "title": FORMS}), **options})

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return moment(text) if text else None
        except (ValueError, OverflowError) as wrong:
            raise forms.ValidationError(f"{wrong}.") from None


class MomentFilter(django_filters.Filter):
    """A filter whose value is a time (`MomentField`)."""

    field_class = MomentField


class ListFilter(django_filters.FilterSet):
    """A filter form of one list."""

    windowed: ClassVar[frozenset[str]] = frozenset()

    def given(self) -> dict[str, Any]:
        """The valid values that were given, by field. A malformed value is left out (and shown with its error)."""
        self.form.is_valid()
        return {name: value for name, value in self.form.cleaned_data.items() if value not in ("", None)}

    @property
    def is_windowed(self) -> bool:
        """Whether some given value is served by no index."""
        return bool(self.windowed & self.given().keys())

    def order(self) -> Order:
        """The order whose index serves the given values."""
        return NEWEST_FIRST

    def by_route(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(route_id__in=list(Route.objects.filter(route_key=value).values_list("id", flat=True)))

    def by_pack(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(pack_id__in=list(Pack.objects.filter(name=value).values_list("id", flat=True)))
