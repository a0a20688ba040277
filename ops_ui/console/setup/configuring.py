"""What the actions of the configuration pages share: the lock of configuration, and a refusal as a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest

from connectors.configuration.change import ConfigurationLocked, ConfigurationRefused, NotFound, require_unlocked
from connectors.configuration.errors import BadConfiguration
from connectors.secrets import NoEncryptionKey, SecretsUnreadable
from ops_ui.console.base import read_only

T = TypeVar("T")

REFUSALS = (ConfigurationRefused, NotFound, BadConfiguration, SecretsUnreadable, NoEncryptionKey)


def lock_sentence() -> str:
    """Why nothing can be changed here; empty: it can."""
    return read_only.sentence() or (str(ConfigurationLocked.__doc__) if settings.HEADRACE_CONFIG_LOCKED else "")


def may_change(request: HttpRequest, permission: str) -> bool:
    """Whether the page offers the change: the right is there, and configuration is not locked."""
    return request.user.has_perm(permission) and not settings.HEADRACE_CONFIG_LOCKED


def attempt(request: HttpRequest, undone: str, change: Callable[[], T], *, configures: bool = True) -> T | None:
    """What `change` returns. None: it was refused, and a message says why; `undone` is what did not happen.

    What `configures` is refused while configuration is locked.
    """
    try:
        if configures:
            require_unlocked()
        return change()
    except REFUSALS as refusal:
        for sentence in str(refusal).splitlines():
            messages.error(request, f"{undone}: {sentence}")
        return None
