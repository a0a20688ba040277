"""Where the ingress answers: the one place that knows the form of its URLs (with `connectors.urls`)."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "/ingress/"


def ingress_path(namespace: str, slug: str) -> str:
    """Path of an endpoint's URL; scheme and host stand before it."""
    return f"{PREFIX}{namespace}/{slug}"
