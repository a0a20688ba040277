"""Values of the configuration file: how each is written, and the sentence for one that is not.

Each function returns the value as it is kept and raises ValueError with what is allowed; the types below carry them into the models.
"""

from __future__ import annotations

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr

from connectors import durations
from connectors.delivery import LANE_PLACEHOLDERS
from projection import masking

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*", re.ASCII)
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


def slug(text: str) -> str:
    """A name that stands in a URL. Raises ValueError."""
    if not _SLUG.fullmatch(text) or len(text) > 64:
        raise ValueError(f"{text!r} must be 1 to 64 characters of a-z, 0-9, - and _, the first one a letter or digit")
    return text


def name(text: str) -> str:
    """A name that people and commands use. Raises ValueError."""
    if not _NAME.fullmatch(text) or len(text) > 100:
        raise ValueError(f"{text!r} must be 1 to 100 characters of letters, digits, . : - and _, the first one a letter or digit")
    return text


ACCOUNT_LENGTH: Final = 190
NAME_LENGTH: Final = 190
"""Characters of a kind or source type."""


def account(text: str) -> str:
    """Whose data an endpoint receives, in the operator's words. Raises ValueError."""
    if text.strip() != text or not text.isprintable() or len(text) > ACCOUNT_LENGTH:
        raise ValueError(f"{text!r} must be at most {ACCOUNT_LENGTH} printable characters without spaces at the start or end")
    return text


def provider_kind(text: str) -> str:
    """A provider's kind, `*`, or a prefix up to a separator and `*`: `contact.*`, `orders/*`, `jira:*`. Raises ValueError."""
    bare = "" if text == "*" else text.removesuffix("*")
    if text.strip() != text or not text or "*" in bare or len(text) > NAME_LENGTH:
        raise ValueError(
            f'{text!r} must be a provider kind, "*" for all kinds, or a prefix with * for all that start with it, such as "orders/*"; '
            f"at most {NAME_LENGTH} characters"
        )
    if bare != text and bare and bare[-1].isalnum():
        raise ValueError(f'{text!r} has no separator before *; write the kinds out, or a prefix that ends with one ("orders/*")')
    return text


def web_url(text: str) -> str:
    """An http or https URL of a host, without credentials (the console shows URLs). Raises ValueError."""
    try:
        parts = urlsplit(text)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(f"{text!r} is not a valid URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_number or any(c.isspace() for c in text):
        raise ValueError(f"{text!r} must be a URL with a host that starts with https:// or http://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user or password; put the secret into secrets")
    return text


def base_url(text: str) -> str:
    """What `public_url` takes: a URL without query or fragment; a trailing slash is dropped. Empty = HEADRACE_PUBLIC_URL."""
    if text == "":
        return text
    if "?" in text or "#" in text:
        raise ValueError(f"{text!r} must not contain ? or #")
    return web_url(text).rstrip("/")


def mask(text: str) -> str:
    """A path of the payload whose value no view shows, e.g. `$.propertyValue`. Raises ValueError."""
    masking.path(text)
    return text


def lane_template(text: str) -> str:
    """A target mutation lane such as `invoice:{id}`. Raises ValueError for an unknown placeholder or a stray brace."""
    unknown = [found for found in _PLACEHOLDER.findall(text) if found not in LANE_PLACEHOLDERS]
    stray = _PLACEHOLDER.sub("", text)
    if unknown or "{" in stray or "}" in stray or len(text) > 255:
        allowed = ", ".join(f"{{{placeholder}}}" for placeholder in LANE_PLACEHOLDERS)
        raise ValueError(f"{text!r} is not valid; use at most 255 characters, and braces only for {allowed}")
    return text


def secret_reference(text: str) -> str:
    """Where a secret stands. A bare value is refused: it would be typed into files that are shared. Raises ValueError."""
    kind, colon, value = text.partition(":")
    if not colon or kind not in ("env", "file", "plain") or not value:
        raise ValueError("must be env:NAME, file:/path or plain:VALUE (the value itself is not repeated here)")
    return text


def secret_text(text: str, what: str) -> str:
    """A secret that somebody gave; `what` begins the sentence. Raises ValueError for what an editor or a paste has added to it, which
    would fail every signature; the value itself is not repeated."""
    if len(text.splitlines()) > 1:
        raise ValueError(f"{what} has {len(text.splitlines())} lines; a secret is a single line")
    if not text.strip().isprintable():
        raise ValueError(f"{what} contains an invisible or control character (a byte order mark, for example); remove it")
    return text


def _duration(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError('must be a duration in quotes, e.g. "5s"')  # noqa: TRY004  # pydantic collects ValueErrors
    return durations.seconds(value)


def _rate(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError('must be a rate in quotes, e.g. "100/10s"')  # noqa: TRY004  # pydantic collects ValueErrors
    return durations.rate(value)


def _factor(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 100:
        raise ValueError("must be a number from 1 to 100")
    return float(value)


def _some(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise ValueError("is empty; give at least one entry")
    if len(set(values)) != len(values):
        raise ValueError("contains an entry twice; remove one")
    return values


Slug = Annotated[StrictStr, AfterValidator(slug)]
Name = Annotated[StrictStr, AfterValidator(name)]
Duration = Annotated[float, BeforeValidator(_duration)]
Factor = Annotated[float, BeforeValidator(_factor)]
Rate = Annotated[tuple[int, float], BeforeValidator(_rate)]
ProviderKinds = Annotated[tuple[Annotated[StrictStr, AfterValidator(provider_kind)], ...], AfterValidator(_some)]
SecretReference = Annotated[StrictStr, AfterValidator(secret_reference)]
SecretReferences = Annotated[tuple[SecretReference, ...], AfterValidator(_some), Field(max_length=2)]
WebUrl = Annotated[StrictStr, AfterValidator(web_url)]
Account = Annotated[StrictStr, AfterValidator(account)]
BaseUrl = Annotated[StrictStr, AfterValidator(base_url)]
MaskPath = Annotated[StrictStr, AfterValidator(mask)]
LaneTemplate = Annotated[StrictStr, AfterValidator(lane_template)]
QueueClass = Annotated[StrictStr, AfterValidator(slug), Field(max_length=32)]
