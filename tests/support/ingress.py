"""An endpoint to post to in a test, and the posting."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.test import Client

from connectors import models
from connectors.ingress import endpoint_facts
from tests.support import factories, signing


@dataclass(frozen=True)
class Ingress:
    """One endpoint of a freshly installed pack."""

    pack: models.Pack
    endpoint: models.Endpoint
    secret: str

    @property
    def path(self) -> str:
        return f"/ingress/{self.endpoint.namespace}/{self.endpoint.slug}"

    @property
    def url(self) -> str:
        """The public URL, as the provider signs it."""
        return factories.PUBLIC_URL + self.path

    def post(self, body: bytes, headers: dict[str, str] | None = None, *, path: str | None = None, **extra: Any) -> HttpResponse:
        """POST a body, signed as the generic pack wants it unless headers are given; again from the database each time."""
        endpoint_facts.find.forget()
        signed = signing.generic(body, self.secret) if headers is None else headers
        kind = extra.pop("content_type", "application/json")
        response: HttpResponse = Client().post(path or self.path, body, content_type=kind, headers=signed, **extra)
        return response


def open_endpoint(
    pack_name: str = "generic",
    slug: str = "main",
    secret: str = factories.SECRET,
    *,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> Ingress:
    pack = factories.install(pack_name, settings=settings)
    return Ingress(pack, factories.endpoint(pack, slug, (secret,), **options), secret)


def facts(ingress: Ingress) -> endpoint_facts.EndpointFacts:
    """What receiving knows about the endpoint, read now."""
    found = endpoint_facts.load((ingress.endpoint.namespace, ingress.endpoint.slug))
    assert found is not None
    return found


def answer(response: HttpResponse) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(response.content)
    return parsed
