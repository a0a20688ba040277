"""States of packs and endpoints, and who moves them on: an operator, by `configuration.packs` and `configuration.endpoints`."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class PackState(StrEnum):
    """`installed` → `disabled` and back; either → `removed`, which is the end of the row (an upgrade removes it for its successor)."""

    INSTALLED = "installed"
    """Takes deliveries."""
    DISABLED = "disabled"
    """Answers 503, or 410 where the operator chose to discard."""
    REMOVED = "removed"


LIVE_PACK_STATES: Final = (PackState.INSTALLED, PackState.DISABLED)


class EndpointState(StrEnum):
    """`enabled` → `disabled` and back; either → `removed`, alone or with its pack; a new endpoint of the same slug brings the row back."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    """Answers 503, or 410 where the operator chose to discard."""
    REMOVED = "removed"
