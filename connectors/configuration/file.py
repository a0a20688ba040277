"""The configuration file: strict TOML, read into frozen models; nothing here touches the database.

The format is the one of the README and of `config export`. Whatever the file gets wrong is reported at once, one line each.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError, model_validator

from connectors import durations
from connectors.configuration.change import DEFAULT_NAMESPACE
from connectors.configuration.errors import BadConfiguration, sentences
from connectors.configuration.values import (
    Account,
    BaseUrl,
    Duration,
    Factor,
    LaneTemplate,
    MaskPath,
    Name,
    ProviderKinds,
    QueueClass,
    Rate,
    SecretReference,
    SecretReferences,
    Slug,
    WebUrl,
    secret_reference,
    secret_text,
)
from projection.completion.retry_policy import FLOOR_SECONDS
from projection.facts import PER_EVENT, PROJECTION, InvocationMode, RateLimit, RetryPolicy

BYTE_ORDER_MARK: Final = "\ufeff"
"""What editors on Windows begin a text with; it is not part of it."""
MODES: Final[dict[str, InvocationMode]] = {"projection": PROJECTION, "per_event": PER_EVENT}
"""How the file spells an invocation mode, and how it is stored."""


class Section(BaseModel):
    """A table of the file: unknown names are refused, values are what they are written as."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EndpointSection(Section):
    account: Account = ""
    """Empty: the slug, so that each endpoint is a sender of its own."""
    public_url: BaseUrl = ""
    secrets: SecretReferences | None = None
    """None: whatever is stored stays (a new endpoint then has none)."""
    signature: Annotated[StrictStr, Field(max_length=64)] = ""
    unverified: Literal["keep", "refuse"] = "keep"
    max_body_bytes: Annotated[StrictInt, Field(ge=1024, le=1024**3)] | None = None
    limit: Rate | None = None
    """Deliveries per time, e.g. `200/s`."""
    concurrency: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    """Requests at once."""
    spool: StrictBool | None = None
    """None: where the pack's provider does not send a refused delivery again."""


class PackSection(Section):
    class_: Annotated[Name | None, Field(alias="class")] = None
    """None: the one that is installed under the name, else the one that is called like it."""
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
        if self.base < FLOOR_SECONDS:
            raise ValueError(f"base ({durations.readable(self.base)}) is too short; write 1s or more, as no retry comes sooner")
        if self.base > self.cap:
            raise ValueError(f"base ({durations.readable(self.base)}) must not be longer than cap ({durations.readable(self.cap)})")
        return self

    def policy(self) -> RetryPolicy:
        return RetryPolicy(self.base, self.factor, self.cap, self.attempts, self.give_up_after)


class LimitSection(Section):
    name: Name
    rate: Rate | None = None
    concurrency: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    """Attempts at once, of all workers together."""

    @model_validator(mode="after")
    def _limits_something(self) -> LimitSection:
        if self.rate is None and self.concurrency is None:
            raise ValueError('sets no limit; add a rate (e.g. "100/10s"), a concurrency (e.g. 8), or both')
        return self

    def limit(self) -> RateLimit:
        starts, per = self.rate or (0, 0.0)
        return RateLimit(self.name, starts, per, self.concurrency)


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
    order: Literal["source", "route"] = "source"
    queue_class: QueueClass = "default"
    retry: RetrySection = RetrySection()
    limit: LimitSection | None = None
    mask: tuple[MaskPath, ...] = ()
    connection: Name | None = None

    @model_validator(mode="after")
    def _fits_its_mode(self) -> RouteSection:
        if self.mode == "per_event" and self.settle:
            raise ValueError("settle is only for projection routes (a per_event route runs each event immediately); remove it")
        if self.mode == "per_event" and self.order != "source":
            raise ValueError("order is only for projection routes; to order a per_event route apart, set target_lane")
        return self


class ConnectionSection(Section):
    url: WebUrl
    secret: SecretReference | None = None
    secrets: SecretReferences | None = None

    @model_validator(mode="after")
    def _one_spelling(self) -> ConnectionSection:
        if self.secret is not None and self.secrets is not None:
            raise ValueError("secret and secrets are both set; remove one of them")
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
        table = tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
    except ValueError as error:  # its own TOMLDecodeError, or a number of more digits than the interpreter converts
        raise BadConfiguration([f"not TOML: {error}; correct the file"]) from None
    except RecursionError:
        raise BadConfiguration(["the tables or lists are nested too deeply; flatten them"]) from None
    return of_table(table)


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
    except OSError as error:
        raise BadConfiguration([f"{path} cannot be read ({error.strerror}); correct the path or its permissions"]) from None
    except UnicodeDecodeError:
        raise BadConfiguration([f"{path} is not UTF-8 text; save it with the encoding UTF-8"]) from None


def resolve(reference: str) -> str:
    """The secret behind a reference; the line break at the end of a file is not part of it.

    Raises ValueError naming the variable or file that is missing, empty or no secret (see `secret_text`), never a value.
    """
    kind, _, value = secret_reference(reference).partition(":")
    if kind == "plain":
        return secret_text(value, "the secret")
    if kind == "env":
        found = os.environ.get(value, "")
        if not found:
            raise ValueError(
                f"the environment variable {value} is not set; set it for this command (sudo drops it), or use file:/path"
            )
        return secret_text(found, f"the environment variable {value}")
    try:
        found = Path(value).read_text(encoding="utf-8-sig").rstrip("\r\n")
    except OSError as error:
        raise ValueError(
            f"the secret's file {value} cannot be read ({type(error).__name__}); correct the path or its permissions"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"the secret's file {value} is not UTF-8 text; save it with the encoding UTF-8") from None
    if not found:
        raise ValueError(f"the secret's file {value} is empty; put the secret into it")
    return secret_text(found, f"the secret's file {value}")
