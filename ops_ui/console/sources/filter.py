"""The filters of the lists of sources and of live records."""

from __future__ import annotations

from connectors.models import Record
from ops_ui.console.lists.filters import (
    ListFilter,
    exact_filter,
)
from ops_ui.console.sources.reads import Which
from projection.models import Event


class SourceFilter(ListFilter):
    """What the list of sources reads by (`source_reads.sources`)."""

    source = exact_filter("Source id", "source_id")
    type = exact_filter("Source type", "source_type")
    account = exact_filter("Account", "account")
    kind = exact_filter("Kind of the newest event", "event_kind")
    namespace = exact_filter("Namespace", "namespace")

    class Meta:
        model = Event
        fields: list[str] = []

    def which(self) -> Which:
        return Which(**self.given())


class RecordFilter(ListFilter):
    windowed = frozenset({"kind", "account"})
    source = exact_filter("Source id", "source_id")
    account = exact_filter("Account", "account")
    kind = exact_filter("Event kind", "event_kind")

    class Meta:
        model = Record
        fields: list[str] = []
