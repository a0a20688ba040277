"""The forms of endpoints: their fields, and the draft or secret that they describe, by the configuration file's own reader."""

from __future__ import annotations

from typing import Any, Final

from django.http import QueryDict
from pydantic import ValidationError

from connectors.configuration import stored_secrets
from connectors.configuration.endpoints import EndpointDraft, EndpointRefused
from connectors.configuration.errors import BadConfiguration, sentences
from connectors.configuration.file import EndpointSection
from connectors.configuration.stored_secrets import Secret
from connectors.configuration.values import secret_text
from connectors.configuration.values import slug as checked_slug
from connectors.delivery import SignatureScheme
from connectors.ingress.limit_values import LIMIT_NAMES, EndpointLimits
from connectors.models import Endpoint, Pack
from ops_ui.console.base.form_fields import Field

SPOOL: Final = {"": None, "yes": True, "no": False}
HEADER_LINES: Final = 50

UNVERIFIED: Final = Field(
    "unverified",
    "Failed signatures",
    "kept for one hour each, on the first day after creation or a rotation",
    "choice",
    choices=(("keep", "keep for inspection"), ("refuse", "reject")),
)
SETTINGS: Final = (
    Field(
        "account",
        "Account",
        "whose data it receives; endpoints of one account are one sender; empty: the slug",
        placeholder="shop-a",
    ),
    Field("public_url", "Public URL", "scheme and host the provider posts to", placeholder="https://hooks.example.com"),
    UNVERIFIED,
    Field("max_body_bytes", "Max body size", "bytes; empty: the pack's own limit", placeholder="5242880"),
    Field("limit", "Rate limit", "deliveries per interval; more get 429; empty: no limit", placeholder="200/s"),
    Field("concurrency", "Concurrent requests", "more get 429; empty: no limit", placeholder="20"),
    Field(
        "spool",
        "When the database is unavailable",
        "",
        "choice",
        choices=(("", "spool on this host if the provider never retries"), ("yes", "spool on this host"), ("no", "answer 503")),
    ),
)


def settings_of(endpoint: Endpoint) -> dict[str, str]:
    """What the fields of an existing endpoint say, by name."""
    limits = EndpointLimits.of(endpoint.limits)
    written = {name: str(value) for name, value in limits.written.items() if name != "spool"}
    spool = {value: word for word, value in SPOOL.items()}[limits.spool]
    return {
        "account": endpoint.account,
        "public_url": endpoint.public_url,
        "unverified": endpoint.unverified_policy,
        "spool": spool,
    } | written


def draft(form: QueryDict, pack_name: str, slug: str, secrets: tuple[Secret, ...] | None, signature: str = "") -> EndpointDraft:
    """Raises BadConfiguration with a sentence for each field that is wrong, `name: what`."""
    problems: list[str] = []
    try:
        checked_slug(slug)
    except ValueError as error:
        problems.append(f"slug: {error}")
    try:
        section = EndpointSection.model_validate(_members(form))
    except ValidationError as error:
        raise BadConfiguration([*problems, *sentences(error, EndpointSection)]) from None
    if problems:
        raise BadConfiguration(problems)
    limits = EndpointLimits(**section.model_dump(include=set(LIMIT_NAMES)))
    return EndpointDraft(pack_name, slug, secrets, section.public_url, signature, section.unverified, section.account, limits)


def _members(form: QueryDict) -> dict[str, Any]:
    """The section's members as the file would have them; a field left empty is not there."""
    members: dict[str, Any] = {}
    for field in SETTINGS:
        text = form.get(field.name, "").strip()
        if field.name == "spool":
            if SPOOL.get(text) is not None:
                members["spool"] = SPOOL[text]
        elif text:
            is_number = field.name in ("max_body_bytes", "concurrency") and text.isascii() and text.isdecimal() and len(text) < 19
            members[field.name] = int(text) if is_number else text
    return members


def secret(form: QueryDict, scheme: SignatureScheme) -> tuple[Secret | None, bool]:
    """The secret that the form gives, and whether it was made here (then it is shown, once). None: the scheme needs none.

    Raises EndpointRefused where none is given.
    """
    if not scheme.needs_secret:
        return None, False
    if form.get("origin") == "own":
        value = form.get("secret", "")
        if not value:
            raise EndpointRefused("the secret is empty; enter the provider's secret, or generate one")
        try:
            return Secret(secret_text(value, "the secret")), False
        except ValueError as error:
            raise EndpointRefused(str(error)) from None
    return stored_secrets.generated(), True


def pack_named(text: str) -> Pack:
    """The live pack of a choice `namespace/name`. Raises EndpointRefused, also where it was removed."""
    namespace, _, name = text.partition("/")
    found = next((row for row in live_everywhere() if (row.namespace, row.name) == (namespace, name)), None)
    if found is None:
        raise EndpointRefused("select an installed pack")
    return found


def live_everywhere() -> list[Pack]:
    """Installed and disabled packs of every namespace, by name; at most 500. One query."""
    rows = Pack.objects.filter(state__in=("installed", "disabled")).order_by("namespace", "name", "-id")[:500]
    return list(rows)


def headers(text: str) -> dict[str, str]:
    """The headers of `Name: value` lines. Raises EndpointRefused naming the line that is none."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines()[:HEADER_LINES], start=1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip() or not all(c.isascii() and (c.isalnum() or c in "-_") for c in name.strip()):
            raise EndpointRefused(f"line {number} of the headers is not in the form `Name: value`")
        found[name.strip()] = value.strip()
    return found
