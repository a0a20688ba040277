"""What an endpoint limits for itself: the JSON of its `Limits` column, as values. What is left out has its default."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from connectors import durations


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """`max_body_bytes` None: the pack's holds. `limit` is (deliveries, seconds), `concurrency` requests at once; None: no limit.

    `spool` None: deliveries are spooled while the database is away if the pack's provider does not send a refused one again.
    """

    max_body_bytes: int | None = None
    limit: tuple[int, float] | None = None
    concurrency: int | None = None
    spool: bool | None = None

    @classmethod
    def of(cls, text: str) -> EndpointLimits:
        """The limits of a column's text; names that this version does not know are left alone."""
        members: dict[str, Any] = json.loads(text or "{}")
        limit = members.get("limit")
        return cls(
            members.get("max_body_bytes"),
            (int(limit[0]), float(limit[1])) if limit else None,
            members.get("concurrency"),
            members.get("spool"),
        )

    def into(self, text: str) -> str:
        """The column's text with these limits in the place of its own; names that this version does not know stay."""
        others = {name: value for name, value in json.loads(text or "{}").items() if name not in LIMIT_NAMES}
        return json.dumps(others | {name: value for name, value in asdict(self).items() if value is not None})

    @property
    def written(self) -> dict[str, Any]:
        """As the configuration file says them: those that are set, by name."""
        found = {name: value for name, value in asdict(self).items() if value is not None}
        return found | ({"limit": durations.readable_rate(*self.limit)} if self.limit else {})


LIMIT_NAMES = tuple(EndpointLimits.__dataclass_fields__)
