"""The configuration file: strict TOML, read into frozen models; nothing here touches the database.

The format is the one of the README and of `config export`. Whatever the file gets wrong is reported at once, one line each.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from connectors import durations, masking
from connectors.changes import DEFAULT_NAMESPACE
from connectors.configuration_errors import BadConfiguration, sentences
from projection.facts import PER_EVENT, PROJECTION, InvocationMode, RateLimit, RetryPolicy

MODES: Final[dict[str, InvocationMode]] = {"projection": PROJECTION, "per_event": PER_EVENT}
"""How the file spells an invocation mode, and how it is stored."""

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*", re.ASCII)
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
LANE_PLACEHOLDERS: Final = ("id", "type", "kind", "lane")
"""What the router fills in (`connectors.reading`)."""


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


def provider_kind(text: str) -> str:
    """A provider's kind, `*`, or a prefix with `.*` at its end. Raises ValueError."""
    bare = "" if text == "*" else text.removesuffix(".*")
    if text.strip() != text or not text or "*" in bare or len(text) > 190:
        raise ValueError(
            f'{text!r} must be a kind of the provider, "*" for all, or "prefix.*" for those that start with the prefix'
        )
    return text


def web_url(text: str) -> str:
    """An http or https URL of a host, without credentials (the console shows URLs). Raises ValueError."""
    try:
        parts = urlsplit(text)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(f"{text!r} is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_number or any(c.isspace() for c in text):
        raise ValueError(f"{text!r} must be a URL that starts with https:// (or http://) and names a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or password: put the secret into secrets")
    return text


def base_url(text: str) -> str:
    """What `public_url` takes: a URL without query or fragment; a trailing slash is dropped. Empty = HEADRACE_PUBLIC_URL."""
    if text == "":
        return text
    if "?" in text or "#" in text:
        raise ValueError(f"{text!r} must end before the path of the ingress: no ? and no #")
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
        raise ValueError(f"{text!r} may use {allowed} and no other braces, and has at most 255 characters")
    return text


def secret_reference(text: str) -> str:
    """Where a secret stands. A bare value is refused: it would be typed into files that are shared. Raises ValueError."""
    kind, colon, value = text.partition(":")
    if not colon or kind not in ("env", "file", "plain") or not value:
        raise ValueError("must be env:NAME, file:/path or plain:VALUE (the value itself is not repeated here)")
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
        raise ValueError("needs at least one")
    if len(set(values)) != len(values):
        raise ValueError("names one twice")
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
BaseUrl = Annotated[StrictStr, AfterValidator(base_url)]
MaskPath = Annotated[StrictStr, AfterValidator(mask)]
LaneTemplate = Annotated[StrictStr, AfterValidator(lane_template)]
QueueClass = Annotated[StrictStr, AfterValidator(slug), Field(max_length=32)]


class Section(BaseModel):
    """A table of the file: unknown names are refused, values are what they are written as."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EndpointSection(Section):
    public_url: BaseUrl = ""
    secrets: SecretReferences | None = None
    """None: whatever is stored stays (a new endpoint then has none)."""
    signature: Annotated[StrictStr, Field(max_length=64)] = ""
    unverified: Literal["keep", "refuse"] = "keep"
    max_body_bytes: Annotated[StrictInt, Field(ge=1024, le=1024**3)] | None = None


class PackSection(Section):
    version: StrictStr | None = None
    settings: dict[str, Any] | None = None
    """None: the stored ones stay; an empty table empties them."""
    endpoint: dict[Slug, EndpointSection] = {}


_RETRY: Final = RetryPolicy()
"""What holds where a route says nothing."""


class RetrySection(Section):
    base: Duration = _RETRY.base
    factor: Factor = _RETRY.factor
    cap: Duration = _RETRY.cap or durations.LONGEST_SECONDS
    attempts: Annotated[StrictInt, Field(ge=1, le=1000)] = _RETRY.attempts
    give_up_after: Duration | None = None

    @model_validator(mode="after")
    def _sensible(self) -> RetrySection:
        if self.base > self.cap:
            raise ValueError(f"base ({durations.readable(self.base)}) must not be longer than cap ({durations.readable(self.cap)})")
        return self

    def policy(self) -> RetryPolicy:
        return RetryPolicy(self.base, self.factor, self.cap, self.attempts, self.give_up_after)


class LimitSection(Section):
    name: Name
    rate: Rate

    def limit(self) -> RateLimit:
        return RateLimit(self.name, *self.rate)


class RouteSection(Section):
    pack: StrictStr
    on: ProviderKinds
    kind: Name
    mode: Literal["projection", "per_event"]
    flow: Name
    settle: Duration = 0.0
    work_type: Name | None = None
    """None: the flow's own name."""
    source_id_case: Literal["exact", "fold"] = "exact"
    target_lane: LaneTemplate = ""
    queue_class: QueueClass = "default"
    retry: RetrySection = RetrySection()
    limit: LimitSection | None = None
    mask: tuple[MaskPath, ...] = ()
    connection: Name | None = None

    @model_validator(mode="after")
    def _fits_its_mode(self) -> RouteSection:
        if self.mode == "per_event" and self.settle:
            raise ValueError("settle belongs to projection routes; a per_event route runs each event at once: leave it out")
        return self


class ConnectionSection(Section):
    url: WebUrl
    secret: SecretReference | None = None
    secrets: SecretReferences | None = None

    @model_validator(mode="after")
    def _one_spelling(self) -> ConnectionSection:
        if self.secret is not None and self.secrets is not None:
            raise ValueError("secret and secrets are both set; keep one of them")
        return self

    @property
    def references(self) -> tuple[str, ...] | None:
        """Its secret references; None: whatever is stored stays."""
        return self.secrets if self.secret is None else (self.secret,)


class Configuration(Section):
    """A whole file."""

    namespace: Slug = DEFAULT_NAMESPACE
    packs: dict[Name, PackSection] = {}
    connections: dict[Name, ConnectionSection] = {}
    routes: dict[Name, RouteSection] = {}


def parse(text: str) -> Configuration:
    """The configuration of a TOML text. Raises BadConfiguration with every problem of the file, one line each."""
    try:
        return of_table(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise BadConfiguration([f"not TOML: {error}"]) from None


def of_table(table: Mapping[str, Any]) -> Configuration:
    """The configuration of a TOML file's table. Raises BadConfiguration, as `parse`."""
    try:
        return Configuration.model_validate(table)
    except ValidationError as error:
        raise BadConfiguration(sentences(error, Configuration)) from None


def read(path: str) -> Configuration:
    """The configuration of a file. Raises BadConfiguration, also when it cannot be read."""
    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfiguration([f"{path} cannot be read ({error}); fix the path, its rights or its encoding (UTF-8)"]) from None


def resolve(reference: str) -> str:
    """The secret behind a reference. Raises ValueError naming the variable or file that is missing or empty, never a value."""
    kind, _, value = secret_reference(reference).partition(":")
    if kind == "plain":
        return value
    if kind == "env":
        found = os.environ.get(value, "")
        if not found:
            raise ValueError(f"the environment variable {value} is not set")
        return found
    try:
        found = Path(value).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the secret's file {value} cannot be read ({type(error).__name__})") from None
    if not found:
        raise ValueError(f"the secret's file {value} is empty")
    return found
