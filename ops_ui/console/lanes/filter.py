"""The filter of the list of lanes."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet

from projection.models import WorkItem


class LaneFilter(django_filters.FilterSet):
    """Which lanes: by the state of the item in front, or those that an operator holds."""

    head = django_filters.ChoiceFilter(
        label="Lanes",
        choices=[("processing", "running"), ("retry", "retrying"), ("pending", "queued"), ("held", "held")],
        empty_label="all",
        method="kept",
    )

    class Meta:
        model = WorkItem
        fields: list[str] = []

    def kept(self, rows: QuerySet[Any], _name: str, _value: str) -> QuerySet[Any]:
        """The view reads lanes in its own way (`lane_reads.lane_page`)."""
        return rows
